/* A nameless file in memory for the tests: what was written to it can be read as bytes. */
#ifndef FM_TESTS_SCRATCH_FILE_H
#define FM_TESTS_SCRATCH_FILE_H

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

static inline int fx_file(void)
{
    int fd = memfd_create("fathom-test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* The whole content as a malloc'ed copy; closes the file. */
static inline uint8_t *fx_file_bytes(int fd, size_t *len)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    *len = (size_t)st.st_size;
    uint8_t *bytes = fm_malloc(*len);
    assert_int_equal(pread(fd, bytes, *len, 0), *len);
    close(fd);
    return bytes;
}

#endif
