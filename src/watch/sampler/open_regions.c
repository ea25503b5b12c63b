/* The regions that threads are in; see open_regions.h. */
#include "watch/sampler/open_regions.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/memory.h"

#define AGAIN_NS    100000000u /* until a later store is looked for */
#define REGIONS_MAX (1u << 20)

void fm_open_regions_init(struct fm_open_regions *r, const char *folder, pid_t pid)
{
    *r = (struct fm_open_regions){ .pid = pid };
    r->folder = folder ? fm_strdup(folder) : NULL;
    for (unsigned i = 0; i < FM_LIVE_FILES; i++)
        r->files[i].fd = -1;
}

void fm_open_regions_close(struct fm_open_regions *r)
{
    for (unsigned i = 0; i < FM_LIVE_FILES; i++)
        fm_live_file_release(&r->files[i]);
    r->places.len = r->numbers.len = 0;
    r->opens = 0;
    r->listing++;
}

void fm_open_regions_release(struct fm_open_regions *r)
{
    fm_open_regions_close(r);
    for (size_t i = 0; i < r->names.len; i++)
        free(r->names.data[i]);
    fm_vec_release(&r->names);
    fm_vec_release(&r->numbers);
    fm_vec_release(&r->places);
    free(r->folder);
    r->folder = NULL;
}

/* ---- the store --------------------------------------------------------------------------- */

/* The last store there is, and where that goes on if it has become full. */
static void find_store(struct fm_open_regions *r)
{
    for (;; r->number++) {
        struct fm_live_file file;
        fm_live_file_init(&file, r->folder, r->pid, r->number, 0);
        if (!fm_live_file_open(&file)) {
            fm_live_file_release(&file);
            break;
        }
        fm_open_regions_close(r);
        r->files[0] = file;
        for (unsigned i = 1; i < FM_LIVE_FILES; i++)
            fm_live_file_init(&r->files[i], r->folder, r->pid, r->number, i);
    }
    for (unsigned i = 1; i < FM_LIVE_FILES && r->files[0].fd >= 0; i++)
        fm_live_file_open(&r->files[i]);
}

static void list_records_of(struct fm_open_regions *r, uint32_t number,
                            const struct fm_live_part *piece)
{
    const struct fm_live_file *file = &r->files[number];
    uint64_t at = piece->at + sizeof(struct fm_live_chunk);
    uint64_t end = at + fm_live_file_used(file, piece);
    for (; at + sizeof(struct fm_live_open) <= end; at += sizeof(struct fm_live_open)) {
        struct fm_open_place place = { .at = at, .file = number };
        if (fm_live_file_read(file, &place.tid, sizeof place.tid, at))
            fm_vec_push(&r->places, place);
    }
}

static void list_records(struct fm_open_regions *r)
{
    r->places.len = 0;
    for (unsigned k = 0; k < FM_LIVE_FILES; k++) {
        fm_live_file_find(&r->files[k]);
        for (size_t i = 0; i < r->files[k].pieces.len; i++)
            if (r->files[k].pieces.data[i].kind == FM_LIVE_OPEN)
                list_records_of(r, k, &r->files[k].pieces.data[i]);
    }
}

void fm_open_regions_refresh(struct fm_open_regions *r, uint64_t now_ns)
{
    uint32_t opens;
    if (!r->folder)
        return;
    if (r->files[0].fd < 0 || now_ns >= r->next_ns) {
        r->next_ns = now_ns + AGAIN_NS;
        find_store(r);
    }
    if (!fm_live_file_read(&r->files[0], &opens, sizeof opens,
                           offsetof(struct fm_live_header, opens)) ||
        opens == r->opens)
        return;
    for (unsigned i = 1; i < FM_LIVE_FILES; i++)
        fm_live_file_open(&r->files[i]);
    list_records(r);
    r->opens = opens;
    r->listing++;
}

void fm_open_regions_place(const struct fm_open_regions *r, uint32_t tid,
                           struct fm_open_place *place)
{
    if (place->listing == r->listing)
        return;
    *place = (struct fm_open_place){ .tid = tid, .listing = r->listing };
    for (size_t i = 0; i < r->places.len; i++)
        if (r->places.data[i].tid == tid) /* the last, if a thread of that number was before */
            place->at = r->places.data[i].at, place->file = r->places.data[i].file;
}

bool fm_open_regions_read(const struct fm_open_regions *r, const struct fm_open_place *place,
                          struct fm_live_open *ret)
{
    if (!place->at || place->listing != r->listing ||
        !fm_live_file_read(&r->files[place->file], ret, sizeof *ret, place->at) ||
        ret->tid != place->tid)
        return false;
    if (ret->n > FM_LIVE_OPEN_MOST)
        ret->n = FM_LIVE_OPEN_MOST;
    return ret->n > 0;
}

/* ---- names ------------------------------------------------------------------------------- */

static void define(void *context, uint64_t kind, struct fm_cursor *fields)
{
    struct fm_open_regions *r = context;
    if (kind != FM_LIVE_DEF_REGION)
        return;
    uint64_t id = fm_cursor_varint(fields);
    fm_cursor_varint(fields); /* the region around it */
    fm_autofree char *name = fm_live_text(fields);
    if (fields->failed || !name || !id || id >= REGIONS_MAX || r->names.len >= REGIONS_MAX)
        return;
    while (r->numbers.len <= id)
        fm_vec_push(&r->numbers, 0);
    fm_vec_push(&r->names, fm_strdup(name));
    r->numbers.data[id] = (uint32_t)r->names.len;
}

/* 1 + the number of a region; 0: it has no name (yet). */
static uint32_t number_of(struct fm_open_regions *r, uint32_t id)
{
    if (id >= r->numbers.len || !r->numbers.data[id])
        for (unsigned i = 0; i < FM_LIVE_FILES; i++)
            fm_live_file_definitions(&r->files[i], define, r);
    return id < r->numbers.len ? r->numbers.data[id] : 0;
}

/* ---- stacks ------------------------------------------------------------------------------ */

/* The regions of a call, the newest first. */
static uint32_t add_regions_of(struct fm_open_regions *r, const struct fm_live_open *open,
                               const struct fm_climb_place *call, struct fm_woven *ret)
{
    uint32_t found = 0;
    for (uint32_t i = open->n; i-- > 0;) {
        const struct fm_live_open_region *region = &open->regions[i];
        if (!region->frame || region->frame != call->frame || region->code != call->code)
            continue;
        uint32_t number = number_of(r, region->region);
        if (number)
            fm_vec_push(&ret->frames, fm_raw_region(number - 1));
        found++;
    }
    return found;
}

void fm_open_regions_weave(struct fm_open_regions *r, const struct fm_live_open *open,
                           const struct fm_climb *climb, struct fm_woven *ret)
{
    uint32_t left = open->n;
    ret->frames.len = 0;
    for (size_t i = 0; i < climb->frames.len; i++) {
        if (left)
            left -= add_regions_of(r, open, &climb->places.data[i], ret);
        fm_vec_push(&ret->frames, climb->frames.data[i]);
    }
}
