/* Which functions are in the trace; see choose_calls.h. */
#include "target/agent/trace/choose_calls.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "target/agent/functions.h"
#include "target/agent/lines/choose.h"
#include "target/agent/trace/tasks.h"
#include "target/agent/trace/values.h"

#define MAX_PATTERN 1024

/* "mine" is no C function, "all" is any. */
static bool matches_c(const char *patterns, const char *name)
{
    char pattern[MAX_PATTERN];
    for (const char *at = patterns; *at;) {
        size_t len = strcspn(at, ",");
        if (len && len < sizeof pattern) {
            memcpy(pattern, at, len);
            pattern[len] = '\0';
            if (strcmp(pattern, "all") == 0 ||
                (strcmp(pattern, "mine") != 0 && fnmatch(pattern, name, 0) == 0))
                return true;
        }
        at += len + (at[len] == ',');
    }
    return false;
}

static bool matches(const char *patterns, const struct fm_func *f, const void *key)
{
    if (f->flags & FM_LIVE_FUNCTION_C)
        return matches_c(patterns, f->name);
    return fm_choose(patterns, (PyCodeObject *)key) != FM_CHOSEN_NOT;
}

bool fm_trace_choose(struct fm_collector *c, struct fm_func *f, const void *key)
{
    int saved_errno = errno;
    uint64_t since = fm_clock_ticks();
    if (f->trace_choice == FM_TRACE_UNDECIDED) {
        struct fm_raised raised = fm_python_put_aside();
        bool shown = (!c->trace_include[0] || matches(c->trace_include, f, key)) &&
                     !(c->trace_exclude[0] && matches(c->trace_exclude, f, key));
        f->trace_choice = shown ? FM_TRACE_SHOWN : FM_TRACE_NOT_SHOWN;
        if (!(f->flags & FM_LIVE_FUNCTION_C)) {
            f->trace_role = fm_trace_role_of((PyCodeObject *)key, f->flags);
            fm_trace_ask_of(c, f, (PyCodeObject *)key);
        }
        PyErr_Clear();
        fm_python_put_back(raised);
    }
    bool shown = f->trace_choice == FM_TRACE_SHOWN;
    if (shown && !f->id && !fm_function_define(c, f, key)) {
        fm_collector_lost_call(c);
        shown = false;
    }
    if (shown && f->id < FM_TRACE_WIDE_FUNCTION && !f->trace_role && !f->asked)
        f->trace_word = f->id << 16 | FM_TRACE_CALL;
    fm_collector_charge(c, since);
    errno = saved_errno;
    return shown;
}
