/* The end of a run that needs too much; see limit.h. */
#include "commands/run/limit.h"

#include <string.h>

#include "base/clean.h"
#include "base/clock.h"
#include "commands/run/gate.h"
#include "show/report/number.h"
#include "watch/memory/together.h"

#define GRACE_NS 5000000000u /* from the first request to SIGKILL */
#define SLICE_MS 10

void fm_run_limit_look(struct fm_run_limit *limit, struct fm_memory_watch *memory)
{
    if (!limit->bytes)
        return;
    uint64_t now_ns = fm_clock_ns();
    if (!limit->passed_ns) {
        if (!fm_together_passed(limit->folder, &limit->pid, &limit->had))
            return;
        limit->passed_ns = now_ns;
    }
    if (now_ns - limit->passed_ns < GRACE_NS)
        fm_memory_watch_ask(memory, (pid_t)limit->pid);
    else
        fm_memory_watch_kill(memory);
}

void fm_run_limit_end(struct fm_run_limit *limit, struct fm_memory_watch *memory,
                      struct fm_watch *watch)
{
    fm_run_limit_look(limit, memory);
    if (!limit->passed_ns)
        return;
    uint64_t until_ns = limit->passed_ns + GRACE_NS + GRACE_NS / 2;
    for (;;) {
        fm_memory_watch_look(memory);
        if (fm_memory_watch_is_over(memory) || fm_clock_ns() > until_ns)
            break;
        fm_run_limit_look(limit, memory);
        fm_watch_wait(watch, -1, SLICE_MS);
    }
    fm_watch_scan(watch);
    fm_watch_ask_statuses(watch);
}

void fm_run_limit_note(const struct fm_run_limit *limit, struct fm_profile *p)
{
    char had[FM_NUMBER_BYTES], most[FM_NUMBER_BYTES], text[256];
    uint32_t process = FM_NONE;
    if (!limit->passed_ns)
        return;
    for (uint32_t i = 0; i < p->processes.len; i++)
        if (p->processes.data[i].pid == limit->pid && p->processes.data[i].memory)
            process = i;
    fm_number_bytes_apart(had, limit->had, most, limit->bytes);
    snprintf(text, sizeof text,
             "the run was ended here: it had %s allocated, more than its limit of %s", had, most);
    fm_profile_note(p, process, "limit", 1, text);
}

int fm_run_limit_report(const struct fm_run_limit *limit, const struct fm_profile *p)
{
    char had[FM_NUMBER_BYTES], most[FM_NUMBER_BYTES], peak[FM_NUMBER_BYTES], more[96] = "";
    if (!limit->passed_ns)
        return 0;
    /* Who does not end at once may go on allocating, and what is listed is of the peak. */
    int64_t sum = fm_run_gate_sum(p, FM_NONE);
    fm_number_bytes(peak, sum);
    if (sum > limit->had && strcmp(peak, fm_number_bytes(had, limit->had)) != 0)
        snprintf(more, sizeof more, "it went on to %s, ", peak);
    fm_number_bytes_apart(had, limit->had, most, limit->bytes);
    fm_clean_say(stderr,
                 "fathom run: the run was ended: it had %s allocated, more than its limit of %s, "
                 "when process %u asked for more; %smost of it by",
                 had, most, limit->pid, more);
    fm_run_gate_name_guilty(p, FM_NONE);
    return fm_status_exit(FM_ENDED);
}
