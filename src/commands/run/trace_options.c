/* The options of `fathom run --trace`; see trace_options.h. */
#include "commands/run/trace_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/run_config.h"
#include "commands/sample_options.h"
#include "commands/verb.h"

#define DEPTH_MOST 1000000
#define MIN_MOST_S 3600.0

static int take_on_full(struct fm_run_trace *trace, const char *value)
{
    trace->chosen = true;
    trace->drops = value && strcmp(value, "drop") == 0;
    if (trace->drops || (value && strcmp(value, "block") == 0))
        return -1;
    return fm_verb_usage("run", "--on-full is block or drop");
}

static int take_depth(struct fm_run_trace *trace, const char *value)
{
    long depth;
    if (!fm_option_whole(value, 1, DEPTH_MOST, &depth))
        return fm_verb_usage("run", "--max-depth needs a whole number from 1 to %d", DEPTH_MOST);
    trace->max_depth = (uint32_t)depth;
    return -1;
}

/* A number with its unit: a bare one could be anything. */
static int take_time(const char *option, const char *value, uint64_t *ns)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = { { "ns", 1e-9 }, { "us", 1e-6 }, { "µs", 1e-6 }, { "ms", 1e-3 }, { "s", 1 } };
    char *end = NULL;
    double number = value ? strtod(value, &end) : NAN;
    for (size_t i = 0; end && end != value && i < sizeof units / sizeof *units; i++) {
        double seconds = number * units[i].seconds;
        if (strcmp(end, units[i].unit) != 0 || !isfinite(number) || seconds < 1e-9 ||
            seconds > MIN_MOST_S)
            continue;
        *ns = (uint64_t)llround(seconds * 1e9);
        return -1;
    }
    return fm_verb_usage("run", "%s needs a time with its unit, as 10us, 1.5ms or 2s", option);
}

static int add_pattern(char *patterns, size_t size, const char *option, const char *pattern)
{
    size_t used = strlen(patterns);
    if (!pattern || !*pattern)
        return fm_verb_usage("run", "%s needs a pattern", option);
    if (strpbrk(pattern, "\x1f\n") || used + strlen(pattern) + 2 > size)
        return fm_verb_usage("run", "the patterns of %s are too long or not printable", option);
    snprintf(patterns + used, size - used, "%s%s", used ? "," : "", pattern);
    return -1;
}

int fm_run_trace_take(struct fm_run_trace *trace, char **words, int *at)
{
    const char *value = NULL;
    if (fm_option_flag("--trace", words, at)) {
        trace->on = true;
        return -1;
    }
    if (fm_option_value("--on-full", words, at, &value))
        return take_on_full(trace, value);
    if (fm_option_value("--max-depth", words, at, &value))
        return take_depth(trace, value);
    if (fm_option_value("--min-duration", words, at, &value))
        return take_time("--min-duration", value, &trace->min_ns);
    if (fm_option_value("--window", words, at, &value))
        return take_time("--window", value, &trace->window_ns);
    if (fm_option_value("--include", words, at, &value))
        return add_pattern(trace->include, sizeof trace->include, "--include", value);
    if (fm_option_value("--exclude", words, at, &value))
        return add_pattern(trace->exclude, sizeof trace->exclude, "--exclude", value);
    return -2;
}

int fm_run_trace_check(const struct fm_run_trace *trace)
{
    const char *option = trace->chosen      ? "--on-full"
                         : trace->max_depth ? "--max-depth"
                         : trace->min_ns    ? "--min-duration"
                         : trace->window_ns ? "--window"
                         : *trace->include  ? "--include"
                         : *trace->exclude  ? "--exclude"
                                            : NULL;
    if (option && !trace->on)
        return fm_verb_usage("run", "%s goes with --trace", option);
    return -1;
}

void fm_run_trace_config(const struct fm_run_trace *trace, struct fm_buffer *into)
{
    if (!trace->on)
        return;
    fm_buffer_addf(into, "%ctrace=%s", FM_RUN_SEPARATOR, trace->drops ? "drop" : "block");
    if (trace->max_depth)
        fm_buffer_addf(into, "%cmax_depth=%u", FM_RUN_SEPARATOR, trace->max_depth);
    if (trace->min_ns)
        fm_buffer_addf(into, "%cmin_ns=%llu", FM_RUN_SEPARATOR, (unsigned long long)trace->min_ns);
    if (*trace->include)
        fm_buffer_addf(into, "%cinclude=%s", FM_RUN_SEPARATOR, trace->include);
    if (*trace->exclude)
        fm_buffer_addf(into, "%cexclude=%s", FM_RUN_SEPARATOR, trace->exclude);
}
