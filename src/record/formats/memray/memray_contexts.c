/* Contexts of memray's files; see memray_contexts.h. */
#include "record/formats/memray/memray_contexts.h"

#include <string.h>

#include "base/memory.h"
#include "record/model/tree.h"

/* What one of it takes, about: in the vectors, in the maps, and later in the profile. */
#define CONTEXT_COST 300
#define FRAME_COST   100
#define CODE_COST    150
#define THREAD_COST  300

void fm_memray_contexts_init(struct fm_memray_contexts *c, struct fm_memray_heap *heap,
                             struct fm_budget *budget)
{
    *c = (struct fm_memray_contexts){ .heap = heap, .budget = budget, .p = fm_profile_new() };
    c->recent = fm_calloc(FM_MEMRAY_RECENT, sizeof *c->recent);
    fm_vec_push(&c->all, (struct fm_memray_context){ 0 });
}

void fm_memray_contexts_release(struct fm_memray_contexts *c)
{
    for (size_t i = 0; i < c->threads.len; i++)
        fm_vec_release(&c->threads.data[i].stack);
    fm_vec_release(&c->all);
    fm_vec_release(&c->threads);
    fm_vec_release(&c->frames);
    fm_vec_release(&c->codes);
    fm_buffer_release(&c->tables);
    fm_map_release(&c->children);
    fm_map_release(&c->frame_index);
    fm_map_release(&c->code_index);
    fm_map_release(&c->thread_index);
    free(c->recent);
}

/* ---- while reading ---- */

static uint32_t make_context(struct fm_memray_contexts *c, uint32_t parent, uint32_t frame,
                             uint32_t thread)
{
    fm_vec_push(&c->all,
                ((struct fm_memray_context){ .parent = parent, .frame = frame, .thread = thread }));
    fm_memray_heap_context(c->heap, thread);
    return (uint32_t)c->all.len - 1;
}

uint32_t fm_memray_thread(struct fm_memray_contexts *c, uint64_t tid)
{
    bool is_new;
    uint32_t fresh = (uint32_t)c->threads.len;
    uint32_t thread = *fm_map_at(&c->thread_index, tid, fresh, &is_new);
    if (!is_new)
        return thread;
    if (!fm_budget_take(c->budget, 1, CONTEXT_COST + THREAD_COST))
        return FM_NONE;
    fm_vec_push(&c->threads, ((struct fm_memray_thread){ .tid = tid }));
    fm_memray_heap_thread(c->heap);
    c->threads.data[thread].root = make_context(c, 0, 0, thread);
    return thread;
}

static uint32_t frame_of(struct fm_memray_contexts *c, uint64_t key)
{
    bool is_new;
    uint32_t fresh = (uint32_t)c->frames.len;
    uint32_t frame = *fm_map_at(&c->frame_index, key, fresh, &is_new);
    if (!is_new)
        return frame;
    if (!fm_budget_take(c->budget, 1, FRAME_COST))
        return FM_NONE;
    fm_vec_push(&c->frames, key);
    return frame;
}

uint32_t fm_memray_child_slowly(struct fm_memray_contexts *c, uint32_t context, uint64_t key)
{
    bool is_new;
    uint32_t frame = frame_of(c, key);
    if (frame == FM_NONE)
        return FM_NONE;
    uint32_t fresh = (uint32_t)c->all.len;
    uint32_t child = fm_tree_at(&c->children, context, frame, fresh, &is_new);
    if (is_new) {
        if (!fm_budget_take(c->budget, 1, CONTEXT_COST))
            return FM_NONE;
        make_context(c, context, frame, c->all.data[context].thread);
    }
    *fm_memray_recent_of(c, context, key) = (struct fm_memray_recent){ key, context, child };
    return child;
}

bool fm_memray_define(struct fm_memray_contexts *c, uint32_t number,
                      const struct fm_memray_code *code, const struct fm_buffer *table)
{
    bool is_new;
    if (!fm_budget_take(c->budget, 1, CODE_COST + table->len))
        return false;
    uint32_t at = *fm_map_at(&c->code_index, number, (uint32_t)c->codes.len, &is_new);
    if (is_new)
        fm_vec_push(&c->codes, (struct fm_memray_code){ 0 });
    c->codes.data[at] = *code;
    c->codes.data[at].table = c->tables.len;
    c->codes.data[at].table_len = (uint32_t)table->len;
    fm_buffer_add(&c->tables, table->data, table->len);
    return true;
}

/* ---- lines ---- */

/* The instructions of a code object up to `end` are of this line. */
struct memray_span {
    uint32_t end, line;
};

struct memray_lines {
    FM_VEC(struct memray_span) spans;
    FM_VEC(uint32_t) first; /* by code: of its spans; UINT32_MAX while they are not decoded */
    FM_VEC(uint32_t) count;
};

/* Each table is gone through once, however many instructions of it were met. An instruction without a line has
 * that of the one before, as memray has it. */
static void decode(const struct fm_memray_contexts *c, uint32_t at, struct memray_lines *lines)
{
    const struct fm_memray_code *code = &c->codes.data[at];
    struct fm_linetable_cursor table;
    struct fm_linetable_entry entry;
    uint32_t line = code->line;
    lines->first.data[at] = (uint32_t)lines->spans.len;
    fm_linetable_init(&table, c->table_kind, (const uint8_t *)c->tables.data + code->table,
                      code->table_len, code->line, UINT32_MAX);
    while (code->table_len && fm_linetable_next(&table, &entry)) {
        line = entry.position.line ? entry.position.line : line;
        fm_vec_push(&lines->spans, ((struct memray_span){ entry.end, line }));
    }
    lines->count.data[at] = (uint32_t)(lines->spans.len - lines->first.data[at]);
}

static uint32_t line_of(const struct fm_memray_contexts *c, uint32_t at, uint32_t instruction,
                        struct memray_lines *lines)
{
    int32_t offset = (int32_t)instruction;
    if (offset < 0)
        return 0;
    if (lines->first.data[at] == UINT32_MAX)
        decode(c, at, lines);
    /* 3.10 counts instructions, the others bytes. */
    uint64_t byte = c->table_kind == FM_TABLE_PEP626 ? (uint64_t)offset * 2 : (uint64_t)offset;
    const struct memray_span *spans = lines->spans.data + lines->first.data[at];
    uint32_t low = 0, high = lines->count.data[at];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (spans[middle].end > byte)
            high = middle;
        else
            low = middle + 1;
    }
    return low < lines->count.data[at] ? spans[low].line : 0;
}

/* ---- functions ---- */

/* Older files have lines alone: the lowest stands for the first of the function. */
static void find_first_lines(struct fm_memray_contexts *c)
{
    struct fm_map names = { 0 };
    FM_VEC(uint32_t) lowest = { 0 };
    fm_autofree uint32_t *which = fm_malloc((c->codes.len + 1) * sizeof *which);
    for (size_t i = 0; i < c->codes.len; i++) {
        bool is_new;
        const struct fm_memray_code *code = &c->codes.data[i];
        uint64_t key = fm_map_pair(code->file, code->name);
        which[i] = *fm_map_at(&names, key, (uint32_t)lowest.len, &is_new);
        if (is_new)
            fm_vec_push(&lowest, code->line);
        if (code->line < lowest.data[which[i]])
            lowest.data[which[i]] = code->line;
    }
    for (size_t i = 0; i < c->codes.len; i++)
        c->codes.data[i].line = lowest.data[which[i]];
    fm_vec_release(&lowest);
    fm_map_release(&names);
}

static uint32_t function_of(struct fm_memray_contexts *c, const struct fm_memray_code *code)
{
    struct fm_function f = { .kind = FM_FUNCTION_PYTHON,
                             .name = code ? code->name : fm_profile_string(c->p, "<unknown>"),
                             .file = code ? code->file : 0,
                             .line = code ? code->line : 0 };
    f.qualname = f.name;
    return fm_profile_function(c->p, &f);
}

/* A frame as a place of the program: numbers of equal ones are equal. */
struct memray_spot {
    uint32_t func, line;
};

struct memray_spots {
    FM_VEC(struct memray_spot) all;
    struct fm_map index;
    uint32_t *of_frame;
};

static void find_spots(struct fm_memray_contexts *c, struct memray_spots *spots)
{
    struct memray_lines lines = { 0 };
    fm_autofree uint32_t *only = fm_malloc((c->codes.len + 1) * sizeof *only);
    for (size_t i = 0; i < c->codes.len; i++) {
        only[i] = c->codes.data[i].line;
        fm_vec_push(&lines.first, UINT32_MAX);
        fm_vec_push(&lines.count, 0);
    }
    if (c->lines_are_defined)
        find_first_lines(c);
    spots->of_frame = fm_malloc((c->frames.len + 1) * sizeof *spots->of_frame);
    for (size_t i = 0; i < c->frames.len; i++) {
        uint64_t key = c->frames.data[i];
        uint64_t number = c->lines_are_defined ? key : key >> 32;
        const uint32_t *code = fm_map_find(&c->code_index, number);
        struct memray_spot spot = { function_of(c, code ? &c->codes.data[*code] : NULL), 0 };
        if (code)
            spot.line =
                c->lines_are_defined ? only[*code] : line_of(c, *code, (uint32_t)key, &lines);
        bool is_new;
        uint64_t place = fm_map_pair(spot.func, spot.line);
        spots->of_frame[i] = *fm_map_at(&spots->index, place, (uint32_t)spots->all.len, &is_new);
        if (is_new)
            fm_vec_push(&spots->all, spot);
    }
    fm_vec_release(&lines.spans);
    fm_vec_release(&lines.first);
    fm_vec_release(&lines.count);
}

/* ---- the profile ---- */

static void place_thread(struct fm_memray_contexts *c, uint32_t thread, uint32_t process,
                         bool is_main)
{
    const struct fm_memray_thread *t = &c->threads.data[thread];
    const struct fm_process *owner = &c->p->processes.data[process];
    uint32_t name = t->name ? t->name : is_main ? fm_profile_string(c->p, "MainThread") : 0;
    fm_profile_thread(c->p, &(struct fm_thread){ .process = process,
                                                 .tid = (uint32_t)t->tid,
                                                 .name = name,
                                                 .start_ns = owner->start_ns,
                                                 .end_ns = owner->end_ns });
}

uint32_t *fm_memray_place(struct fm_memray_contexts *c, uint32_t process, uint64_t main_tid,
                          uint64_t skipped)
{
    struct memray_spots spots = { 0 };
    struct fm_map children = { 0 };
    struct fm_profile *p = c->p;
    uint32_t *nodes = fm_malloc((c->all.len + 1) * sizeof *nodes);
    fm_autofree uint32_t *depths = fm_calloc(c->all.len + 1, sizeof *depths);
    find_spots(c, &spots);
    nodes[0] = FM_NONE;
    for (uint32_t i = 0; i < c->threads.len; i++)
        place_thread(c, i, process, c->threads.data[i].tid == main_tid);
    for (uint32_t i = 1; i < c->all.len; i++) {
        const struct fm_memray_context *context = &c->all.data[i];
        nodes[i] = p->threads.data[context->thread].root;
        if (!context->parent)
            continue;
        depths[i] = depths[context->parent] + 1;
        if (c->threads.data[context->thread].tid == main_tid && depths[i] <= skipped)
            continue;
        bool is_new;
        uint32_t parent = nodes[context->parent], spot = spots.of_frame[context->frame];
        nodes[i] = fm_tree_at(&children, parent, spot, (uint32_t)p->nodes.len, &is_new);
        if (is_new)
            fm_profile_node_at(p, parent, spots.all.data[spot].func, spots.all.data[spot].line);
    }
    fm_map_release(&children);
    fm_map_release(&spots.index);
    fm_vec_release(&spots.all);
    free(spots.of_frame);
    return nodes;
}
