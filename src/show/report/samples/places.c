/* Spots and waits as reports show them; see places.h. */
#include "show/report/samples/places.h"

#include <string.h>

static bool in_scope(const struct fm_report *r, uint32_t process)
{
    return r->scope.process == FM_NONE || process == FM_NONE || r->scope.process == process;
}

/* By everything that tells two places apart, so that equal ones come together. */
static int compare_identity(const void *left, const void *right)
{
    const struct fm_place *a = left, *b = right;
    const uint32_t x[] = { a->row,         a->spot.line,       a->spot.end_line,
                           a->spot.column, a->spot.end_column, a->wait.line,
                           a->wait.state,  a->wait.detail };
    const uint32_t y[] = { b->row,         b->spot.line,       b->spot.end_line,
                           b->spot.column, b->spot.end_column, b->wait.line,
                           b->wait.state,  b->wait.detail };
    for (size_t i = 0; i < FM_COUNT(x); i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static int compare_rank(const void *left, const void *right, void *data)
{
    const struct fm_place *a = left, *b = right;
    const struct fm_report *r = data;
    enum fm_sort_field field = r->query->sorts.len ? r->query->sorts.data[0] : FM_SORT_SELF;
    int order = 0;
    if (field == FM_SORT_CALLS || field == FM_SORT_PRIMITIVE)
        order = a->samples > b->samples ? -1 : a->samples < b->samples;
    else if (field == FM_SORT_NAME)
        order = strcmp(fm_names_name(r->names, a->row), fm_names_name(r->names, b->row));
    else if (field == FM_SORT_FILE)
        order = strcmp(fm_names_file(r->names, a->row), fm_names_file(r->names, b->row));
    else if (field == FM_SORT_LINE)
        order = 0; /* below */
    else
        order = a->ns > b->ns ? -1 : a->ns < b->ns;
    if (!order)
        order = compare_identity(left, right);
    return r->query->reverse ? -order : order;
}

static void combine(struct fm_places *places)
{
    size_t kept = 0;
    if (!places->all.len)
        return;
    qsort(places->all.data, places->all.len, sizeof *places->all.data, compare_identity);
    for (size_t i = 1; i < places->all.len; i++) {
        struct fm_place *last = &places->all.data[kept], *next = &places->all.data[i];
        if (compare_identity(last, next) != 0) {
            places->all.data[++kept] = *next;
            continue;
        }
        last->samples = fm_sum(last->samples, next->samples);
        last->ns = fm_sum(last->ns, next->ns);
    }
    places->all.len = kept + 1;
}

static void gather_spots(struct fm_places *places, const struct fm_report *r,
                         const uint32_t *row_of)
{
    for (size_t i = 0; i < r->p->samples.spots.len; i++) {
        const struct fm_spot *spot = &r->p->samples.spots.data[i];
        struct fm_place place = { row_of[spot->func], *spot, { 0 }, spot->samples, spot->ns };
        if (place.row != FM_NONE && in_scope(r, spot->process))
            fm_vec_push(&places->all, place);
    }
}

static void gather_waits(struct fm_places *places, const struct fm_report *r,
                         const uint32_t *row_of)
{
    for (size_t i = 0; i < r->p->samples.waits.len; i++) {
        const struct fm_wait *wait = &r->p->samples.waits.data[i];
        struct fm_place place = { row_of[wait->func], { 0 }, *wait, wait->samples, wait->ns };
        if (place.row != FM_NONE && in_scope(r, wait->process))
            fm_vec_push(&places->all, place);
    }
}

void fm_places_init(struct fm_places *places, const struct fm_report *r, enum fm_part part)
{
    size_t n = r->p->functions.len;
    fm_autofree uint32_t *row_of = fm_malloc(n * sizeof *row_of);
    memset(places, 0, sizeof *places);
    memset(row_of, 0xff, n * sizeof *row_of); /* FM_NONE */
    for (size_t i = 0; i < r->selection.rows.len; i++) {
        uint32_t row = r->selection.rows.data[i];
        row_of[r->flat->rows.data[row].func] = row;
    }
    struct fm_flat_total all = fm_flat_total(r->flat);
    places->all_samples = all.samples;
    places->all_ns = all.self_ns;
    if (part == FM_PART_SPOTS)
        gather_spots(places, r, row_of);
    else
        gather_waits(places, r, row_of);
    combine(places);
    if (places->all.len)
        qsort_r(places->all.data, places->all.len, sizeof *places->all.data, compare_rank,
                (void *)r);
    places->of = places->all.len;
    if (r->rows_max >= 0 && places->all.len > (size_t)r->rows_max)
        places->all.len = (size_t)r->rows_max;
}

void fm_places_release(struct fm_places *places)
{
    fm_vec_release(&places->all);
}

const struct fm_text *fm_place_text(const struct fm_report *r, struct fm_texts **texts,
                                    const struct fm_place *place)
{
    const char *why;
    if (!*texts)
        *texts = fm_texts_new(r->p);
    return fm_texts_find(*texts, place->spot.func, &why);
}
