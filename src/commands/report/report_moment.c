/* The time of `fathom report --at`; see report_moment.h. */
#include "commands/report/report_moment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* One time, up to `end`. */
static bool parse_one(struct fm_moment *m, const char *text, const char *end)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = { { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "min", 60e9 }, { "h", 3600e9 } };
    char *rest;
    if (!*text || !strchr("0123456789.", *text))
        return false;
    double value = strtod(text, &rest);
    size_t len = (size_t)(end - rest);
    if (rest == text || rest >= end || !isfinite(value))
        return false;
    *m = (struct fm_moment){ .percent = len == 1 && *rest == '%', .value = value };
    if (m->percent)
        return value <= 100;
    for (size_t i = 0; i < FM_COUNT(units); i++) {
        m->value = value * units[i].ns;
        if (strlen(units[i].name) == len && strncmp(rest, units[i].name, len) == 0)
            return true;
    }
    return false;
}

bool fm_moment_parse(struct fm_moment *m, const char *text)
{
    return parse_one(m, text, text + strlen(text));
}

bool fm_report_moment_parse(struct fm_report_moment *m, const char *text)
{
    const char *dots = strstr(text, ".."), *end = text + strlen(text);
    *m = (struct fm_report_moment){ .range = dots };
    if (!dots)
        return parse_one(&m->to, text, end);
    return parse_one(&m->from, text, dots) && parse_one(&m->to, dots + 2, end);
}

/* How long the longest run of the recording went on. */
static double longest_ns(const struct fm_profile *p)
{
    double longest = 0;
    for (size_t i = 0; i < p->processes.len; i++) {
        uint64_t begin_ns, end_ns;
        if (fm_history_span(p, p->processes.data[i].run, &begin_ns, &end_ns))
            longest = fmax(longest, (double)(end_ns - begin_ns));
    }
    return longest;
}

int fm_report_moment_show(const struct fm_report_moment *m, struct fm_profile *p, const char *name,
                          struct fm_shown *ret_from, struct fm_shown *ret_to, struct fm_error *err)
{
    if (!p->memory.histories.len)
        return fm_error_set(err, FM_UNSUPPORTED,
                            "%s does not say what was alive over time: it was recorded without, or "
                            "for less than some ten milliseconds",
                            name);
    if (!fm_history_show(p, m->range ? &m->from : NULL, &m->to, ret_from, ret_to))
        return fm_error_set(err, FM_UNSUPPORTED,
                            "%s is known from 0 to %.3fs, and what was asked for lies outside",
                            name, floor(longest_ns(p) / 1e6) / 1e3);
    if (m->range && ret_from->asked_ns > ret_to->asked_ns)
        return fm_error_set(err, FM_USAGE, "--at: %.3fs is after %.3fs", ret_from->asked_ns / 1e9,
                            ret_to->asked_ns / 1e9);
    return 0;
}
