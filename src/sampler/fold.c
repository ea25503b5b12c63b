/* Ended threads put together; see fold.h. */
#include "sampler/fold.h"

#include <stdio.h>
#include <string.h>

#include "sampler/threads.h"

struct folding {
    struct fm_target *t;
    uint32_t *numbers;           /* of a thread → its new number, or that of the record it becomes part of */
    uint32_t *rows, *waits;      /* of the tally, likewise */
    FM_VEC(struct fm_watched_thread *) kept;
    struct fm_strings *names;    /* of folded records … */
    FM_VEC(uint32_t) by_name;    /* … id of a name → new number */
    struct fm_tally tally;
};

static bool has_ended(const struct fm_target *t, const struct fm_watched_thread *th)
{
    return th->tasks_of ? t->threads.data[th->tasks_of - 1]->gone : th->gone;
}

/* The name without its numbers; those of a version ("python3.14") stay. */
static void name_kind(const struct fm_target *t, const struct fm_watched_thread *th, char *into, size_t cap)
{
    const struct fm_watched_thread *owner = th->tasks_of ? t->threads.data[th->tasks_of - 1] : th;
    const char *name = owner->name ? owner->name : "";
    size_t len = (size_t)snprintf(into, cap, "%s", th->tasks_of ? "asyncio tasks of " : "");
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

static uint32_t keep(struct folding *f, struct fm_watched_thread *th)
{
    fm_vec_push(&f->kept, th);
    return (uint32_t)f->kept.len - 1;
}

static void remember_name(struct folding *f, const char *name, uint32_t number)
{
    uint32_t id = fm_strings_add_text(f->names, name);
    while (f->by_name.len <= id)
        fm_vec_push(&f->by_name, UINT32_MAX);
    f->by_name.data[id] = number;
}

/* The record that the ended thread becomes part of. */
static uint32_t record_of(struct folding *f, const struct fm_watched_thread *th)
{
    char name[128];
    name_kind(f->t, th, name, sizeof name);
    uint32_t id = fm_strings_add_text(f->names, name);
    if (id >= FM_FOLD_NAMES)
        id = fm_strings_add_text(f->names, strcpy(name, "other threads"));
    if (id < f->by_name.len && f->by_name.data[id] != UINT32_MAX)
        return f->by_name.data[id];
    struct fm_watched_thread *record = fm_calloc(1, sizeof *record);
    record->gone = true;
    record->syscall_fd = record->switches_fd = -1;
    record->wait = UINT32_MAX;
    record->name = fm_strdup(name);
    record->start_ns = th->start_ns;
    uint32_t number = keep(f, record);
    remember_name(f, name, number);
    return number;
}

/* Who stays, and under which number. */
static void fold_threads(struct folding *f)
{
    struct fm_target *t = f->t;
    for (size_t i = 0; i < t->threads.len; i++) {
        struct fm_watched_thread *th = t->threads.data[i];
        if (th->folded)
            remember_name(f, th->name, f->numbers[i] = keep(f, th));
        else if (!has_ended(t, th))
            f->numbers[i] = keep(f, th);
    }
    for (size_t i = 0; i < t->threads.len; i++) {
        const struct fm_watched_thread *th = t->threads.data[i];
        if (th->folded || !has_ended(t, th))
            continue;
        f->numbers[i] = record_of(f, th);
        struct fm_watched_thread *record = f->kept.data[f->numbers[i]];
        record->folded++;
        record->end_ns = th->end_ns > record->end_ns ? th->end_ns : record->end_ns;
    }
}

static void fold_tally(struct folding *f)
{
    const struct fm_tally *old = &f->t->tally;
    for (size_t i = 0; i < old->rows.len; i++) {
        const struct fm_tally_row *row = &old->rows.data[i];
        f->rows[i] = fm_tally_row(&f->tally, f->numbers[row->thread],
                                  row->n ? old->frames.data + row->first : NULL, row->n, row->partial);
        struct fm_tally_row *sum = &f->tally.rows.data[f->rows[i]];
        for (int k = 0; k < FM_STATE_COUNT; k++) {
            sum->samples[k] += row->samples[k];
            sum->ns[k] += row->ns[k];
        }
    }
    for (size_t i = 0; i < old->waits.len; i++) {
        struct fm_tally_wait wait = old->waits.data[i];
        if (wait.detail == FM_TALLY_HOLDER)
            wait.holder = f->numbers[wait.holder];
        f->waits[i] = fm_tally_wait(&f->tally, &wait);
        f->tally.waits.data[f->waits[i]].samples += wait.samples;
        f->tally.waits.data[f->waits[i]].ns += wait.ns;
    }
    for (size_t i = 0; i < old->before.seen.len; i++) {
        struct fm_tally_seen seen = old->before.seen.data[i];
        seen.row = f->rows[seen.row];
        fm_vec_push(&f->tally.before.seen, seen);
    }
    for (size_t i = 0; i < old->before.waits.len; i++)
        fm_vec_push(&f->tally.before.waits, f->waits[old->before.waits.data[i]]);
}

/* What a thread that stays knows by number. */
static void renumber(const struct folding *f, struct fm_watched_thread *th, uint32_t number)
{
    const struct fm_tally *old = &f->t->tally;
    th->number = number;
    if (th->row < old->rows.len)
        th->row = f->rows[th->row];
    if (th->wait < old->waits.len)
        th->wait = f->waits[th->wait];
    if (th->tasks_of)
        th->tasks_of = f->numbers[th->tasks_of - 1] + 1;
    if (th->tasks_in)
        th->tasks_in = f->numbers[th->tasks_in - 1] + 1;
    for (size_t i = 0; i < th->tasks.len; i++)
        th->tasks.data[i].row = f->rows[th->tasks.data[i].row];
}

static void take_over(struct folding *f)
{
    struct fm_target *t = f->t;
    for (size_t i = 0; i < t->live.len; i++)
        t->live.data[i] = f->numbers[t->live.data[i]];
    for (size_t i = 0; i < t->threads.len; i++) {
        struct fm_watched_thread *th = t->threads.data[i];
        if (f->kept.data[f->numbers[i]] == th)
            continue;
        fm_threads_drop(th);
    }
    for (size_t i = 0; i < f->kept.len; i++)
        renumber(f, f->kept.data[i], (uint32_t)i);
    t->threads.len = 0;
    for (size_t i = 0; i < f->kept.len; i++)
        fm_vec_push(&t->threads, f->kept.data[i]);
    fm_tally_release(&t->tally);
    t->tally = f->tally;
}

void fm_fold_ended(struct fm_target *t)
{
    size_t ended = t->threads.len - t->live.len;
    if (ended < t->ended_kept + FM_FOLD_THREADS)
        return;
    /* Each folding looks at all rows: not before they have become half as many again. */
    if (t->tally.rows.len < t->rows_kept + t->rows_kept / 2 && ended < t->ended_kept + 65536)
        return;
    struct folding f = { .t = t, .names = fm_strings_new() };
    f.numbers = fm_calloc(t->threads.len + 1, sizeof *f.numbers);
    f.rows = fm_calloc(t->tally.rows.len + 1, sizeof *f.rows);
    f.waits = fm_calloc(t->tally.waits.len + 1, sizeof *f.waits);
    fold_threads(&f);
    fold_tally(&f);
    take_over(&f);
    t->ended_kept = t->threads.len - t->live.len;
    t->rows_kept = t->tally.rows.len;
    fm_strings_free(f.names);
    fm_vec_release(&f.kept);
    fm_vec_release(&f.by_name);
    free(f.numbers);
    free(f.rows);
    free(f.waits);
}
