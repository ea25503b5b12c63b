/*
 * A program or library as it lies in the memory of a process: where it begins and ends, what it
 * exports. Read from the memory itself, so that no file is needed: the file may be deleted, in a
 * container, or replaced by a newer one.
 *
 * Only what the dynamic linker uses is there (exported symbols, needed libraries); for sections and
 * local symbols see elf.h. Everything is untrusted: bounded and checked.
 */
#ifndef FM_OS_IMAGE_H
#define FM_OS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "watch/os/remote/remote.h"

/* Enough to hold the header and the program headers of every program seen so far. */
#define FM_IMAGE_HEADER_BYTES 4096
#define FM_IMAGE_SEGMENTS     8

struct fm_image_segment {
    fm_addr start, end; /* in the process; [start, end) is page-rounded neither way */
};

struct fm_image {
    fm_addr bias; /* what is added to an address of the file */
    fm_addr start, end;
    struct fm_image_segment writable[FM_IMAGE_SEGMENTS];
    int writable_count;
    fm_addr dynamic;
    size_t dynamic_bytes;
};

enum fm_image_status {
    FM_IMAGE_OK = 0,
    FM_IMAGE_NONE = -1,    /* not an ELF program, or not readable */
    FM_IMAGE_FOREIGN = -2, /* of another kind of machine: 32 bits, other byte order */
};

/* The image whose first mapping (file offset 0) begins at `at`. */
int fm_image_read(struct fm_image *image, const struct fm_remote *remote, fm_addr at);

/* The same from the first bytes of its file. */
int fm_image_parse(struct fm_image *image, const void *bytes, size_t len, fm_addr at);

/* Where an exported object or function lies, its size into `*size` (may be NULL); 0: not exported
 * by this image. */
fm_addr fm_image_symbol(const struct fm_image *image, const struct fm_remote *remote,
                        const char *name, uint64_t *size);

/* Does it need a library whose name begins with `prefix`? */
bool fm_image_needs(const struct fm_image *image, const struct fm_remote *remote,
                    const char *prefix);

#endif
