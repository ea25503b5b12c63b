/*
 * The scripts that `fathom attach --memory` or `--trace` has the process run: one loads the agent of its Python and
 * begins the recording in the folder of the run, another ends it.
 *
 * They lie in that folder. They take a token first, so that one runs only once though two threads were
 * asked, and answer through a named pipe: '+' done, '=' it is recorded already, otherwise a sentence.
 * They import nothing that is not built in, say nothing, and leave nothing in the process's modules.
 */
#ifndef FM_COMMANDS_ATTACH_SCRIPT_H
#define FM_COMMANDS_ATTACH_SCRIPT_H

#include "base/error.h"
#include "watch/cpython/remote_call.h"

struct fm_attach_script {
    struct fm_remote_call *call;
    const char *folder; /* the process must see it by that name … */
    const char *agents; /* … and that */
    const char *begin,
        *end; /* functions of the agent: the first gets `argument`, the second nothing */
    const char *argument;
    const char *recorded; /* what is said if it is recorded already, behind "process N" */
    int stop_fd;          /* readable: the user waits no longer; −1: none */
};

/* Begin. FM_NO_ANSWER after `limit_ns`: then nothing is asked any more. */
int fm_attach_script_begin(const struct fm_attach_script *script, uint64_t limit_ns,
                           struct fm_error *err);

/* End. If it does not answer, the process is still asked, does it when it runs Python again, and then
 * removes the folder. */
int fm_attach_script_end(const struct fm_attach_script *script, uint64_t limit_ns,
                         struct fm_error *err);

#endif
