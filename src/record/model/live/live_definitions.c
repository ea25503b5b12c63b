/*
 * Reads what a live store defines: functions, facts about its process, sources, files and whose
 * lines were asked for. See live.c, whose rules of trust are followed here, too: a record that
 * fails is dropped and counted.
 */
#include <string.h>

#include "base/varint.h"
#include "record/model/live/live_loader.h"
#include "record/model/live/live_regions.h"

static uint32_t read_string(struct fm_live_loader *l, struct fm_cursor *c)
{
    uint64_t len = fm_cursor_varint(c);
    const uint8_t *bytes = fm_cursor_bytes(c, len);
    return bytes && len ? fm_strings_add(l->p->strings, bytes, (size_t)len) : 0;
}

/* Functions that look alike but are not the same one become twins, numbered in the order in which
 * this process defined them, so that the same program gives the same twins in every process. */
static void define_function(struct fm_live_loader *l, struct fm_cursor *c)
{
    uint64_t id = fm_cursor_varint(c);
    uint64_t flags = fm_cursor_varint(c);
    uint64_t line = fm_cursor_varint(c);
    struct fm_function f = { .kind = flags & FM_LIVE_FUNCTION_REGION ? FM_FUNCTION_REGION
                                     : flags & FM_LIVE_FUNCTION_C    ? FM_FUNCTION_C
                                                                     : FM_FUNCTION_PYTHON };
    f.name = read_string(l, c);
    f.qualname = read_string(l, c);
    f.file = read_string(l, c);
    /* Ids are given one after the other, and no definition is shorter than a byte. */
    if (c->failed || !id || id > l->chunks.definition_bytes ||
        (id < l->functions.len && l->functions.data[id] != FM_NONE)) {
        l->broken_records++;
        return;
    }
    f.line = line < UINT32_MAX ? (uint32_t)line : 0;
    if (!f.qualname)
        f.qualname = f.name;
    if (flags & FM_LIVE_FUNCTION_GENERATOR)
        f.flags |= FM_FUNCTION_GENERATOR;
    if (flags & FM_LIVE_FUNCTION_COROUTINE)
        f.flags |= FM_FUNCTION_COROUTINE;
    if (flags & FM_LIVE_FUNCTION_ASYNC_GENERATOR)
        f.flags |= FM_FUNCTION_ASYNC_GENERATOR;
    uint32_t func = fm_profile_function(l->p, &f);
    f.twin = (*fm_map_at(&l->twins, func, 0, NULL))++;
    if (f.twin)
        func = fm_profile_function(l->p, &f);
    while (l->functions.len <= id)
        fm_vec_push(&l->functions, FM_NONE);
    l->functions.data[id] = func;
}

static void define_info(struct fm_live_loader *l, struct fm_cursor *c)
{
    const char *key = fm_profile_text(l->p, read_string(l, c));
    uint32_t value = read_string(l, c);
    if (c->failed) {
        l->broken_records++;
        return;
    }
    if (strcmp(key, "exe") == 0)
        l->process.exe = value;
    else if (strcmp(key, "version") == 0)
        l->process.version = value;
    else if (strcmp(key, "command") == 0)
        l->process.command = value;
    else if (strcmp(key, "cwd") == 0)
        l->process.cwd = value;
}

/* The same file is seen by many processes; it is kept once per text. */
static struct fm_source *source_at(struct fm_live_loader *l, uint32_t file, uint32_t text)
{
    bool is_new;
    uint32_t fresh = (uint32_t)l->p->sources.len;
    uint32_t at = *fm_map_at(&l->sources, fm_map_pair(file, text), fresh, &is_new);
    if (is_new)
        fm_vec_push(&l->p->sources, ((struct fm_source){ .file = file, .text = text }));
    return &l->p->sources.data[at];
}

static void define_source(struct fm_live_loader *l, struct fm_cursor *c)
{
    uint32_t file = read_string(l, c);
    uint32_t text = read_string(l, c);
    if (c->failed)
        l->broken_records++;
    else
        source_at(l, file, text)->state = FM_SOURCE_GENERATED;
}

static void define_file(struct fm_live_loader *l, struct fm_cursor *c)
{
    uint64_t mtime_ns = fm_cursor_varint(c);
    uint64_t size_bytes = fm_cursor_varint(c);
    uint32_t file = read_string(l, c);
    if (c->failed) {
        l->broken_records++;
        return;
    }
    struct fm_source *source = source_at(l, file, 0);
    if (source->mtime_ns || source->size_bytes)
        return; /* the state when it was seen first is what ran */
    source->mtime_ns = mtime_ns;
    source->size_bytes = size_bytes;
}

/* Lines of a function are recorded: of interest here only if somebody asked for that function. */
static void define_lines(struct fm_live_loader *l, struct fm_cursor *c)
{
    uint64_t id = fm_cursor_varint(c);
    uint64_t flags = fm_cursor_varint(c);
    if (c->failed || id >= l->functions.len || l->functions.data[id] == FM_NONE)
        l->broken_records++;
    else if (flags & FM_LIVE_LINES_MARKED)
        fm_lines_mark(&l->p->lines, l->functions.data[id]);
}

static void define_name(struct fm_live_loader *l, struct fm_cursor *c)
{
    uint64_t id = fm_cursor_varint(c);
    uint32_t name = read_string(l, c);
    if (c->failed || !id || id > l->chunks.definition_bytes) {
        l->broken_records++;
        return;
    }
    while (l->names.len <= id)
        fm_vec_push(&l->names, FM_NONE);
    l->names.data[id] = name;
}

void fm_live_read_definitions(struct fm_live_loader *l, const struct fm_live_piece *chunk)
{
    struct fm_cursor log = fm_cursor_over(chunk->payload, chunk->used);
    while (fm_cursor_left(&log)) {
        uint64_t len = fm_cursor_varint(&log);
        const uint8_t *bytes = fm_cursor_bytes(&log, len);
        if (!bytes) {
            l->broken_records++;
            return;
        }
        struct fm_cursor c = fm_cursor_over(bytes, (size_t)len);
        switch (fm_cursor_varint(&c)) {
        case FM_LIVE_DEF_FUNCTION:
            define_function(l, &c);
            break;
        case FM_LIVE_DEF_INFO:
            define_info(l, &c);
            break;
        case FM_LIVE_DEF_SOURCE:
            define_source(l, &c);
            break;
        case FM_LIVE_DEF_FILE:
            define_file(l, &c);
            break;
        case FM_LIVE_DEF_LINES:
            define_lines(l, &c);
            break;
        case FM_LIVE_DEF_NAME:
            define_name(l, &c);
            break;
        case FM_LIVE_DEF_REGION:
            fm_live_define_region(l, &c);
            break;
        default: /* a later kind */
            break;
        }
    }
}
