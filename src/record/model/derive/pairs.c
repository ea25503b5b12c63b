/* The functions of two profiles; see pairs.h. */
#include "record/model/derive/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/memory.h"
#include "record/model/derive/bare_names.h"

/* ---- functions that are called the same ---- */

struct function_place {
    const struct fm_function *f;
    uint32_t id;
};

static int by_number(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static int by_name(const struct fm_function *a, const struct fm_function *b)
{
    int order = by_number(a->file, b->file);
    if (!order)
        order = by_number(a->qualname, b->qualname);
    if (!order)
        order = by_number(a->name, b->name);
    return order ? order : by_number(a->kind, b->kind);
}

static int place_order(const void *left, const void *right)
{
    const struct function_place *a = left, *b = right;
    int order = by_name(a->f, b->f);
    if (!order)
        order = by_number(a->f->line, b->f->line);
    if (!order)
        order = by_number(a->f->twin, b->f->twin);
    return order ? order : by_number(a->id, b->id);
}

uint32_t *fm_function_ordinals_new(const struct fm_profile *p)
{
    size_t n = p->functions.len;
    fm_autofree struct function_place *places = fm_calloc(n, sizeof *places);
    uint32_t *ordinals = fm_calloc(n, sizeof *ordinals);
    for (size_t i = 0; i < n; i++)
        places[i] = (struct function_place){ &p->functions.data[i], (uint32_t)i };
    if (n)
        qsort(places, n, sizeof *places, place_order);
    for (size_t i = 1; i < n; i++)
        if (by_name(places[i - 1].f, places[i].f) == 0)
            ordinals[places[i].id] = ordinals[places[i - 1].id] + 1;
    return ordinals;
}

/* ---- files ---- */

#define ENDS_MAX 4 /* components of a path by which a file is looked for in another folder */

/* Strings of both profiles as one; a file of the first that is the second's is called as there. */
struct file_pairing {
    const struct fm_profile *const *p;
    struct fm_strings *texts;
    FM_VEC(uint8_t) sides;   /* by text: which profiles have it as a file, a bit each */
    FM_VEC(uint32_t) called; /* by text: the file that it is */
};

static uint32_t text_of(struct file_pairing *pairing, int side, uint32_t string)
{
    const struct fm_strings *from = pairing->p[side]->strings;
    uint32_t text =
        fm_strings_add(pairing->texts, fm_strings_get(from, string), fm_strings_len(from, string));
    while (pairing->sides.len <= text) {
        fm_vec_push(&pairing->called, (uint32_t)pairing->sides.len);
        fm_vec_push(&pairing->sides, 0);
    }
    return text;
}

static void find_files(struct file_pairing *pairing)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < pairing->p[side]->functions.len; i++) {
            const struct fm_function *f = &pairing->p[side]->functions.data[i];
            uint32_t text = text_of(pairing, side, f->file);
            const char *file = fm_profile_text(pairing->p[side], f->file);
            if (f->kind == FM_FUNCTION_PYTHON && *file && *file != '<')
                pairing->sides.data[text] |= (uint8_t)(1 << side);
        }
}

/* The last `count` components of a path; NULL if it has not so many. What a relative one is below is not known. */
static const char *end_of(const char *path, int count, struct fm_buffer *whole)
{
    fm_buffer_clear(whole);
    if (*path != '/') {
        fm_buffer_addf(whole, "/%s", strncmp(path, "./", 2) == 0 ? path + 2 : path);
        path = fm_buffer_text(whole);
    }
    const char *end = path + strlen(path);
    while (end > path && count) {
        end--;
        count -= *end == '/';
    }
    return count ? NULL : end;
}

/* How many files of each side end so, and the last of them. */
struct path_end {
    uint32_t count[2], file[2];
};

static void match_ends(struct file_pairing *pairing, int components)
{
    struct fm_strings *ends = fm_strings_new();
    FM_VEC(struct path_end) known = { 0 };
    fm_autobuffer whole = FM_BUFFER_INIT;
    for (uint32_t i = 0; i < pairing->sides.len; i++) {
        uint8_t sides = pairing->sides.data[i];
        const char *end = end_of(fm_strings_get(pairing->texts, i), components, &whole);
        if ((sides != 1 && sides != 2) || pairing->called.data[i] != i || !end)
            continue;
        uint32_t at = fm_strings_add(ends, end, strlen(end));
        while (known.len <= at)
            fm_vec_push(&known, (struct path_end){ 0 });
        known.data[at].count[sides - 1]++;
        known.data[at].file[sides - 1] = i;
    }
    for (size_t i = 0; i < known.len; i++) {
        const struct path_end *end = &known.data[i];
        if (end->count[0] != 1 || end->count[1] != 1)
            continue;
        pairing->called.data[end->file[0]] = end->file[1];
        pairing->sides.data[end->file[1]] = 3;
    }
    fm_vec_release(&known);
    fm_strings_free(ends);
}

/* ---- pairs ---- */

/* What two functions that are the same have in common. Of bare names (bare_names.h) the qualified one is
 * FM_NONE. */
struct pair_key {
    uint32_t kind, name, qualname, file, ordinal, nth;
};

static struct pair_key *keys_new(struct file_pairing *pairing, int side)
{
    const struct fm_profile *p = pairing->p[side];
    fm_autofree uint32_t *ordinals = fm_function_ordinals_new(p);
    struct pair_key *keys = fm_calloc(p->functions.len + 1, sizeof *keys);
    for (size_t i = 0; i < p->functions.len; i++) {
        const struct fm_function *f = &p->functions.data[i];
        uint32_t file = text_of(pairing, side, f->file);
        keys[i] = (struct pair_key){
            .kind = f->kind,
            .name = text_of(pairing, side, f->name),
            .qualname = text_of(pairing, side, f->qualname ? f->qualname : f->name),
            .ordinal = ordinals[i],
        };
        keys[i].file = pairing->called.data[file];
    }
    return keys;
}

static void match_bare_names(const struct fm_profile *const p[2], struct pair_key *const keys[2])
{
    FM_VEC(struct fm_bare_name) all = { 0 };
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t i = 0; i < p[side]->functions.len; i++) {
            const struct pair_key *key = &keys[side][i];
            struct fm_bare_name bare = { side,          i,
                                         key->file,     key->name,
                                         key->qualname, p[side]->functions.data[i].line };
            if (key->kind == FM_FUNCTION_PYTHON)
                fm_vec_push(&all, bare);
        }
    fm_bare_names_match(all.data, all.len);
    for (size_t i = 0; i < all.len; i++) {
        struct pair_key *key = &keys[all.data[i].side][all.data[i].id];
        if (!all.data[i].found)
            continue;
        key->qualname = FM_NONE;
        key->ordinal = all.data[i].place;
        key->nth = all.data[i].nth;
    }
    fm_vec_release(&all);
}

void fm_pairs_init(struct fm_pairs *pairs, const struct fm_profile *const p[2])
{
    struct file_pairing pairing = { .p = p, .texts = fm_strings_new() };
    struct fm_strings *known = fm_strings_new();
    find_files(&pairing);
    for (int components = ENDS_MAX; components > 0; components--)
        match_ends(&pairing, components);
    struct pair_key *const keys[2] = { keys_new(&pairing, 0), keys_new(&pairing, 1) };
    match_bare_names(p, keys);
    for (int side = 0; side < 2; side++) {
        size_t n = p[side]->functions.len;
        pairs->of[side] = fm_malloc((n + 1) * sizeof *pairs->of[side]);
        for (size_t i = 0; i < n; i++)
            pairs->of[side][i] =
                fm_strings_add(known, &keys[side][i], sizeof keys[side][i]) - 1; /* 0 is "" */
        free(keys[side]);
    }
    pairs->count = fm_strings_count(known) - 1;
    fm_strings_free(known);
    fm_strings_free(pairing.texts);
    fm_vec_release(&pairing.sides);
    fm_vec_release(&pairing.called);
}

void fm_pairs_release(struct fm_pairs *pairs)
{
    free(pairs->of[0]);
    free(pairs->of[1]);
    *pairs = (struct fm_pairs){ 0 };
}
