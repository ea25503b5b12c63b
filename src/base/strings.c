/* Interned strings; see strings.h. The bytes lie in large slabs that never move. */
#include "base/strings.h"

#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/vec.h"

#define SLAB_BYTES ((size_t)64 * 1024)
#define LONG_BYTES 256u

struct entry {
    const char *text;
    size_t len;
    uint64_t hash;
};

struct fm_strings {
    FM_VEC(struct entry) entries;
    FM_VEC(char *) slabs;
    size_t slab_used, slab_cap;
    uint32_t *table; /* id + 1, or 0 for a free place */
    size_t table_cap;
};

#define LANES 4u

/* A whole file of source, say: several at once, for each mixing waits for the one before. */
static uint64_t hash_long(const unsigned char *p, size_t len, uint64_t h)
{
    uint64_t lanes[LANES] = { h, h + 1, h + 2, h + 3 }, words[LANES];
    for (; len >= sizeof words; p += sizeof words, len -= sizeof words) {
        memcpy(words, p, sizeof words);
        for (unsigned i = 0; i < LANES; i++)
            lanes[i] = fm_mix64(lanes[i] ^ words[i]);
    }
    for (unsigned i = 0; i < LANES; i++)
        h = fm_mix64(h ^ lanes[i]);
    return h;
}

static uint64_t hash_bytes(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t h = 0xcbf29ce484222325ULL ^ len;
    if (len >= LONG_BYTES) {
        h = hash_long(p, len, h);
        p += len - len % (LANES * 8);
        len %= LANES * 8;
    }
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = fm_mix64(h ^ word);
    }
    uint64_t tail = 0;
    memcpy(&tail, p, len);
    return fm_mix64(h ^ tail);
}

static char *slab_take(struct fm_strings *strings, size_t bytes)
{
    if (strings->slab_cap - strings->slab_used < bytes) {
        strings->slab_cap = bytes > SLAB_BYTES ? bytes : SLAB_BYTES;
        strings->slab_used = 0;
        fm_vec_push(&strings->slabs, fm_malloc(strings->slab_cap));
    }
    char *place = strings->slabs.data[strings->slabs.len - 1] + strings->slab_used;
    strings->slab_used += bytes;
    return place;
}

static uint32_t *find_place(const struct fm_strings *strings, const void *bytes, size_t len,
                            uint64_t hash)
{
    size_t mask = strings->table_cap - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        uint32_t *place = &strings->table[i];
        if (!*place)
            return place;
        const struct entry *e = &strings->entries.data[*place - 1];
        if (e->hash == hash && e->len == len && memcmp(e->text, bytes, len) == 0)
            return place;
    }
}

static void grow_table(struct fm_strings *strings)
{
    free(strings->table);
    strings->table_cap = strings->table_cap ? strings->table_cap * 2 : 256;
    strings->table = fm_calloc(strings->table_cap, sizeof *strings->table);
    for (size_t i = 0; i < strings->entries.len; i++) {
        const struct entry *e = &strings->entries.data[i];
        *find_place(strings, e->text, e->len, e->hash) = (uint32_t)i + 1;
    }
}

struct fm_strings *fm_strings_new(void)
{
    struct fm_strings *strings = fm_calloc(1, sizeof *strings);
    grow_table(strings);
    fm_strings_add(strings, "", 0);
    return strings;
}

void fm_strings_free(struct fm_strings *strings)
{
    if (!strings)
        return;
    for (size_t i = 0; i < strings->slabs.len; i++)
        free(strings->slabs.data[i]);
    fm_vec_release(&strings->slabs);
    fm_vec_release(&strings->entries);
    free(strings->table);
    free(strings);
}

uint32_t fm_strings_add(struct fm_strings *strings, const void *bytes, size_t len)
{
    uint64_t hash = hash_bytes(bytes, len);
    uint32_t *place = find_place(strings, bytes, len, hash);
    if (*place)
        return *place - 1;
    char *text = slab_take(strings, len + 1);
    memcpy(text, bytes, len);
    text[len] = '\0';
    fm_vec_push(&strings->entries, ((struct entry){ text, len, hash }));
    uint32_t id = (uint32_t)strings->entries.len - 1;
    *place = id + 1;
    if (strings->entries.len * 2 > strings->table_cap)
        grow_table(strings);
    return id;
}

uint32_t fm_strings_add_text(struct fm_strings *strings, const char *text)
{
    return fm_strings_add(strings, text, strlen(text));
}

const char *fm_strings_get(const struct fm_strings *strings, uint32_t id)
{
    return id < strings->entries.len ? strings->entries.data[id].text : "";
}

size_t fm_strings_len(const struct fm_strings *strings, uint32_t id)
{
    return id < strings->entries.len ? strings->entries.data[id].len : 0;
}

uint32_t fm_strings_count(const struct fm_strings *strings)
{
    return (uint32_t)strings->entries.len;
}
