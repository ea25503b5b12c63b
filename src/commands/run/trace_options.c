/* The options of `fathom run --trace`; see trace_options.h. */
#include "commands/run/trace_options.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/run_config.h"
#include "commands/sample_options.h"
#include "commands/verb.h"

#define DEPTH_MOST   1000000
#define MIN_MOST_S   3600.0
#define WATCHES_MOST 32 /* as the agent */

static int take_on_full(struct fm_run_trace *trace, const char *value)
{
    trace->chosen = true;
    trace->drops = value && strcmp(value, "drop") == 0;
    if (trace->drops || (value && strcmp(value, "block") == 0))
        return -1;
    return fm_verb_usage(trace->verb, "--on-full is block or drop");
}

static int take_depth(struct fm_run_trace *trace, const char *value)
{
    long depth;
    if (!fm_option_whole(value, 1, DEPTH_MOST, &depth))
        return fm_verb_usage(trace->verb, "--max-depth needs a whole number from 1 to %d",
                             DEPTH_MOST);
    trace->max_depth = (uint32_t)depth;
    return -1;
}

/* A number with its unit: a bare one could be anything. */
static int take_time(const struct fm_run_trace *trace, const char *option, const char *value,
                     uint64_t *ns)
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
    return fm_verb_usage(trace->verb, "%s needs a time with its unit, as 10us, 1.5ms or 2s",
                         option);
}

static int add_pattern(const struct fm_run_trace *trace, char *patterns, size_t size,
                       const char *option, const char *pattern)
{
    size_t used = strlen(patterns);
    if (!pattern || !*pattern)
        return fm_verb_usage(trace->verb, "%s needs a pattern", option);
    if (strpbrk(pattern, "\x1f\n") || used + strlen(pattern) + 2 > size)
        return fm_verb_usage(trace->verb, "the patterns of %s are too long or not printable",
                             option);
    snprintf(patterns + used, size - used, "%s%s", used ? "," : "", pattern);
    return -1;
}

static int take_slow(const struct fm_run_trace *trace, struct fm_trigger_rule *rule,
                     const char *value)
{
    const char *colon = strrchr(value, ':');
    size_t len = colon ? (size_t)(colon - value) : 0;
    if (!len || len >= sizeof rule->pattern)
        return fm_verb_usage(trace->verb,
                             "--keep-on slow= needs a region or function and a time, as "
                             "slow=assembly:250ms");
    memcpy(rule->pattern, value, len);
    rule->pattern[len] = '\0';
    rule->kind = FM_TRIGGER_SLOW;
    return take_time(trace, "--keep-on slow=NAME:TIME", colon + 1, &rule->limit_ns);
}

/* "exception", "exception=TYPE": of these `usual` stands for the type that is not named. False: it is
 * not that word. */
static bool take_type(struct fm_trigger_rule *rule, const char *value, const char *word,
                      enum fm_trigger_kind kind, const char *usual)
{
    size_t len = strlen(word);
    if (strncmp(value, word, len) != 0 || (value[len] && value[len] != '='))
        return false;
    const char *type = value[len] && value[len + 1] ? value + len + 1 : usual;
    snprintf(rule->pattern, sizeof rule->pattern, "%s", type);
    rule->kind = kind;
    return strlen(type) < sizeof rule->pattern;
}

static int take_keep_on(struct fm_run_trace *trace, const char *value)
{
    struct fm_trigger_rules *rules = &trace->keep_on;
    if (rules->count == FM_TRIGGER_RULES)
        return fm_verb_usage(trace->verb, "--keep-on can be given %u times", FM_TRIGGER_RULES);
    struct fm_trigger_rule *rule = &rules->rules[rules->count];
    int taken = -1;
    if (value && strncmp(value, "slow=", strlen("slow=")) == 0)
        taken = take_slow(trace, rule, value + strlen("slow="));
    else if (!value || (!take_type(rule, value, "exception", FM_TRIGGER_RAISED, "Exception") &&
                        !take_type(rule, value, "uncaught", FM_TRIGGER_UNCAUGHT, "*")))
        taken = fm_verb_usage(trace->verb, "--keep-on is exception[=TYPE], uncaught[=TYPE] or "
                                           "slow=NAME:TIME");
    rules->count += taken == -1;
    return taken;
}

static int take_keep_most(struct fm_run_trace *trace, const char *value)
{
    long most;
    if (!fm_option_whole(value, 1, 10000, &most))
        return fm_verb_usage(trace->verb, "--keep-most needs a whole number from 1 to 10000");
    trace->keep_most = (uint32_t)most;
    return -1;
}

/* FILE:LINE:NAME, read from its end. */
static bool is_watch(const char *text)
{
    const char *name = strrchr(text, ':'), *line = name;
    if (!name || !name[1] || strpbrk(name + 1, " .,()[]") || strchr(text, ','))
        return false;
    while (line > text && line[-1] != ':')
        line--;
    long number = strtol(line, NULL, 10);
    return line > text + 1 && strspn(line, "0123456789") == (size_t)(name - line) && number > 0 &&
           number < INT_MAX;
}

static int add_watch(struct fm_run_trace *trace, const char *value)
{
    if (!value || !is_watch(value))
        return fm_verb_usage(trace->verb, "--watch needs FILE:LINE:NAME, as app.py:42:total");
    if (++trace->watches > WATCHES_MOST)
        return fm_verb_usage(trace->verb, "--watch can be given %d times at most", WATCHES_MOST);
    return add_pattern(trace, trace->watch, sizeof trace->watch, "--watch", value);
}

int fm_run_trace_take(struct fm_run_trace *trace, char **words, int *at)
{
    const char *value = NULL;
    if (fm_option_flag("--trace", words, at)) {
        trace->on = true;
        return -1;
    }
    if (fm_option_flag("--paused", words, at)) {
        trace->paused = true;
        return -1;
    }
    if (fm_option_value("--on-full", words, at, &value))
        return take_on_full(trace, value);
    if (fm_option_value("--max-depth", words, at, &value))
        return take_depth(trace, value);
    if (fm_option_value("--min-duration", words, at, &value))
        return take_time(trace, "--min-duration", value, &trace->min_ns);
    if (fm_option_value("--window", words, at, &value))
        return take_time(trace, "--window", value, &trace->window_ns);
    if (fm_option_value("--keep-on", words, at, &value))
        return take_keep_on(trace, value);
    if (fm_option_value("--keep-most", words, at, &value))
        return take_keep_most(trace, value);
    if (fm_option_value("--include", words, at, &value))
        return add_pattern(trace, trace->include, sizeof trace->include, "--include", value);
    if (fm_option_value("--exclude", words, at, &value))
        return add_pattern(trace, trace->exclude, sizeof trace->exclude, "--exclude", value);
    if (fm_option_value("--args", words, at, &value))
        return add_pattern(trace, trace->args, sizeof trace->args, "--args", value);
    if (fm_option_value("--returns", words, at, &value))
        return add_pattern(trace, trace->returns, sizeof trace->returns, "--returns", value);
    if (fm_option_value("--watch", words, at, &value))
        return add_watch(trace, value);
    if (fm_option_flag("--repr", words, at)) {
        trace->repr = true;
        return -1;
    }
    return -2;
}

int fm_run_trace_check(const struct fm_run_trace *trace)
{
    const char *option = trace->chosen          ? "--on-full"
                         : trace->paused        ? "--paused"
                         : trace->max_depth     ? "--max-depth"
                         : trace->min_ns        ? "--min-duration"
                         : trace->window_ns     ? "--window"
                         : trace->keep_on.count ? "--keep-on"
                         : *trace->include      ? "--include"
                         : *trace->exclude      ? "--exclude"
                         : *trace->args         ? "--args"
                         : *trace->returns      ? "--returns"
                         : *trace->watch        ? "--watch"
                         : trace->repr          ? "--repr"
                                                : NULL;
    if (option && !trace->on)
        return fm_verb_usage(trace->verb, "%s goes with --trace", option);
    if (trace->keep_most && !trace->keep_on.count)
        return fm_verb_usage(trace->verb, "--keep-most goes with --keep-on");
    if (trace->repr && !*trace->args && !*trace->returns && !*trace->watch)
        return fm_verb_usage(trace->verb, "--repr goes with --args, --returns or --watch");
    return -1;
}

static bool wants_exceptions(const struct fm_run_trace *trace)
{
    for (size_t i = 0; i < trace->keep_on.count; i++)
        if (trace->keep_on.rules[i].kind != FM_TRIGGER_SLOW)
            return true;
    return false;
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
    if (trace->paused)
        fm_buffer_addf(into, "%clate=1", FM_RUN_SEPARATOR);
    if (wants_exceptions(trace))
        fm_buffer_addf(into, "%cexceptions=1", FM_RUN_SEPARATOR);
    if (*trace->include)
        fm_buffer_addf(into, "%cinclude=%s", FM_RUN_SEPARATOR, trace->include);
    if (*trace->exclude)
        fm_buffer_addf(into, "%cexclude=%s", FM_RUN_SEPARATOR, trace->exclude);
    if (*trace->args)
        fm_buffer_addf(into, "%cargs=%s", FM_RUN_SEPARATOR, trace->args);
    if (*trace->returns)
        fm_buffer_addf(into, "%creturns=%s", FM_RUN_SEPARATOR, trace->returns);
    if (*trace->watch)
        fm_buffer_addf(into, "%cwatch=%s", FM_RUN_SEPARATOR, trace->watch);
    if (trace->repr)
        fm_buffer_addf(into, "%crepr=1", FM_RUN_SEPARATOR);
}
