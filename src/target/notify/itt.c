/*
 * ITT: being the collector that a program's ittnotify loads, by INTEL_LIBITTNOTIFY64.
 *
 * The part of ittnotify that is linked into a program loads this library at its first call and calls __itt_api_init()
 * with its own state, in which there is a list of all its functions by name and of where the pointers to them are. What
 * is put there is called from then on; the others get what they have for "no collector". Tasks and events are
 * regions, overlapped tasks and regions spans, markers instants. Domains share one timeline.
 *
 * Facts of ittnotify relied on (version 3): the layout of its state up to that list, which begins with a magic number,
 * that of domains (programs test `flags`) and string handles, and identifiers of three numbers that are passed by value.
 */
#include <fathom.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "target/notify/spans.h"

#define EVENTS 4096 /* that a program may name */

struct itt_domain {
    volatile int flags; /* 0: the program does not call us for it */
    const char *name;
    void *wide;
    int extra;
    void *more;
    struct itt_domain *next;
};

struct itt_string_handle {
    const char *text;
    void *wide;
    int extra;
    void *more;
    struct itt_string_handle *next;
};

/* One function of ittnotify, and its state. */
struct itt_api {
    const char *name;
    void **place;
    void *first, *none;
    int group;
};

struct itt_state {
    unsigned char magic[8];
    unsigned long version[3];
    volatile long initialized, mutex_initialized, counter;
    pthread_mutex_t mutex;
    void *library, *on_error;
    const char **path;
    struct itt_api *functions; /* ends with a name that is NULL */
};

struct itt_id {
    unsigned long long d1, d2, d3;
};

static const char *text_of(const struct itt_string_handle *name)
{
    return name && name->text ? name->text : "(no name)";
}

static uint64_t number_of(struct itt_id id)
{
    return (id.d1 ^ id.d2 * 0x9e3779b97f4a7c15u ^ id.d3 * 0xc4ceb9fe1a85ec53u) | 1;
}

/* ---- domains and names: kept for as long as the program runs ------------------------------ */

static struct itt_domain *domain_create(const char *name)
{
    struct itt_domain *domain = calloc(1, sizeof *domain);
    if (!domain)
        return NULL;
    domain->flags = 1;
    domain->name = name ? strdup(name) : NULL;
    return domain;
}

static struct itt_string_handle *string_handle_create(const char *text)
{
    struct itt_string_handle *handle = calloc(1, sizeof *handle);
    if (handle)
        handle->text = text ? strdup(text) : NULL;
    return handle;
}

/* ---- tasks ------------------------------------------------------------------------------- */

static void task_begin(const struct itt_domain *domain, struct itt_id task, struct itt_id parent,
                       const struct itt_string_handle *name)
{
    (void)domain, (void)task, (void)parent;
    fathom_region_begin(text_of(name));
}

static void task_end(const struct itt_domain *domain)
{
    (void)domain;
    fathom_region_end();
}

static void task_begin_overlapped(const struct itt_domain *domain, struct itt_id task,
                                  struct itt_id parent, const struct itt_string_handle *name)
{
    (void)domain, (void)parent;
    fm_notify_span_begin_as(number_of(task), text_of(name));
}

static void task_end_overlapped(const struct itt_domain *domain, struct itt_id task)
{
    (void)domain;
    fm_notify_span_end_as(number_of(task));
}

static void region_begin(const struct itt_domain *domain, struct itt_id id, struct itt_id parent,
                         const struct itt_string_handle *name)
{
    (void)domain, (void)parent;
    fm_notify_span_begin_as(number_of(id), text_of(name));
}

static void region_end(const struct itt_domain *domain, struct itt_id id)
{
    (void)domain;
    fm_notify_span_end_as(number_of(id));
}

/* ---- markers and events ------------------------------------------------------------------ */

static void marker(const struct itt_domain *domain, struct itt_id id,
                   const struct itt_string_handle *name, int scope)
{
    (void)domain, (void)id, (void)scope;
    fathom_instant(text_of(name));
}

static char *events[EVENTS]; /* from 1 on */
static int event_count;

static int event_create(const char *name, int len)
{
    int number = __atomic_add_fetch(&event_count, 1, __ATOMIC_RELAXED);
    if (number >= EVENTS || !name || len < 0)
        return 0;
    __atomic_store_n(&events[number], strndup(name, (size_t)len), __ATOMIC_RELEASE);
    return number;
}

static int event_start(int event)
{
    const char *name =
        event > 0 && event < EVENTS ? __atomic_load_n(&events[event], __ATOMIC_ACQUIRE) : NULL;
    fathom_region_begin(name ? name : "(no name)");
    return 0;
}

static int event_end(int event)
{
    (void)event;
    fathom_region_end();
    return 0;
}

/* ---- putting them in place --------------------------------------------------------------- */

static const struct {
    const char *name;
    void *function;
} ours[] = {
    { "__itt_domain_create", (void *)domain_create },
    { "__itt_string_handle_create", (void *)string_handle_create },
    { "__itt_task_begin", (void *)task_begin },
    { "__itt_task_end", (void *)task_end },
    { "__itt_task_begin_overlapped", (void *)task_begin_overlapped },
    { "__itt_task_end_overlapped", (void *)task_end_overlapped },
    { "__itt_region_begin", (void *)region_begin },
    { "__itt_region_end", (void *)region_end },
    { "__itt_marker", (void *)marker },
    { "__itt_event_create", (void *)event_create },
    { "__itt_event_start", (void *)event_start },
    { "__itt_event_end", (void *)event_end },
};

static void *function_of(const struct itt_api *api)
{
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(api->name, ours[i].name) == 0)
            return ours[i].function;
    return api->none;
}

FM_NOTIFY_EXPORT void __itt_api_init(struct itt_state *state, int groups);
FM_NOTIFY_EXPORT void __itt_api_init(struct itt_state *state, int groups)
{
    static const unsigned char magic[] = { 0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30 };
    (void)groups;
    if (!state || memcmp(state->magic, magic, sizeof magic) != 0 || !state->functions)
        return;
    for (struct itt_api *api = state->functions; api->name; api++)
        if (api->place)
            *api->place = function_of(api);
}
