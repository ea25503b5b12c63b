/*
 * Fuzz targets: one file each, in libFuzzer's form, so they run under clang's -fsanitize=fuzzer;
 * with standalone.c instead they run anywhere, on their own seeds with a fixed sequence of
 * mutations.
 */
#ifndef FM_TESTS_FUZZ_H
#define FM_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The n-th honest input to start from; false when there are no more. */
bool fuzz_seed(unsigned n, struct fm_buffer *out);

#endif
