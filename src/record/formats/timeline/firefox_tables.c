/* The tables that threads of a Firefox profile share; see firefox.h. */
#include "record/formats/timeline/firefox.h"

#include <string.h>

#include "base/memory.h"
#include "record/formats/json.h"

#define NO_FRAME_NAME "(no Python frame)"

void fm_firefox_init(struct fm_firefox *f, const struct fm_profile *p)
{
    size_t threads = p->threads.len + 1, lanes = p->order.lanes.len + 1;
    *f = (struct fm_firefox){ .p = p, .no_frame = FM_NONE };
    f->first_node = fm_malloc(threads * sizeof *f->first_node);
    f->first_lane = fm_malloc(threads * sizeof *f->first_lane);
    f->next_node = fm_malloc((p->nodes.len + 1) * sizeof *f->next_node);
    f->next_lane = fm_malloc(lanes * sizeof *f->next_lane);
    memset(f->first_node, 0xff, threads * sizeof *f->first_node);
    memset(f->first_lane, 0xff, threads * sizeof *f->first_lane);
    for (size_t i = p->nodes.len; i-- > 0;) {
        f->next_node[i] = f->first_node[p->nodes.data[i].thread];
        f->first_node[p->nodes.data[i].thread] = (uint32_t)i;
    }
    for (size_t i = p->order.lanes.len; i-- > 0;) {
        f->next_lane[i] = f->first_lane[p->order.lanes.data[i].thread];
        f->first_lane[p->order.lanes.data[i].thread] = (uint32_t)i;
    }
}

void fm_firefox_release(struct fm_firefox *f)
{
    fm_own_release(&f->own);
    free(f->node_stack);
    free(f->first_node);
    free(f->next_node);
    free(f->first_lane);
    free(f->next_lane);
    fm_vec_release(&f->strings);
    fm_vec_release(&f->sources);
    fm_vec_release(&f->functions);
    fm_vec_release(&f->frames);
    fm_vec_release(&f->stacks);
    fm_map_release(&f->string_of);
    fm_map_release(&f->source_of);
    fm_map_release(&f->function_of);
    fm_map_release(&f->frame_of);
    fm_map_release(&f->stack_of);
}

/* ---- rows ---- */

static uint32_t string_row(struct fm_firefox *f, uint32_t string)
{
    bool is_new;
    uint32_t row = *fm_map_at(&f->string_of, string, (uint32_t)f->strings.len, &is_new);
    if (is_new)
        fm_vec_push(&f->strings, string);
    return row;
}

static uint32_t source_row(struct fm_firefox *f, uint32_t file)
{
    bool is_new;
    if (!fm_strings_len(f->p->strings, file))
        return FM_NONE;
    uint32_t row = *fm_map_at(&f->source_of, file, (uint32_t)f->sources.len, &is_new);
    if (is_new) {
        uint32_t text = string_row(f, file);
        fm_vec_push(&f->sources, text);
    }
    return row;
}

/* The root of a thread stands for samples that showed no frame. */
static uint32_t function_row(struct fm_firefox *f, uint32_t func)
{
    bool is_new;
    const struct fm_function *function = &f->p->functions.data[func];
    struct fm_firefox_function row = { FM_NONE, FM_NONE, 0 };
    if (function->kind == FM_FUNCTION_ROOT) {
        if (f->no_frame == FM_NONE) {
            f->no_frame = (uint32_t)f->functions.len;
            fm_vec_push(&f->functions, row);
        }
        return f->no_frame;
    }
    uint32_t at = *fm_map_at(&f->function_of, func, (uint32_t)f->functions.len, &is_new);
    if (is_new) {
        row.name = string_row(f, function->qualname);
        row.source = source_row(f, function->file);
        row.line = function->line;
        fm_vec_push(&f->functions, row);
    }
    return at;
}

static uint32_t frame_row(struct fm_firefox *f, uint32_t function, uint32_t line, uint32_t category)
{
    bool is_new;
    uint32_t fresh = (uint32_t)f->frames.len;
    /* Lines of files are below 2^24 in all that Python compiles; others share a frame at worst. */
    uint64_t key = fm_map_pair(function, (line & 0xffffff) << 8 | category);
    uint32_t row = *fm_map_at(&f->frame_of, key, fresh, &is_new);
    if (is_new)
        fm_vec_push(&f->frames, ((struct fm_firefox_frame){ function, line, category }));
    return row;
}

uint32_t fm_firefox_stack(struct fm_firefox *f, uint32_t prefix, uint32_t func, uint32_t line,
                          uint32_t category)
{
    bool is_new;
    uint32_t frame = frame_row(f, function_row(f, func), line, category);
    uint32_t fresh = (uint32_t)f->stacks.len;
    uint32_t row = *fm_map_at(&f->stack_of, fm_map_pair(prefix, frame), fresh, &is_new);
    if (is_new)
        fm_vec_push(&f->stacks, ((struct fm_firefox_stack){ prefix, frame }));
    return row;
}

/* ---- columns ---- */

enum firefox_column {
    STACK_FRAME,
    STACK_PREFIX,
    FRAME_FUNCTION,
    FRAME_CATEGORY,
    FRAME_SUBCATEGORY,
    FRAME_LINE,
    FUNCTION_NAME,
    FUNCTION_SOURCE,
    FUNCTION_LINE,
    SOURCE_NAME,
};

/* A cell, or FM_NONE where the format has null. */
static uint32_t cell(const struct fm_firefox *f, enum firefox_column column, size_t i)
{
    switch (column) {
    case STACK_FRAME:
        return f->stacks.data[i].frame;
    case STACK_PREFIX:
        return f->stacks.data[i].prefix;
    case FRAME_FUNCTION:
        return f->frames.data[i].function;
    case FRAME_CATEGORY:
        return f->frames.data[i].category ? f->frames.data[i].category : FM_NONE;
    case FRAME_SUBCATEGORY:
        return f->frames.data[i].category ? 0 : FM_NONE;
    case FRAME_LINE:
        return f->frames.data[i].line ? f->frames.data[i].line : FM_NONE;
    case FUNCTION_NAME: /* the one without a name is named behind all strings */
        return i == f->no_frame ? (uint32_t)f->strings.len : f->functions.data[i].name;
    case FUNCTION_SOURCE:
        return f->functions.data[i].source;
    case FUNCTION_LINE:
        return f->functions.data[i].line ? f->functions.data[i].line : FM_NONE;
    case SOURCE_NAME:
        return f->sources.data[i];
    }
    return FM_NONE;
}

static void put_column(const struct fm_firefox *f, struct fm_buffer *out, const char *key,
                       enum firefox_column column, size_t len)
{
    fm_buffer_addf(out, "\"%s\":[", key);
    for (size_t i = 0; i < len; i++) {
        uint32_t value = cell(f, column, i);
        if (i)
            fm_buffer_add_char(out, ',');
        if (value == FM_NONE)
            fm_buffer_add_text(out, "null");
        else
            fm_buffer_addf(out, "%u", value);
    }
    fm_buffer_add_text(out, "],\n");
}

/* A column that has the same in every row. */
static void put_same(struct fm_buffer *out, const char *key, const char *value, size_t len)
{
    fm_buffer_addf(out, "\"%s\":[", key);
    for (size_t i = 0; i < len; i++)
        fm_buffer_addf(out, "%s%s", i ? "," : "", value);
    fm_buffer_add_text(out, "],\n");
}

static void put_frames(const struct fm_firefox *f, struct fm_buffer *out)
{
    size_t n = f->frames.len;
    fm_buffer_add_text(out, "\"frameTable\":{");
    put_same(out, "address", "-1", n);
    put_same(out, "inlineDepth", "0", n);
    put_column(f, out, "category", FRAME_CATEGORY, n);
    put_column(f, out, "subcategory", FRAME_SUBCATEGORY, n);
    put_column(f, out, "func", FRAME_FUNCTION, n);
    put_same(out, "nativeSymbol", "null", n);
    put_same(out, "innerWindowID", "0", n);
    put_column(f, out, "line", FRAME_LINE, n);
    put_same(out, "column", "null", n);
    fm_buffer_addf(out, "\"length\":%zu},\n", n);
}

static void put_functions(const struct fm_firefox *f, struct fm_buffer *out)
{
    size_t n = f->functions.len;
    fm_buffer_add_text(out, "\"funcTable\":{");
    put_column(f, out, "name", FUNCTION_NAME, n);
    put_same(out, "isJS", "false", n);
    put_same(out, "relevantForJS", "false", n);
    put_same(out, "resource", "-1", n);
    put_column(f, out, "source", FUNCTION_SOURCE, n);
    put_column(f, out, "lineNumber", FUNCTION_LINE, n);
    put_same(out, "columnNumber", "null", n);
    fm_buffer_addf(out, "\"length\":%zu},\n", n);
}

void fm_firefox_put_shared(const struct fm_firefox *f, struct fm_buffer *out)
{
    fm_buffer_add_text(out, "\"shared\":{\"stackTable\":{");
    put_column(f, out, "frame", STACK_FRAME, f->stacks.len);
    put_column(f, out, "prefix", STACK_PREFIX, f->stacks.len);
    fm_buffer_addf(out, "\"length\":%zu},\n", f->stacks.len);
    put_frames(f, out);
    put_functions(f, out);
    fm_buffer_add_text(out, "\"resourceTable\":{\"lib\":[],\"name\":[],\"host\":[],\"type\":[],"
                            "\"length\":0},\n\"nativeSymbols\":{\"libIndex\":[],\"address\":[],"
                            "\"name\":[],\"functionSize\":[],\"length\":0},\n\"sources\":{");
    put_same(out, "uuid", "null", f->sources.len);
    put_column(f, out, "filename", SOURCE_NAME, f->sources.len);
    fm_buffer_addf(out, "\"length\":%zu},\n\"stringArray\":[", f->sources.len);
    for (size_t i = 0; i < f->strings.len; i++) {
        fm_buffer_add_text(out, i ? ",\n" : "\n");
        fm_json_put_string(out, f->p, f->strings.data[i]);
    }
    if (f->no_frame != FM_NONE)
        fm_buffer_addf(out, "%s\n\"" NO_FRAME_NAME "\"", f->strings.len ? "," : "");
    fm_buffer_add_text(out, "]}");
}
