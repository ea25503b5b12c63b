/*
 * Unpacks zstd frames (RFC 8878) for the engine in the browser, where there is no library for it: blocks of
 * traces stay packed in the page and are unpacked one by one as they come into sight.
 *
 * One frame at a time, with the size of its content in its header and without a dictionary, which is what
 * Fathom writes. The checksum of a frame is not looked at: blocks have their own. Everything is untrusted:
 * what makes no sense is refused, nothing is read or written outside of what was given. No allocation.
 */
#ifndef FM_ENGINE_UNZSTD_H
#define FM_ENGINE_UNZSTD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How large the content of a frame is by its header; false if that is not said, or it is no frame. */
bool fm_unzstd_size(const void *in, size_t len, uint64_t *ret_size);

/* The content of a frame into `out`, which has room for `room` bytes: how many there were, or −1. */
int64_t fm_unzstd(void *out, size_t room, const void *in, size_t len);

#endif
