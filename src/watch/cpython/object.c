/* Finding things in objects of the target; see object.h. */
#include "watch/cpython/object.h"

#include <string.h>

#include "watch/cpython/text.h"

/* How an instance whose dict the interpreter manages keeps its attributes. */
enum instance { DICT_OFFSET_ONLY, VALUES_AND_DICT, VALUES_OR_DICT, INLINE_VALUES };

static enum instance instance_of(const struct fm_heap *t)
{
    unsigned minor = fm_layout_minor(t->layout);
    return minor < 11    ? DICT_OFFSET_ONLY
           : minor == 11 ? VALUES_AND_DICT
           : minor == 12 ? VALUES_OR_DICT
                         : INLINE_VALUES;
}

enum { FLAG_INLINE_VALUES = 1 << 2, FLAG_MANAGED_DICT = 1 << 4 };
enum { BASIC_SIZE_BEFORE_FLAGS = 168 - 32 }; /* tp_flags − tp_basicsize */

static bool read_word(const struct fm_heap *t, fm_addr at, uint64_t *ret)
{
    return fm_remote_read(t->remote, at, ret, sizeof *ret) == 0;
}

fm_addr fm_object_type(const struct fm_heap *t, fm_addr at)
{
    uint64_t type = 0;
    if (!at || at & 7 || !read_word(t, at + t->layout->object_type, &type) || type & 7)
        return 0;
    return type;
}

uint64_t fm_type_flags(const struct fm_heap *t, fm_addr type)
{
    uint64_t flags = 0;
    return type && read_word(t, type + t->layout->type_flags, &flags) ? flags : 0;
}

/* A C string: read to the end of its page first, since nothing says that the next one is mapped. */
bool fm_heap_text(const struct fm_heap *t, fm_addr at, char *into, size_t cap)
{
    size_t have = 0;
    while (have < cap) {
        size_t piece = 4096 - (at + have) % 4096;
        if (piece > cap - have)
            piece = cap - have;
        if (fm_remote_read(t->remote, at + have, into + have, piece) < 0)
            return false;
        if (memchr(into + have, 0, piece))
            return true;
        have += piece;
    }
    into[cap - 1] = 0;
    return true;
}

bool fm_type_name(const struct fm_heap *t, fm_addr type, char *into, size_t cap)
{
    fm_addr name = type ? fm_remote_pointer(t->remote, type + t->layout->type_name) : 0;
    if (!name || !fm_heap_text(t, name, into, cap) || !*into)
        return false;
    for (const char *c = into; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return false;
    }
    return true;
}

bool fm_object_is(const struct fm_heap *t, fm_addr at, const char *name)
{
    char found[64];
    return fm_type_name(t, fm_object_type(t, at), found, sizeof found) && strcmp(found, name) == 0;
}

bool fm_object_text(const struct fm_heap *t, fm_addr at, char *into, size_t cap)
{
    if (!at || cap < 8 || !(fm_type_flags(t, fm_object_type(t, at)) & FM_TYPE_STR))
        return false;
    fm_autofree char *text = fm_text_read(t->remote, t->layout, at, (uint32_t)cap + 8);
    if (!text)
        return false;
    size_t len = strlen(text);
    if (len < cap) {
        memcpy(into, text, len + 1);
        return true;
    }
    len = cap - sizeof "…";
    while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    memcpy(into, text, len);
    memcpy(into + len, "…", sizeof "…");
    return true;
}

bool fm_object_int(const struct fm_heap *t, fm_addr at, int64_t *ret)
{
    uint64_t tag, digits = 0;
    if (!(fm_type_flags(t, fm_object_type(t, at)) & FM_TYPE_LONG) ||
        !read_word(t, at + t->layout->long_tag, &tag))
        return false;
    bool tagged = fm_layout_minor(t->layout) >= 12;
    bool negative = tagged ? (tag & 3) == 2 : (int64_t)tag < 0;
    uint64_t n = tagged ? tag >> 3 : negative ? -tag : tag;
    uint32_t digit[3];
    if (n > 3 || (n && fm_remote_read(t->remote, at + t->layout->long_digits, digit, n * 4) < 0))
        return false;
    if (n == 3 && digit[2] > 7)
        return false;
    for (uint64_t i = n; i-- > 0;)
        digits = digits << 30 | (digit[i] & 0x3fffffff);
    if (digits > INT64_MAX)
        return false;
    *ret = negative ? -(int64_t)digits : (int64_t)digits;
    return true;
}

/* ---- dicts ---- */

/* The table of keys: where its entries lie and how they look. */
struct keys {
    fm_addr entries;
    uint64_t count;
    unsigned entry_words; /* 3: hash, key, value; 2: key, value */
};

/* 3.9 and 3.10 keep the number of slots, not its logarithm, and the width of an index follows from
 * it. */
static bool keys_read_old(const struct fm_heap *t, fm_addr at, struct keys *keys)
{
    const struct fm_layout *l = t->layout;
    uint64_t size, count;
    if (!read_word(t, at + l->keys_log2_size, &size) || !read_word(t, at + l->keys_entries, &count))
        return false;
    if (!size || size & (size - 1) || size > 1ull << 40 || count > size)
        return false;
    unsigned index = size <= 0xff ? 1 : size <= 0xffff ? 2 : size <= 0xffffffff ? 4 : 8;
    *keys = (struct keys){ at + l->keys_index + size * index, count, 3 };
    return true;
}

static bool keys_read(const struct fm_heap *t, fm_addr at, struct keys *keys)
{
    const struct fm_layout *l = t->layout;
    uint8_t head[128];
    uint64_t count;
    if (!at || at & 7 || l->keys_index > sizeof head || l->keys_entries > sizeof head - 8)
        return false;
    if (l->keys_log2_index == FM_ABSENT)
        return keys_read_old(t, at, keys);
    if (fm_remote_read(t->remote, at, head, l->keys_index) < 0)
        return false;
    memcpy(&count, head + l->keys_entries, sizeof count);
    uint8_t log2_size = head[l->keys_log2_size], log2_index = head[l->keys_log2_index];
    uint8_t kind = head[l->keys_kind];
    if (log2_size > 40 || log2_index > 44 || kind > 2 || count > 1ull << log2_size)
        return false;
    *keys = (struct keys){ at + l->keys_index + (1ull << log2_index), count, kind == 0 ? 3 : 2 };
    return true;
}

enum { BATCH = 512 }; /* words that are read at once */

/* Entries of a table; `values` is 0, or where a split table has them. */
static void keys_items(const struct fm_heap *t, const struct keys *keys, fm_addr values, size_t max,
                       struct fm_items *items)
{
    uint64_t words[BATCH], apart[BATCH];
    uint64_t step = BATCH / keys->entry_words;
    uint64_t count = keys->count < FM_OBJECT_MAX_ITEMS ? keys->count : FM_OBJECT_MAX_ITEMS;
    for (uint64_t i = 0; i < count; i += step) {
        uint64_t n = count - i < step ? count - i : step;
        size_t bytes = n * keys->entry_words * 8;
        if (fm_remote_read(t->remote, keys->entries + i * keys->entry_words * 8, words, bytes) < 0)
            return;
        if (values && fm_remote_read(t->remote, values + i * 8, apart, n * 8) < 0)
            return;
        for (uint64_t k = 0; k < n; k++) {
            const uint64_t *entry = words + k * keys->entry_words + (keys->entry_words == 3);
            struct fm_item item = { entry[0], values ? apart[k] : entry[1] };
            if (!item.key || !item.value)
                continue;
            if (items->len >= max)
                return;
            fm_vec_push(items, item);
        }
    }
}

void fm_dict_items(const struct fm_heap *t, fm_addr dict, size_t max, struct fm_items *items)
{
    struct keys keys;
    fm_addr values;
    if (!(fm_type_flags(t, fm_object_type(t, dict)) & FM_TYPE_DICT))
        return;
    if (!keys_read(t, fm_remote_pointer(t->remote, dict + t->layout->dict_keys), &keys))
        return;
    values = fm_remote_pointer(t->remote, dict + t->layout->dict_values);
    keys_items(t, &keys, values ? values + t->layout->values_first : 0, items->len + max, items);
}

int64_t fm_dict_count(const struct fm_heap *t, fm_addr dict)
{
    uint64_t used;
    if (!read_word(t, dict + t->layout->dict_used, &used) || used > 1ull << 40)
        return -1;
    return (int64_t)used;
}

enum { LENGTHS = 128 }; /* of keys that are read at once */

/* The lengths of `n` keys, as if all were of type str; one that cannot be read has 0 and ends the list. */
static size_t key_lengths(const struct fm_heap *t, const struct fm_item *items, size_t n,
                          uint64_t *lengths)
{
    struct fm_span spans[LENGTHS];
    n = n < LENGTHS ? n : LENGTHS;
    for (size_t i = 0; i < n; i++)
        spans[i] = (struct fm_span){ items[i].key + t->layout->unicode_length, &lengths[i], 8 };
    int got = fm_remote_read_spans(t->remote, spans, (int)n);
    if (got == (int)n)
        return n;
    got = got < 0 ? 0 : got;
    lengths[got] = 0;
    return (size_t)got + 1;
}

/* Most keys are told apart by their lengths, which many at a time are read of. */
static fm_addr items_find(const struct fm_heap *t, const struct fm_items *items, const char *key)
{
    uint64_t lengths[LENGTHS];
    char text[128];
    for (size_t i = 0, n = 0; i < items->len; i += n) {
        n = key_lengths(t, items->data + i, items->len - i, lengths);
        for (size_t k = 0; k < n; k++) {
            if (lengths[k] == strlen(key) &&
                fm_object_text(t, items->data[i + k].key, text, sizeof text) &&
                strcmp(text, key) == 0)
                return items->data[i + k].value;
        }
    }
    return 0;
}

fm_addr fm_dict_find(const struct fm_heap *t, fm_addr dict, const char *key)
{
    struct fm_items items = { 0 };
    fm_dict_items(t, dict, FM_OBJECT_MAX_ITEMS, &items);
    fm_addr found = items_find(t, &items, key);
    fm_vec_release(&items);
    return found;
}

/* ---- attributes of instances ---- */

static fm_addr cached_keys(const struct fm_heap *t, fm_addr type, uint64_t flags)
{
    if (!(flags & FM_TYPE_HEAP))
        return 0;
    return fm_remote_pointer(t->remote, type + t->layout->type_flags + t->layout->type_cached_keys);
}

/* The __dict__ of an instance that has a real one; 0 if it has none (yet). */
static fm_addr plain_dict(const struct fm_heap *t, fm_addr at, fm_addr type)
{
    uint64_t offset;
    if (!read_word(t, type + t->layout->type_dictoffset, &offset) || !offset || offset > 1 << 16)
        return 0; /* a negative one counts from the end of a variable object: not handled */
    return fm_remote_pointer(t->remote, at + offset);
}

/* The two words before an object whose dict the interpreter manages, or the values behind it. */
static void managed_place(const struct fm_heap *t, fm_addr at, fm_addr type, uint64_t flags,
                          fm_addr *ret_dict, fm_addr *ret_values)
{
    uint64_t word;
    *ret_dict = *ret_values = 0;
    if (instance_of(t) == VALUES_AND_DICT) {
        *ret_values = fm_remote_pointer(t->remote, at - 32);
        *ret_dict = fm_remote_pointer(t->remote, at - 24);
    } else if (instance_of(t) == VALUES_OR_DICT) {
        word = fm_remote_pointer(t->remote, at - 24);
        *(word & 1 ? ret_values : ret_dict) = word & 1 ? word + 1 : word;
    } else {
        *ret_dict = fm_remote_pointer(t->remote, at - (t->layout->free_threaded ? 8 : 24));
        if (*ret_dict || !(flags & FLAG_INLINE_VALUES))
            return;
        uint8_t head[8];
        fm_addr basic = type + t->layout->type_flags - BASIC_SIZE_BEFORE_FLAGS;
        if (!read_word(t, basic, &word) || word > 1 << 20 ||
            fm_remote_read(t->remote, at + word, head, sizeof head) < 0 || !head[3])
            return; /* head[3]: the values are valid */
        *ret_values = at + word + t->layout->values_first;
    }
}

void fm_object_attributes(const struct fm_heap *t, fm_addr at, size_t max, struct fm_items *items)
{
    fm_addr type = fm_object_type(t, at), dict, values = 0;
    uint64_t flags = fm_type_flags(t, type);
    if (!type)
        return;
    if (instance_of(t) != DICT_OFFSET_ONLY && flags & FLAG_MANAGED_DICT)
        managed_place(t, at, type, flags, &dict, &values);
    else
        dict = plain_dict(t, at, type);
    if (dict) {
        fm_dict_items(t, dict, max, items);
    } else if (values) {
        struct keys keys;
        if (keys_read(t, cached_keys(t, type, flags), &keys))
            keys_items(t, &keys, values, items->len + max, items);
    }
}

fm_addr fm_object_attribute(const struct fm_heap *t, fm_addr at, const char *name)
{
    struct fm_items items = { 0 };
    fm_object_attributes(t, at, FM_OBJECT_MAX_ITEMS, &items);
    fm_addr found = items_find(t, &items, name);
    fm_vec_release(&items);
    return found;
}

/* ---- sets and sequences ---- */

int64_t fm_set_count(const struct fm_heap *t, fm_addr set)
{
    uint64_t used;
    if (!read_word(t, set + t->layout->set_used, &used) || used > 1ull << 40)
        return -1;
    return (int64_t)used;
}

void fm_set_items(const struct fm_heap *t, fm_addr set, size_t max, struct fm_addrs *items)
{
    uint64_t mask, table, words[BATCH];
    char name[16];
    size_t limit = items->len + max;
    if (!fm_type_name(t, fm_object_type(t, set), name, sizeof name) ||
        (strcmp(name, "set") != 0 && strcmp(name, "frozenset") != 0))
        return;
    if (!read_word(t, set + t->layout->set_mask, &mask) || mask >= 1ull << 40 ||
        !read_word(t, set + t->layout->set_table, &table))
        return;
    int64_t left = fm_set_count(t, set);
    for (uint64_t i = 0; i <= mask && i < 4 * FM_OBJECT_MAX_ITEMS && left > 0; i += BATCH / 2) {
        uint64_t n = mask + 1 - i < BATCH / 2 ? mask + 1 - i : BATCH / 2;
        if (fm_remote_read(t->remote, table + i * 16, words, n * 16) < 0)
            return;
        for (uint64_t k = 0; k < n && left > 0; k++) {
            if (!words[2 * k] || words[2 * k + 1] == (uint64_t)-1)
                continue; /* empty, or the mark of a member that was removed */
            if (items->len >= limit)
                return;
            fm_vec_push(items, words[2 * k]);
            left--;
        }
    }
}

int64_t fm_sequence_items(const struct fm_heap *t, fm_addr at, size_t max, struct fm_addrs *items)
{
    uint64_t flags = fm_type_flags(t, fm_object_type(t, at)), count;
    if (!(flags & (FM_TYPE_LIST | FM_TYPE_TUPLE)) ||
        !read_word(t, at + t->layout->var_size, &count) || count > 1ull << 40)
        return -1;
    fm_addr from = flags & FM_TYPE_TUPLE ? at + t->layout->tuple_items
                                         : fm_remote_pointer(t->remote, at + t->layout->list_items);
    size_t n = count < max ? count : max;
    if (n > FM_OBJECT_MAX_ITEMS)
        n = FM_OBJECT_MAX_ITEMS;
    fm_vec_reserve(items, items->len + n);
    if (n && fm_remote_read(t->remote, from, items->data + items->len, n * 8) < 0)
        return -1;
    items->len += n;
    return (int64_t)count;
}

/* ---- modules and slots ---- */

fm_addr fm_module_find(const struct fm_heap *t, fm_addr interp, const char *name)
{
    return fm_dict_find(t, fm_remote_pointer(t->remote, interp + t->layout->interp_modules), name);
}

fm_addr fm_module_attribute(const struct fm_heap *t, fm_addr module, const char *name)
{
    /* md_dict is the first field of a module in every version. */
    return fm_dict_find(t, fm_remote_pointer(t->remote, module + t->layout->object_size), name);
}

fm_addr fm_slot_object(const struct fm_heap *t, uint64_t slot)
{
    if (!t->layout->code_tag_mask)
        return slot & 7 ? 0 : slot;
    if ((slot & 3) == 3)
        return 0; /* a bare number */
    slot &= ~(uint64_t)3;
    return slot & 7 ? 0 : slot;
}
