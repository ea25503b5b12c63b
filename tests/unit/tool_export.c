/*
 * Writes the timeline of export_known.h, for the behaviour tests:
 *
 *     tool_export perfetto|chrome OUT [MIN_NS [MAX_DEPTH]]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "export_known.h"

int main(int argc, char **argv)
{
    struct fm_error err = FM_ERROR_INIT;
    struct known k;
    if (argc < 3)
        return 2;
    struct fm_save_choice choice = { .to_ns = KNOWN_LENGTH };
    choice.min_ns = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    choice.max_depth = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0;
    int fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    known_init(&k);
    struct fm_export_from from = known_from(&k);
    fm_export_fn *write = strcmp(argv[1], "chrome") == 0 ? fm_chrome_write : fm_perfetto_write;
    int status = fd < 0 ? -1 : write(k.p, &from, &choice, fd, &err);
    if (status)
        fprintf(stderr, "%s: %s\n", argv[2], err.text);
    fm_profile_free(k.p);
    return status ? 1 : 0;
}
