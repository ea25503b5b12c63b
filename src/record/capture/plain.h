/*
 * A .fathom file with plain blocks, made of one with compressed ones: for a reader without zstd, the
 * viewer's engine in a browser. Block by block, without knowing what is in them.
 */
#ifndef FM_CAPTURE_PLAIN_H
#define FM_CAPTURE_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

/* Write the file of `len` bytes behind `from` to `to`, which is empty. False if there is more to do than
 * that, and `to` is to be thrown away: the file is damaged or cut off, its run never finished, it came
 * from another tool and may lack its sources, or it cannot be read or written. */
bool fm_plain_copy(int from, uint64_t len, int to);

#endif
