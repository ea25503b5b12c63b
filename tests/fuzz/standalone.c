/*
 * Runs a fuzz target without libFuzzer: every file named on the command line as it is, or, without
 * any, the target's seeds and a fixed number of mutations of them (always the same ones).
 *
 *     fuzz_file [--write-seeds FOLDER | --iterations N | FILE…]
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t random_below(uint64_t limit)
{
    random_state += 0x9e3779b97f4a7c15u;
    return limit ? fm_mix64(random_state) % limit : 0;
}

/* Change a few things, the kind that breaks parsers: bits, bytes, numbers at their limits, pieces
 * taken out, doubled or moved. */
static void mutate(struct fm_buffer *b)
{
    static const uint32_t limits[] = { 0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, UINT32_MAX };
    for (uint64_t n = 1 + random_below(6); n && b->len > 8; n--) {
        size_t at = random_below(b->len - 4), len = 1 + random_below(b->len - at);
        switch (random_below(6)) {
        case 0:
            b->data[at] = (char)(b->data[at] ^ 1 << random_below(8));
            break;
        case 1:
            b->data[at] = (char)random_below(256);
            break;
        case 2:
            memcpy(b->data + at, &limits[random_below(FM_COUNT(limits))], 4);
            break;
        case 3:
            if (random_below(8) == 0)
                b->len = at + 4;
            break;
        case 4:
            len = len > 64 ? 64 : len;
            memmove(b->data + random_below(b->len - len + 1), b->data + at, len);
            break;
        case 5:
            len = len > 32 ? 32 : len;
            if (len < b->len) {
                memmove(b->data + at, b->data + at + len, b->len - at - len);
                b->len -= len;
            }
            break;
        }
    }
}

/* In memory of exactly its size, so that reading past the end is seen. */
static void run(const struct fm_buffer *b)
{
    fm_autofree uint8_t *copy = fm_malloc(b->len);
    memcpy(copy, fm_buffer_text(b), b->len);
    LLVMFuzzerTestOneInput(copy, b->len);
}

static int run_file(const char *path)
{
    fm_autobuffer b = FM_BUFFER_INIT;
    char part[65536];
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return 1;
    }
    for (size_t n; (n = fread(part, 1, sizeof part, in)) > 0;)
        fm_buffer_add(&b, part, n);
    fclose(in);
    run(&b);
    return 0;
}

static int write_seeds(const char *folder)
{
    fm_autobuffer b = FM_BUFFER_INIT;
    for (unsigned n = 0; fuzz_seed(n, &b); n++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/seed-%u", folder, n);
        FILE *out = fopen(path, "wb");
        if (!out || fwrite(b.data, 1, b.len, out) != b.len || fclose(out)) {
            perror(path);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    fm_autobuffer b = FM_BUFFER_INIT;
    long iterations = 20000;
    unsigned seeds = 0;
    if (argc == 3 && strcmp(argv[1], "--write-seeds") == 0)
        return write_seeds(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--iterations") == 0) {
        iterations = atol(argv[2]);
    } else if (argc > 1) {
        int rc = 0;
        for (int i = 1; i < argc; i++)
            rc |= run_file(argv[i]);
        return rc;
    }
    for (; fuzz_seed(seeds, &b); seeds++)
        run(&b);
    for (long i = 0; i < iterations; i++) {
        fuzz_seed((unsigned)(i % seeds), &b);
        mutate(&b);
        run(&b);
    }
    printf("%u seeds, %ld mutations: no crash\n", seeds, iterations);
    return 0;
}
