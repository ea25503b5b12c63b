/*
 * CRC-32C (Castagnoli), the checksum of capture blocks. Chosen because processors compute it in
 * hardware and every language has it. Usable inside a profiled process.
 */
#ifndef FM_BASE_CRC32C_H
#define FM_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continue a checksum over more bytes; start with 0. */
uint32_t fm_crc32c(uint32_t crc, const void *bytes, size_t len);

#endif
