/* The last looks as text; see look_keep.h. */
#include "watch/sampler/look_keep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME "FATHOM_KEEP_LOOKS"
#define KEPT 64u

/* One more climb over the same pages, by somebody who writes down what it asks for. */
struct keeping {
    struct fm_looker *k;
    struct fm_map words, codes; /* addresses that were asked for */
};

static enum fm_climb_memory memory(void *data, fm_addr at, void *into, size_t len, fm_addr *want)
{
    struct keeping *keep = data;
    if (fm_snapshot_read(&keep->k->snapshot, at, into, len, want) != FM_SNAPSHOT_HERE)
        return FM_MEMORY_NONE;
    for (fm_addr word = at & ~(fm_addr)7; word < at + len; word += 8)
        fm_map_at(&keep->words, word, 0, NULL);
    return FM_MEMORY_HERE;
}

static enum fm_climb_code code(void *data, fm_addr at, uint64_t instr, struct fm_raw_frame *ret)
{
    struct keeping *keep = data;
    enum fm_climb_code answer = fm_codes_fit(keep->k->codes, at, instr, ret);
    if (answer == FM_CODE_FITS || answer == FM_CODE_HIDDEN)
        *fm_map_at(&keep->codes, at, 0, NULL) = ret->code;
    return answer == FM_CODE_MISSING ? FM_CODE_MISFIT : answer;
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = ((const struct fm_map_slot *)a)->key, y = ((const struct fm_map_slot *)b)->key;
    return x < y ? -1 : x > y;
}

/* The entries of a map in the order of their keys. */
static struct fm_map_slot *sorted(const struct fm_map *map)
{
    struct fm_map_slot *slots = fm_malloc((map->len + 1) * sizeof *slots);
    size_t n = 0;
    for (size_t i = 0; i < map->cap; i++) {
        if (map->slots[i].used)
            slots[n++] = map->slots[i];
    }
    qsort(slots, n, sizeof *slots, by_key);
    return slots;
}

static void write_layout(FILE *f, const struct fm_layout *l)
{
    fprintf(f, "python %u.%u.%u\n", l->version_hex >> 24, l->version_hex >> 16 & 255,
            l->version_hex >> 8 & 255);
#define VALUE(name)                                                                                \
    if ((uint32_t)l->name != FM_ABSENT)                                                            \
        fprintf(f, "layout " #name " %u\n", (unsigned)l->name);
    FM_LOOK_LAYOUT(VALUE)
#undef VALUE
}

static void write_words(FILE *f, struct keeping *keep)
{
    fm_autofree struct fm_map_slot *slots = sorted(&keep->words);
    for (size_t i = 0; i < keep->words.len; i++) {
        uint64_t value = 0;
        fm_addr missing;
        fm_snapshot_read(&keep->k->snapshot, slots[i].key, &value, sizeof value, &missing);
        fprintf(f, "word 0x%" PRIx64 " 0x%" PRIx64 "\n", slots[i].key, value);
    }
}

static void write_codes(FILE *f, const struct keeping *keep)
{
    fm_autofree struct fm_map_slot *slots = sorted(&keep->codes);
    for (size_t i = 0; i < keep->codes.len; i++) {
        const struct fm_known_code *known = keep->k->codes->list.data[slots[i].value];
        fprintf(f, "%s 0x%" PRIx64 " %u %s\n", known->hidden ? "hidden" : "code", slots[i].key,
                known->code.bytecode_len, known->code.name);
    }
}

static void write_result(FILE *f, const struct fm_looker *k, enum fm_look_result result)
{
    if (result == FM_LOOK_NO) {
        fputs("want no\n", f);
        return;
    }
    fputs(result == FM_LOOK_WHOLE ? "want whole " : "want cut ", f);
    for (size_t i = k->climb.frames.len; i-- > 0;) {
        const struct fm_raw_frame *frame = &k->climb.frames.data[i];
        fprintf(f, "%s@%d%s", k->codes->list.data[frame->code]->code.name, (int)frame->offset,
                i ? ";" : "");
    }
    fputc('\n', f);
}

static void write_look(FILE *f, struct fm_looker *k, const struct fm_looked *who,
                       enum fm_look_result result)
{
    struct keeping keep = { .k = k };
    struct fm_climb climb = { 0 };
    struct fm_climb_ground ground = { k->layout, who->thread, memory, code, &keep };
    fm_climb_begin(&climb);
    fm_climb_go(&climb, &ground);
    fputs("fathom-look 1\n", f);
    write_layout(f, k->layout);
    fprintf(f, "thread 0x%" PRIx64 "\n", who->thread);
    write_words(f, &keep);
    write_codes(f, &keep);
    write_result(f, k, result);
    fm_climb_release(&climb);
    fm_map_release(&keep.words);
    fm_map_release(&keep.codes);
}

void fm_look_keep(struct fm_looker *k, const struct fm_looked *who, enum fm_look_result result)
{
    static unsigned number;
    static const char *folder;
    char path[4096];
    if (!folder)
        folder = getenv(NAME) ? getenv(NAME) : "";
    if (!*folder || (result != FM_LOOK_WHOLE && result != FM_LOOK_CUT && result != FM_LOOK_NO))
        return;
    snprintf(path, sizeof path, "%s/%02u.look", folder, number++ % KEPT);
    FILE *f = fopen(path, "we");
    if (!f)
        return;
    write_look(f, k, who, result);
    fclose(f);
}
