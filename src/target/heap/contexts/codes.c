/* Code objects by number; see codes.h. */
#include "target/heap/contexts/codes.h"

#include <string.h>

#include "base/varint.h"
#include "target/heap/contexts/watched.h"
#include "target/heap/sampled/sampled.h"
#include "target/heap/store.h"

#define FIRST_ROOM 1024

/* An open table from a key, which is never 0, to a number. */
struct code_entry {
    uint64_t key;
    uint32_t number; /* 0: it was taken out */
};
struct code_table {
    struct code_entry *slots;
    size_t room, used; /* taken out ones included */
};

static struct {
    struct code_table by_address, by_content;
    uint32_t count;
    fm_heap_lock lock;
    struct fm_heap_code described; /* large: not on somebody's stack */
} codes;

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

static struct code_entry *find(const struct code_table *t, uint64_t key)
{
    size_t i = mix(key) & (t->room - 1);
    while (t->slots[i].key && t->slots[i].key != key)
        i = (i + 1) & (t->room - 1);
    return &t->slots[i];
}

/* Room for one more; those taken out stay behind. */
static bool make_room(struct code_table *t)
{
    if (t->used + 1 <= t->room / 2)
        return true;
    size_t live = 0;
    for (size_t i = 0; i < t->room; i++)
        live += t->slots[i].number != 0;
    struct code_table bigger = { .room = t->room ? t->room : FIRST_ROOM };
    while (live + 1 > bigger.room / 4)
        bigger.room *= 2;
    bigger.slots = fm_heap_map(bigger.room * sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < t->room; i++) {
        if (!t->slots[i].number)
            continue;
        *find(&bigger, t->slots[i].key) = t->slots[i];
        bigger.used++;
    }
    if (t->room)
        fm_heap_unmap(t->slots, t->room * sizeof *t->slots);
    *t = bigger;
    return true;
}

static bool put(struct code_table *t, uint64_t key, uint32_t number)
{
    if (!make_room(t))
        return false;
    struct code_entry *entry = find(t, key);
    t->used += !entry->key;
    *entry = (struct code_entry){ key, number };
    return true;
}

static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    for (; len >= 8; at += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        h = mix(h ^ word) + 0x9e3779b97f4a7c15u;
    }
    for (; len; at++, len--)
        h = (h ^ *at) * 0x100000001b3u;
    return mix(h);
}

static uint64_t content_of(const struct fm_heap_code *c)
{
    uint64_t h = hash_bytes(c->first_line, c->qualname, c->qualname_bytes);
    h = hash_bytes(h, c->name, c->name_bytes);
    h = hash_bytes(h, c->file, c->file_bytes);
    return hash_bytes(h + c->flags, c->table, c->table_bytes) | 1;
}

static unsigned char *put_bytes(unsigned char *out, const void *bytes, size_t len)
{
    out += fm_varint_put(out, len);
    if (len) /* else there may be nothing to point at */
        memcpy(out, bytes, len);
    return out + len;
}

static bool define(uint32_t number, const struct fm_heap_code *c, enum fm_heap_def kind)
{
    size_t most = (size_t)c->name_bytes + c->qualname_bytes + c->file_bytes + c->table_bytes +
                  9 * FM_VARINT_MAX;
    unsigned char *start = fm_heap_store_define(most + FM_VARINT_MAX);
    if (!start)
        return false;
    unsigned char *body = start + FM_VARINT_MAX, *out = body;
    out += fm_varint_put(out, kind);
    out += fm_varint_put(out, number);
    out += fm_varint_put(out, c->flags);
    out += fm_varint_put(out, c->first_line);
    out = put_bytes(out, c->name, c->name_bytes);
    out = put_bytes(out, c->qualname, c->qualname_bytes);
    out = put_bytes(out, c->file, c->file_bytes);
    out = put_bytes(out, c->table, c->table_bytes);
    size_t len = (size_t)(out - body), head = fm_varint_put(start, len);
    memmove(start + head, body, len);
    fm_heap_store_defined(head + len);
    return true;
}

static uint32_t number_of_new(const void *code, enum fm_heap_def kind)
{
    struct fm_heap_code *c = &codes.described;
    bool is_type = kind == FM_HEAP_DEF_TYPE;
    (is_type ? fm_heap.layout.describe_type : fm_heap.layout.describe)(code, c);
    uint64_t content = content_of(c) ^ (uint64_t)kind << 1;
    if (!make_room(&codes.by_content) || !make_room(&codes.by_address))
        return 0;
    uint32_t number = find(&codes.by_content, content)->number;
    if (!number) {
        if (!define(codes.count + 1, c, kind))
            return 0;
        number = ++codes.count;
        put(&codes.by_content, content, number);
    }
    put(&codes.by_address, (uintptr_t)code, number);
    /* What ends is the block, which of a type begins before it. */
    const char *block = (const char *)code - (is_type ? fm_heap.layout.gc_head : 0);
    fm_watch(block);
    if (fm_heap.sample_bytes)
        fm_sampled_watch(block);
    return number;
}

uint32_t fm_codes_number(const void *code, enum fm_heap_def kind)
{
    fm_heap_lock_take(&codes.lock);
    uint32_t number = codes.by_address.room ? find(&codes.by_address, (uintptr_t)code)->number : 0;
    if (!number)
        number = number_of_new(code, kind);
    fm_heap_lock_give(&codes.lock);
    return number;
}

bool fm_codes_forget(const void *code)
{
    fm_heap_lock_take(&codes.lock);
    struct code_entry *entry =
        codes.by_address.room ? find(&codes.by_address, (uintptr_t)code) : NULL;
    bool known = entry && entry->number;
    if (known)
        entry->number = 0;
    fm_heap_lock_give(&codes.lock);
    return known;
}

void fm_codes_reset(void)
{
    if (codes.by_content.room)
        memset(codes.by_content.slots, 0, codes.by_content.room * sizeof *codes.by_content.slots);
    if (codes.by_address.room)
        memset(codes.by_address.slots, 0, codes.by_address.room * sizeof *codes.by_address.slots);
    codes.by_content.used = codes.by_address.used = 0;
    codes.count = 0;
}

void fm_codes_hold(void)
{
    fm_heap_lock_take(&codes.lock);
}

void fm_codes_release(void)
{
    fm_heap_lock_give(&codes.lock);
}
