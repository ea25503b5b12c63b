/* Marks of a trace; see marks.h. */
#include "target/agent/trace/marks.h"

#include <errno.h>
#include <string.h>

#include "target/agent/trace/trace.h"

#define MOST_NAMES   65536u
#define WHOLE_NAMES  60000u /* from here on names that differ by a number alone share one */
#define LONGEST_NAME 4096u

static struct {
    uint32_t era; /* of the store that these are defined in */
    uint32_t count, next_token;
    struct fm_agent_table by_text; /* hash → id */
} names;

/* The trace, with a store of this process; NULL if there is none. */
static struct fm_collector *collector_now(void)
{
    struct fm_collector *c = fm_trace_collector();
    if (!c || !c->running)
        return NULL;
    if (c->forked)
        fm_collector_thread(c); /* which begins the store */
    if (c->forked || !c->store.header)
        return NULL;
    if (names.era != c->era) {
        fm_agent_table_release(&names.by_text);
        names.era = c->era;
        names.count = 0;
    }
    return c;
}

uint32_t fm_trace_names_era(void)
{
    const struct fm_collector *c = collector_now();
    return c ? c->era : 0;
}

static uint64_t hash_text(const char *text, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return fm_mix64(hash) | 1;
}

static uint32_t define(struct fm_collector *c, uint64_t hash, const char *text, size_t len)
{
    uint64_t number = names.count + 1;
    struct fm_store_text texts[] = { { text, len } };
    if (names.count >= MOST_NAMES ||
        !fm_store_define(&c->store, FM_LIVE_DEF_NAME, &number, 1, texts, 1))
        return 0;
    if (!fm_agent_table_set(&names.by_text, hash, (void *)(uintptr_t)number))
        return 0;
    return ++names.count;
}

static uint32_t find(struct fm_collector *c, const char *text, size_t len)
{
    uint64_t hash = hash_text(text, len);
    uint32_t known = (uint32_t)(uintptr_t)fm_agent_table_find(&names.by_text, hash);
    return known ? known : define(c, hash, text, len);
}

/* "request 4711" of a program that numbers them without end: "request …". */
static uint32_t find_shared(struct fm_collector *c, const char *text, size_t len)
{
    char shared[LONGEST_NAME + 4];
    size_t kept = 0;
    while (kept < len && !(text[kept] >= '0' && text[kept] <= '9'))
        kept++;
    memcpy(shared, text, kept);
    memcpy(shared + kept, "…", strlen("…"));
    return find(c, shared, kept + strlen("…"));
}

/* How much of the text there is room for, without half a character at its end. */
static size_t cut_text(const char *text, size_t len, size_t most)
{
    if (len <= most)
        return len;
    while (most && ((unsigned char)text[most] & 0xc0) == 0x80)
        most--;
    return most;
}

uint32_t fm_trace_name(const char *text, size_t len)
{
    struct fm_collector *c = collector_now();
    if (!c)
        return 0;
    int saved_errno = errno;
    len = cut_text(text, len, LONGEST_NAME);
    uint64_t hash = hash_text(text, len);
    uint32_t id = (uint32_t)(uintptr_t)fm_agent_table_find(&names.by_text, hash);
    if (!id)
        id = names.count < WHOLE_NAMES ? define(c, hash, text, len) : find_shared(c, text, len);
    errno = saved_errno;
    return id;
}

static void mark(enum fm_trace_escape kind, const uint32_t *numbers, unsigned count)
{
    struct fm_collector *c = collector_now();
    struct fm_agent_thread *t = c ? fm_collector_thread(c) : NULL;
    if (t)
        fm_trace_mark(c, t, kind, numbers, count);
}

void fm_trace_region_begin(uint32_t name)
{
    if (name)
        mark(FM_TRACE_REGION_BEGIN, &name, 1);
}

void fm_trace_region_resume(uint32_t name, uint64_t waited_ticks)
{
    uint64_t units = waited_ticks >> FM_TRACE_SHIFT;
    units = units ? units : 1; /* 0 would be a new entry */
    if (!name)
        return;
    mark(FM_TRACE_RESUMED_AFTER, (uint32_t[]){ (uint32_t)units, (uint32_t)(units >> 32) }, 2);
    mark(FM_TRACE_REGION_BEGIN, &name, 1);
}

void fm_trace_region_end(uint32_t name)
{
    if (name)
        mark(FM_TRACE_REGION_END, &name, 1);
}

void fm_trace_region_end_since(uint32_t name, uint64_t since)
{
    if (name)
        mark(FM_TRACE_REGION_END, (uint32_t[]){ name, (uint32_t)since, (uint32_t)(since >> 32) },
             since ? 3 : 1);
}

void fm_trace_value(struct fm_trace_valued of, uint32_t key, const char *text, size_t len)
{
    struct fm_collector *c = collector_now();
    struct fm_agent_thread *t = c ? fm_collector_thread(c) : NULL;
    if (key && t)
        fm_trace_mark_value(c, t, t->trace.last, key, of.of, of.token, text,
                            cut_text(text, len, FM_TRACE_VALUE_BYTES));
}

void fm_trace_counter(uint32_t name, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (name)
        mark(FM_TRACE_COUNTER, (uint32_t[]){ name, (uint32_t)bits, (uint32_t)(bits >> 32) }, 3);
}

void fm_trace_instant(uint32_t name)
{
    if (name)
        mark(FM_TRACE_INSTANT, &name, 1);
}

uint32_t fm_trace_async_begin(uint32_t name)
{
    if (!name || !fm_trace_active)
        return 0;
    if (++names.next_token == 0)
        names.next_token = 1;
    uint32_t token = names.next_token;
    mark(FM_TRACE_ASYNC_BEGIN, (uint32_t[]){ name, token }, 2);
    return token;
}

void fm_trace_async_end(uint32_t token)
{
    if (token)
        mark(FM_TRACE_ASYNC_END, &token, 1);
}
