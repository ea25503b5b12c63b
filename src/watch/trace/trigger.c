/* What makes a flight recorder write; see trigger.h. */
#include "watch/trace/trigger.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/vec.h"
#include "record/model/trace/pack/words.h"
#include "watch/trace/trace_names.h"

#define DEPTH_MAX 65536u /* open at once on a thread */
#define ASYNC_MAX 4096u  /* spans of tokens */

#define RUNS_THREADS 0x80000000u /* the wish that is always there, see is_outermost() */

/* A call or region that is open. */
struct trigger_open {
    uint64_t begin;
    uint32_t id;
    uint32_t flight; /* name of the exception that is on its way through it; 0: none */
    bool region;
};

struct trigger_span {
    uint64_t begin;
    uint32_t name, token;
};

struct trigger_thread {
    uint32_t tid;
    bool begun;
    uint64_t sequence, ticks;
    size_t done; /* words of the chunk */
    FM_VEC(struct trigger_open) open;
    uint64_t beyond; /* calls on top of DEPTH_MAX */
};

struct fm_trigger_scan {
    const struct fm_trigger_rules *rules;
    fm_trigger_sink *sink;
    void *context;
    pid_t pid;
    const struct fm_trace_pack *clock;
    struct fm_trace_names names;
    struct fm_map thread_of;
    FM_VEC(struct trigger_thread) threads;
    FM_VEC(struct trigger_span) spans;
};

/* ---- names ---- */

/* The name itself, or what stands behind its last point. */
static bool matches(const char *pattern, const char *name)
{
    const char *last = strrchr(name, '.');
    return fnmatch(pattern, name, 0) == 0 || (last && fnmatch(pattern, last + 1, 0) == 0);
}

static bool fulfils(const struct fm_trigger_rule *rule, enum fm_named_kind kind,
                    const char *const *names, size_t count)
{
    if ((rule->kind == FM_TRIGGER_SLOW) == (kind == FM_NAMED_EXCEPTION))
        return false;
    if (rule->kind != FM_TRIGGER_SLOW)
        for (size_t i = 0; i < count; i++)
            if (matches(rule->pattern, names[i]))
                return true;
    if (kind == FM_NAMED_FUNCTION)
        return fnmatch(rule->pattern, names[0], 0) == 0 || matches(rule->pattern, names[1]);
    return kind == FM_NAMED_REGION && fnmatch(rule->pattern, names[0], 0) == 0;
}

static uint32_t judge(const void *context, enum fm_named_kind kind, const char *const *names,
                      size_t count)
{
    const struct fm_trigger_rules *rules = context;
    uint32_t wishes = 0;
    for (size_t i = 0; i < rules->count; i++)
        wishes |= (uint32_t)fulfils(&rules->rules[i], kind, names, count) << i;
    if (kind == FM_NAMED_FUNCTION && strcmp(names[0], "Thread._bootstrap_inner") == 0)
        wishes |= RUNS_THREADS;
    return wishes;
}

struct fm_trigger_scan *fm_trigger_scan_new(const struct fm_trigger_rules *rules,
                                            const char *folder, pid_t pid, unsigned number,
                                            fm_trigger_sink *sink, void *context)
{
    struct fm_trigger_scan *scan = fm_calloc(1, sizeof *scan);
    scan->rules = rules;
    scan->sink = sink;
    scan->context = context;
    scan->pid = pid;
    fm_trace_names_init(&scan->names, folder, (int)pid, number, judge, rules);
    return scan;
}

void fm_trigger_scan_free(struct fm_trigger_scan *scan)
{
    if (!scan)
        return;
    for (size_t i = 0; i < scan->threads.len; i++)
        fm_vec_release(&scan->threads.data[i].open);
    fm_vec_release(&scan->threads);
    fm_vec_release(&scan->spans);
    fm_map_release(&scan->thread_of);
    fm_trace_names_release(&scan->names);
    free(scan);
}

/* ---- what happened ---- */

static void tell(struct fm_trigger_scan *scan, const struct trigger_thread *t, size_t rule,
                 const char *what, uint64_t ticks, uint64_t took_ns)
{
    struct fm_trigger trigger = { .rule = &scan->rules->rules[rule],
                                  .pid = scan->pid,
                                  .tid = t->tid,
                                  .ns = fm_trace_pack_instant_ns(scan->clock, ticks),
                                  .took_ns = took_ns };
    snprintf(trigger.what, sizeof trigger.what, "%s", what ? what : "an exception");
    scan->sink(scan->context, &trigger);
}

static void took(struct fm_trigger_scan *scan, const struct trigger_thread *t,
                 enum fm_named_kind kind, uint32_t id, uint64_t begin, uint64_t ticks)
{
    const struct fm_named *named = fm_trace_names_find(&scan->names, kind, id);
    if (!named || !named->wishes || ticks < begin)
        return;
    uint64_t ns = fm_trace_pack_length_ns(scan->clock, ticks - begin);
    for (size_t i = 0; i < scan->rules->count; i++)
        if (named->wishes >> i & 1 && ns >= scan->rules->rules[i].limit_ns)
            tell(scan, t, i, named->text, ticks, ns);
}

static void raised(struct fm_trigger_scan *scan, struct trigger_thread *t, uint32_t name,
                   uint64_t ticks)
{
    const struct fm_named *named = fm_trace_names_find(&scan->names, FM_NAMED_EXCEPTION, name);
    if (t->open.len)
        t->open.data[t->open.len - 1].flight = name;
    for (size_t i = 0; named && i < scan->rules->count; i++)
        if (scan->rules->rules[i].kind == FM_TRIGGER_RAISED && named->wishes >> i & 1)
            tell(scan, t, i, named->text, ticks, 0);
}

/* SystemExit is how programs end. */
static void uncaught(struct fm_trigger_scan *scan, const struct trigger_thread *t, uint32_t name,
                     uint64_t ticks)
{
    const struct fm_named *named =
        name ? fm_trace_names_find(&scan->names, FM_NAMED_EXCEPTION, name) : NULL;
    const char *text = named ? named->text : NULL;
    for (size_t i = 0; i < scan->rules->count && (!text || strcmp(text, "SystemExit") != 0); i++) {
        const struct fm_trigger_rule *rule = &scan->rules->rules[i];
        bool any = strcmp(rule->pattern, "*") == 0;
        if (rule->kind == FM_TRIGGER_UNCAUGHT && (any || (named && named->wishes >> i & 1)))
            tell(scan, t, i, text, ticks, 0);
    }
}

/* ---- what is open ---- */

static void push(struct trigger_thread *t, uint32_t id, bool region, uint64_t begin)
{
    if (t->open.len >= DEPTH_MAX)
        t->beyond += !region;
    else
        fm_vec_push(&t->open, ((struct trigger_open){ begin, id, 0, region }));
}

static void drop(struct trigger_thread *t, size_t at)
{
    memmove(&t->open.data[at], &t->open.data[at + 1],
            (t->open.len - at - 1) * sizeof *t->open.data);
    t->open.len--;
}

/* Does an exception that leaves the call at `at` leave the program, or what a thread was made to run? What
 * catches the latter is threading's own. */
static bool is_outermost(struct fm_trigger_scan *scan, const struct trigger_thread *t, size_t at)
{
    while (at && t->open.data[at - 1].region)
        at--;
    if (!at)
        return true;
    const struct fm_named *around =
        fm_trace_names_find(&scan->names, FM_NAMED_FUNCTION, t->open.data[at - 1].id);
    return around && around->wishes & RUNS_THREADS;
}

/* The innermost call ends. Regions in it are still open: they end by themselves. */
static void end_call(struct fm_trigger_scan *scan, struct trigger_thread *t, uint64_t ticks,
                     bool judged, bool unwound)
{
    if (t->beyond) {
        t->beyond--;
        return;
    }
    size_t at = t->open.len;
    while (at && t->open.data[at - 1].region)
        at--;
    if (!at)
        return;
    struct trigger_open call = t->open.data[at - 1];
    for (size_t i = at; i < t->open.len; i++) /* raised in a region of it */
        call.flight = t->open.data[i].flight ? t->open.data[i].flight : call.flight;
    if (judged)
        took(scan, t, FM_NAMED_FUNCTION, call.id, call.begin, ticks);
    if (unwound && is_outermost(scan, t, at - 1))
        uncaught(scan, t, call.flight, ticks);
    else if (unwound && call.flight && at > 1)
        t->open.data[at - 2].flight = call.flight;
    drop(t, at - 1);
}

/* The innermost of that name. One that a generator waited in began earlier: at `since`. */
static void end_region(struct fm_trigger_scan *scan, struct trigger_thread *t, uint32_t name,
                       uint64_t since, uint64_t ticks)
{
    for (size_t i = t->open.len; i; i--) {
        struct trigger_open region = t->open.data[i - 1];
        if (!region.region || region.id != name)
            continue;
        if (region.flight && i > 1)
            t->open.data[i - 2].flight = region.flight;
        drop(t, i - 1);
        took(scan, t, FM_NAMED_REGION, name, since && since < region.begin ? since : region.begin,
             ticks);
        return;
    }
}

static void end_span(struct fm_trigger_scan *scan, struct trigger_thread *t, uint32_t token,
                     uint64_t ticks)
{
    for (size_t i = scan->spans.len; i; i--) {
        struct trigger_span span = scan->spans.data[i - 1];
        if (span.token != token)
            continue;
        scan->spans.data[i - 1] = scan->spans.data[--scan->spans.len];
        took(scan, t, FM_NAMED_REGION, span.name, span.begin, ticks);
        return;
    }
}

/* ---- words ---- */

static void take_escape(struct fm_trigger_scan *scan, struct trigger_thread *t,
                        const struct fm_word *word, uint64_t ticks)
{
    uint32_t first = fm_word_u32(word, 0);
    switch (word->escape) {
    case FM_TRACE_UNWIND:
        end_call(scan, t, ticks, true, true);
        break;
    case FM_TRACE_CLOSE:
        for (uint32_t n = first; n && (t->open.len || t->beyond); n--)
            end_call(scan, t, ticks, false, false);
        break;
    case FM_TRACE_THROW:
        push(t, first, false, ticks);
        break;
    case FM_TRACE_OPEN:
        push(t, first, false, fm_word_u64(word, 2) < ticks ? fm_word_u64(word, 2) : ticks);
        break;
    case FM_TRACE_LOST:
        t->open.len = 0;
        t->beyond = 0;
        break;
    case FM_TRACE_RAISE:
        raised(scan, t, first, ticks);
        break;
    case FM_TRACE_REGION_BEGIN:
        push(t, first, true, ticks);
        break;
    case FM_TRACE_REGION_END:
        end_region(scan, t, first, fm_word_u64(word, 2), ticks);
        break;
    case FM_TRACE_ASYNC_BEGIN:
        if (scan->spans.len < ASYNC_MAX)
            fm_vec_push(&scan->spans,
                        ((struct trigger_span){ ticks, first, fm_word_u32(word, 2) }));
        break;
    case FM_TRACE_ASYNC_END:
        end_span(scan, t, first, ticks);
        break;
    default:
        break;
    }
}

/* True: it may be taken back, and so may what stands before it. */
static bool take_word(struct fm_trigger_scan *scan, struct trigger_thread *t,
                      const struct fm_word *word, uint64_t ticks)
{
    switch (word->op) {
    case FM_TRACE_CALL:
        push(t, word->func, false, ticks);
        return true;
    case FM_TRACE_ESCAPE:
        take_escape(scan, t, word, ticks);
        return word->escape == FM_TRACE_TIME || word->escape == FM_TRACE_RESUMED_AFTER ||
               word->escape == FM_TRACE_THROW;
    default:
        end_call(scan, t, ticks, true, false);
        return false;
    }
}

static struct trigger_thread *find_thread(struct fm_trigger_scan *scan, uint32_t thread)
{
    bool is_new;
    uint32_t *index = fm_map_at(&scan->thread_of, thread, (uint32_t)scan->threads.len, &is_new);
    if (is_new)
        fm_vec_push(&scan->threads, ((struct trigger_thread){ 0 }));
    return &scan->threads.data[*index];
}

void fm_trigger_scan_chunk(struct fm_trigger_scan *scan, const struct fm_trigger_chunk *chunk,
                           const struct fm_trace_pack *clock)
{
    struct trigger_thread *t = find_thread(scan, chunk->thread);
    struct fm_word word;
    if (t->begun && chunk->sequence < t->sequence)
        return;
    if (!t->begun || chunk->sequence != t->sequence) {
        t->begun = true;
        t->sequence = chunk->sequence;
        t->tid = chunk->tid;
        t->done = 0;
        t->ticks =
            chunk->ticks > t->ticks && chunk->ticks < FM_WORDS_TICKS_MAX ? chunk->ticks : t->ticks;
    }
    scan->clock = clock;
    size_t from = t->done < chunk->count ? t->done : chunk->count;
    struct fm_words w =
        fm_words_over(chunk->words + from, chunk->count - from, chunk->shift, t->ticks);
    size_t done = from, open = t->open.len;
    uint64_t ticks = t->ticks, beyond = t->beyond;
    while (fm_words_next(&w, &word)) {
        if (take_word(scan, t, &word, w.ticks) && !chunk->whole)
            continue;
        done = (size_t)(w.at - chunk->words);
        ticks = w.ticks;
        open = t->open.len;
        beyond = t->beyond;
    }
    t->done = done;
    t->ticks = ticks;
    t->open.len = open;
    t->beyond = beyond;
    if (w.bad && chunk->whole)
        t->open.len = 0; /* nobody knows where it is */
}

size_t fm_trigger_scan_done(const struct fm_trigger_scan *scan, uint32_t thread, uint64_t sequence)
{
    const uint32_t *index = fm_map_find(&scan->thread_of, thread);
    const struct trigger_thread *t = index ? &scan->threads.data[*index] : NULL;
    return t && t->begun && t->sequence == sequence ? t->done : 0;
}

void fm_trigger_describe(const struct fm_trigger *trigger, char *out, size_t size)
{
    static const char *const said[] = {
        [FM_TRIGGER_RAISED] = "was raised", [FM_TRIGGER_UNCAUGHT] = "was not caught"
    };
    if (trigger->rule->kind != FM_TRIGGER_SLOW)
        snprintf(out, size, "%s %s", trigger->what, said[trigger->rule->kind]);
    else if (trigger->took_ns >= 1000000000)
        snprintf(out, size, "%s took %.3f s", trigger->what, (double)trigger->took_ns / 1e9);
    else
        snprintf(out, size, "%s took %.3f ms", trigger->what, (double)trigger->took_ns / 1e6);
}
