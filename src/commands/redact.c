/* Leaving arguments out; see redact.h. */
#include "commands/redact.h"

#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"
#include "base/memory.h"

char *fm_redact_command(const char *command)
{
    size_t bytes = FM_COMMAND_LINE_REDACTED_BYTES(strlen(command));
    char *left = fm_malloc(bytes);
    fm_command_line_redact(command, left, bytes);
    return left;
}

void fm_redact(struct fm_profile *p)
{
    const char *command = fm_profile_fact_get(p, "command");
    fm_autofree char *redacted = command ? fm_redact_command(command) : NULL;
    if (redacted)
        fm_profile_fact(p, "command", redacted);
    for (size_t i = 0; i < p->processes.len; i++) {
        struct fm_process *process = &p->processes.data[i];
        fm_autofree char *text = fm_redact_command(fm_profile_text(p, process->command));
        process->command = fm_profile_string(p, text);
    }
    size_t kept = 0;
    for (size_t i = 0; i < p->sources.len; i++)
        if (strcmp(fm_profile_text(p, p->sources.data[i].file), "<string>") != 0 &&
            p->sources.data[i].state != FM_SOURCE_GENERATED)
            p->sources.data[kept++] = p->sources.data[i];
    p->sources.len = kept;
    fm_profile_fact(p, FM_REDACT_FACT, "the arguments of command lines");
}
