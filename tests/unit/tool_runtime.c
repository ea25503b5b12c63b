/*
 * Prints what fm_runtime_find() says about a process, for the behaviour tests:
 *
 *     tool_runtime PID     "3.9.18 0x7f… 0 /usr/lib/libpython3.9.so.1.0"
 *
 * (version, address, free-threaded or not, file), or the sentence on stderr and the exit status of the error.
 */
#include <stdio.h>
#include <stdlib.h>

#include "watch/cpython/runtime.h"

int main(int argc, char **argv)
{
    static struct fm_runtime runtime;
    struct fm_remote remote;
    struct fm_error err = FM_ERROR_INIT;
    if (argc != 2)
        return 2;
    fm_remote_live(&remote, atoi(argv[1]));
    if (fm_runtime_find(&runtime, &remote, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return fm_status_exit(err.status);
    }
    printf("%u.%u.%u %#llx %d %s\n", runtime.version_hex >> 24, runtime.version_hex >> 16 & 0xff,
           runtime.version_hex >> 8 & 0xff, (unsigned long long)runtime.at,
           runtime.layout.free_threaded, runtime.path);
    return 0;
}
