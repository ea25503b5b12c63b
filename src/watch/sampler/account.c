/* What was counted of one target; see account.h. */
#include "watch/sampler/account.h"

#include <stdio.h>
#include <string.h>

#include "record/model/samples.h"
#include "watch/sampler/threads.h"

#define OTHERS "other threads"

struct fm_account *fm_account_new(void)
{
    struct fm_account *a = fm_calloc(1, sizeof *a);
    a->details = fm_strings_new();
    a->exit_status = -1;
    return a;
}

void fm_account_free(struct fm_account *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->threads.len; i++)
        free(a->threads.data[i].name);
    fm_vec_release(&a->threads);
    fm_tally_release(&a->tally);
    fm_tally_release(&a->taken);
    fm_account_order_release(&a->order);
    fm_map_release(&a->place_of);
    fm_strings_free(a->details);
    fm_vec_release(&a->detail_of);
    fm_vec_release(&a->codes);
    fm_vec_release(&a->regions);
    free(a);
}

/* --- taking over ------------------------------------------------------------------------------ */

static void take_thread(struct fm_account *a, const struct fm_target *t,
                        struct fm_watched_thread *th)
{
    bool is_new;
    uint32_t place = *fm_map_at(&a->place_of, th->number, (uint32_t)a->threads.len, &is_new);
    if (is_new)
        fm_vec_push(&a->threads, ((struct fm_account_thread){ .number = th->number }));
    struct fm_account_thread *own = &a->threads.data[place];
    const struct fm_watched_thread *named = th->tasks_of ? th->tasks_of : th;
    const char *name = named->name ? named->name : "";
    fm_account_order_take(&a->order, place, &th->order);
    own->tid = (uint32_t)th->tid;
    own->tasks = th->tasks_of != NULL;
    own->start_ns = th->start_ns;
    own->end_ns = th->end_ns ? th->end_ns : t->last_round_ns;
    fm_threads_switches(th, &(uint64_t){ 0 }); /* reads the thread's processor time once more */
    own->cpu_ns = th->cpu_ns - th->cpu_first_ns;
    if (!own->name || strcmp(own->name, name) != 0) {
        free(own->name);
        own->name = fm_strdup(name);
    }
}

static void take_threads(struct fm_account *a, struct fm_target *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->live.len; i++) {
        take_thread(a, t, t->live.data[i]);
        if (t->live.data[i]->tasks_in)
            take_thread(a, t, t->live.data[i]->tasks_in);
    }
    for (size_t i = 0; i < t->ended.len; i++)
        take_thread(a, t, t->ended.data[i]);
    for (size_t i = 0; i < t->ended.len; i++) {
        struct fm_watched_thread *th = t->ended.data[i];
        /* Once a later round is over, the thread's last sample has all its time. */
        bool over = t->gone || th->end_ns < t->last_round_ns;
        a->threads.data[*fm_map_find(&a->place_of, th->number)].final = over;
        if (over)
            fm_threads_drop(th);
        else
            t->ended.data[kept++] = th;
    }
    t->ended.len = kept;
}

void fm_account_take(struct fm_account *a, struct fm_target *t)
{
    fm_account_settle(a);
    take_threads(a, t);
    fm_account_order_take_times(&a->order, &t->order);
    a->taken = fm_target_take(t);
    for (uint32_t id = (uint32_t)a->detail_of.len; id < fm_strings_count(t->details); id++)
        fm_vec_push(&a->detail_of, fm_strings_add_text(a->details, fm_strings_get(t->details, id)));
    for (size_t i = a->codes.len; i < t->codes.list.len; i++)
        fm_vec_push(&a->codes, t->codes.list.data[i]);
    for (size_t i = a->regions.len; i < t->regions.names.len; i++)
        fm_vec_push(&a->regions, fm_strings_add_text(a->details, t->regions.names.data[i]));
    a->counts = t->counts;
    a->way = t->options.way;
    a->seat_refused = t->seat_refused;
    a->stop_refused = t->stop_refused;
    a->outruns_us = t->outruns_us;
    a->end_ns = t->end_ns;
    a->last_round_ns = t->last_round_ns;
    a->gone = t->gone;
    /* The kernel tells when the parent has asked for the status: until then, ask each time. */
    if (a->gone && a->exit_status < 0 && fm_exit_watch_status(&t->exit, t->pid, &a->exit_status))
        fm_exit_watch_close(&t->exit);
}

/* --- folding ---------------------------------------------------------------------------------- */

struct folding {
    struct fm_account *a;
    uint32_t *places; /* old → new */
    bool *folded;     /* by old place: it became part of another */
    FM_VEC(struct fm_account_thread) kept;
    struct fm_strings *names; /* of folded records … */
    FM_VEC(uint32_t) by_name; /* … id of a name → its place */
};

/* The name without its numbers; those of a version ("python3.14") stay. */
static void name_kind(const struct fm_account_thread *th, char *into, size_t cap)
{
    const char *name = th->name;
    size_t len = (size_t)snprintf(into, cap, "%s", th->tasks ? FM_TASKS_THREAD : "");
    while (*name && len + sizeof "…" < cap) {
        size_t digits = strspn(name, "0123456789");
        if (!digits) {
            into[len++] = *name++;
        } else if ((name[digits] == '.' || (len && into[len - 1] == '.')) && len + digits < cap) {
            memcpy(into + len, name, digits);
            len += digits;
            name += digits;
        } else {
            memcpy(into + len, "…", strlen("…"));
            len += strlen("…");
            name += digits;
        }
    }
    into[len] = '\0';
}

static uint32_t keep(struct folding *f, struct fm_account_thread th)
{
    fm_vec_push(&f->kept, th);
    return (uint32_t)f->kept.len - 1;
}

static void remember_name(struct folding *f, const char *name, uint32_t place)
{
    uint32_t id = fm_strings_add_text(f->names, name);
    while (f->by_name.len <= id)
        fm_vec_push(&f->by_name, UINT32_MAX);
    f->by_name.data[id] = place;
}

/* The record that the ended thread becomes part of. */
static uint32_t record_of(struct folding *f, const struct fm_account_thread *th)
{
    char name[128];
    name_kind(th, name, sizeof name);
    uint32_t id = fm_strings_add_text(f->names, name);
    if (id >= FM_ACCOUNT_NAMES) {
        snprintf(name, sizeof name, "%s", OTHERS);
        id = fm_strings_add_text(f->names, name);
    }
    if (id < f->by_name.len && f->by_name.data[id] != UINT32_MAX)
        return f->by_name.data[id];
    struct fm_account_thread record = {
        .number = th->number, .final = true, .start_ns = th->start_ns, .name = fm_strdup(name)
    };
    uint32_t place = keep(f, record);
    remember_name(f, name, place);
    return place;
}

/* Who stays, and at which place. */
static void fold_threads(struct folding *f)
{
    struct fm_account *a = f->a;
    for (size_t i = 0; i < a->threads.len; i++) {
        const struct fm_account_thread *th = &a->threads.data[i];
        if (th->folded)
            remember_name(f, th->name, f->places[i] = keep(f, *th));
        else if (!th->final)
            f->places[i] = keep(f, *th);
    }
    for (size_t i = 0; i < a->threads.len; i++) {
        const struct fm_account_thread *th = &a->threads.data[i];
        if (th->folded || !th->final)
            continue;
        f->places[i] = record_of(f, th);
        f->folded[i] = true;
        struct fm_account_thread *record = &f->kept.data[f->places[i]];
        record->folded++;
        record->cpu_ns += th->cpu_ns;
        record->end_ns = th->end_ns > record->end_ns ? th->end_ns : record->end_ns;
        free(th->name);
    }
}

static uint32_t new_place(void *data, uint32_t place)
{
    return ((const struct folding *)data)->places[place];
}

static uint32_t same_detail(void *data, uint32_t detail)
{
    (void)data;
    return detail;
}

static void take_over(struct folding *f)
{
    struct fm_account *a = f->a;
    struct fm_tally sum = { 0 };
    fm_autofree uint32_t *rows = fm_calloc(a->tally.rows.len + 1, sizeof *rows);
    fm_tally_add_all(&sum, &a->tally, new_place, same_detail, f, rows);
    fm_account_order_move(&a->order, f->places, f->folded, rows);
    fm_tally_release(&a->tally);
    a->tally = sum;
    fm_map_release(&a->place_of);
    a->threads.len = a->ended_kept = 0;
    for (size_t i = 0; i < f->kept.len; i++) {
        fm_vec_push(&a->threads, f->kept.data[i]);
        a->ended_kept += f->kept.data[i].final;
        if (!f->kept.data[i].final)
            fm_map_at(&a->place_of, f->kept.data[i].number, (uint32_t)i, NULL);
    }
}

static void fold_ended(struct fm_account *a)
{
    size_t ended = 0;
    for (size_t i = 0; i < a->threads.len; i++)
        ended += a->threads.data[i].final;
    if (ended < a->ended_kept + FM_ACCOUNT_THREADS)
        return;
    struct folding f = { .a = a, .names = fm_strings_new() };
    f.places = fm_calloc(a->threads.len + 1, sizeof *f.places);
    f.folded = fm_calloc(a->threads.len + 1, sizeof *f.folded);
    fold_threads(&f);
    take_over(&f);
    fm_strings_free(f.names);
    fm_vec_release(&f.kept);
    fm_vec_release(&f.by_name);
    free(f.places);
    free(f.folded);
}

/* --- adding up -------------------------------------------------------------------------------- */

static uint32_t place_of(void *data, uint32_t number)
{
    const uint32_t *place = fm_map_find(&((const struct fm_account *)data)->place_of, number);
    return place ? *place : 0; /* a thread is taken before what was counted of it */
}

static uint32_t own_detail(void *data, uint32_t detail)
{
    const struct fm_account *a = data;
    return detail < a->detail_of.len ? a->detail_of.data[detail] : 0;
}

void fm_account_settle(struct fm_account *a)
{
    if (!a->taken.rows.len)
        return;
    fm_autofree uint32_t *rows = fm_calloc(a->taken.rows.len + 1, sizeof *rows);
    fm_tally_add_all(&a->tally, &a->taken, place_of, own_detail, a, rows);
    fm_tally_release(&a->taken);
    fm_account_order_settle(&a->order, rows);
    fold_ended(a);
}
