/*
 * Writing a file so that it appears whole or not at all, for every verb that writes one.
 *
 * The bytes go to a file without a name in the folder of the output (O_TMPFILE), which gets its
 * name when it is complete: whatever ends the command before that leaves nothing behind. File
 * systems without such files get a temporary name beside the output instead. An existing file is
 * only replaced if that is allowed, by rename, so that it is there, old or new, at every moment; it
 * keeps its permissions. A symbolic link stays one, and what it leads to is written, as compilers do; a
 * link counts as existing also while that is missing, for somebody else may have put it there. A new
 * file is its owner's alone. A limit on the size of files is an error like a full disk once
 * fm_output_prepare() was called. A device or a pipe, and the standard output ("-"), are written to
 * directly.
 *
 * It knows nothing of what is in the file. It does not wait until the bytes are on the disk.
 */
#ifndef FM_BASE_OUTPUT_H
#define FM_BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* For the user alone, as core files and perf.data are: what Fathom writes tells command lines, with
 * whatever was secret in them, and source text. */
#define FM_OUTPUT_MODE 0600

/* Write everything to `fd`, without closing it. 0 or a negative status with a sentence. */
typedef int fm_output_writer(void *context, int fd, struct fm_error *err);

/* Have `write` make the file `path`, which must not exist unless `overwrite`. FM_EXISTS,
 * FM_CANNOT_WRITE or the status of `write`, in front of whose sentence it says which file. */
int fm_output_write(const char *path, bool overwrite, fm_output_writer *write, void *context,
                    struct fm_error *err);

/* As fm_output_write, of bytes that are in memory. */
int fm_output_write_bytes(const char *path, bool overwrite, const void *bytes, size_t len,
                          struct fm_error *err);

/* Would what is at `path` now be refused? For those who have long work before they write. */
int fm_output_check(const char *path, bool overwrite, struct fm_error *err);

/* Can a file be made where `path` leads? By trying: permissions alone do not tell (read-only mounts). */
int fm_output_try(const char *path, struct fm_error *err);

/* Once, when the command starts: have the system refuse what exceeds a limit on the size of files
 * (`ulimit -f`) instead of ending the process. What it executes starts with the signal as found.
 * Under sudo, new files are from then on those of the user who typed it. */
void fm_output_prepare(void);

/* Give a new file to that user; does nothing without sudo. */
void fm_output_give(int fd);

/* All bytes, however often the system takes only a part of them. For writers. */
int fm_output_put(int fd, const void *bytes, size_t len, struct fm_error *err);

#endif
