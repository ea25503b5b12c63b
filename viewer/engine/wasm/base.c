/*
 * What base/memory.c and base/crc32c.c are elsewhere, for the browser: memory that is out traps,
 * which the page reports; and a checksum by tables, eight bytes at a time, as there is no
 * instruction for it.
 */
#include <stdint.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/memory.h"

/* ---- memory ---- */

static void *checked(void *memory)
{
    if (!memory)
        __builtin_trap();
    return memory;
}

void *fm_malloc(size_t bytes)
{
    return checked(malloc(bytes ? bytes : 1));
}

void *fm_calloc(size_t count, size_t bytes)
{
    return checked(calloc(count ? count : 1, bytes ? bytes : 1));
}

void *fm_realloc(void *old, size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total))
        __builtin_trap();
    return checked(realloc(old, total ? total : 1));
}

char *fm_strndup(const char *text, size_t len)
{
    char *copy = fm_malloc(len + 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *fm_strdup(const char *text)
{
    return fm_strndup(text, strlen(text));
}

void fm_memory_expect(size_t bytes)
{
    (void)bytes;
}

/* Instead of the C library's, which would write to a console. */
_Noreturn void abort(void)
{
    __builtin_trap();
}

/* ---- CRC-32C ---- */

#define POLYNOMIAL 0x82f63b78u

static uint32_t tables[8][256];

static void fill_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        tables[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 255];
}

uint32_t fm_crc32c(uint32_t crc, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    if (!tables[0][1])
        fill_tables();
    crc = ~crc;
    for (; len >= 8; p += 8, len -= 8) {
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + 4, 4);
        low ^= crc;
        crc = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^
              tables[4][low >> 24] ^ tables[3][high & 255] ^ tables[2][high >> 8 & 255] ^
              tables[1][high >> 16 & 255] ^ tables[0][high >> 24];
    }
    for (; len; p++, len--)
        crc = crc >> 8 ^ tables[0][(crc ^ *p) & 255];
    return ~crc;
}

/* ---- files, which there are none of ---- */

/* The C library's printing into memory brings these along although nothing calls them; defined
 * here, they are no imports, and the page needs none. */
#define BAD_FILE 8

int32_t __imported_wasi_snapshot_preview1_fd_close(int32_t fd);
int32_t __imported_wasi_snapshot_preview1_fd_seek(int32_t fd, int64_t offset, int32_t whence,
                                                  int32_t result);
int32_t __imported_wasi_snapshot_preview1_fd_write(int32_t fd, int32_t vectors, int32_t count,
                                                   int32_t result);

int32_t __imported_wasi_snapshot_preview1_fd_close(int32_t fd)
{
    (void)fd;
    return BAD_FILE;
}

int32_t __imported_wasi_snapshot_preview1_fd_seek(int32_t fd, int64_t offset, int32_t whence,
                                                  int32_t result)
{
    (void)fd, (void)offset, (void)whence, (void)result;
    return BAD_FILE;
}

int32_t __imported_wasi_snapshot_preview1_fd_write(int32_t fd, int32_t vectors, int32_t count,
                                                   int32_t result)
{
    (void)fd, (void)vectors, (void)count, (void)result;
    return BAD_FILE;
}
