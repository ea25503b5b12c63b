/* The code objects of a target; see codes.h. */
#include "watch/sampler/codes.h"

#include <string.h>

#define FRESH_NS       10000000u
#define CHURN_NS       1000000000u
#define BYTECODE_NS    20000000u /* how long a copy of bytecode serves */
#define BATCH          64        /* compared in one read */
#define HEAD_MAX_BYTES 512

void fm_codes_init(struct fm_codes *codes, const struct fm_remote *remote,
                   const struct fm_layout *layout)
{
    *codes = (struct fm_codes){ .remote = remote, .layout = layout };
}

static void free_code(struct fm_known_code *known)
{
    fm_code_release(&known->code);
    free(known);
}

void fm_codes_release(struct fm_codes *codes)
{
    for (size_t i = 0; i < codes->list.len; i++)
        free_code(codes->list.data[i]);
    fm_vec_release(&codes->list);
    fm_vec_release(&codes->due);
    fm_map_release(&codes->by_address);
}

void fm_codes_begin(struct fm_codes *codes, uint64_t now_ns)
{
    codes->look++;
    codes->now_ns = now_ns;
    codes->n_none = 0;
    codes->counts_deaths = false;
}

void fm_codes_deaths(struct fm_codes *codes, uint64_t generation)
{
    codes->generation = generation;
    codes->counts_deaths = true;
}

/* --- reading ---------------------------------------------------------------------------------- */

static void mark_compared(const struct fm_codes *codes, struct fm_known_code *known)
{
    known->look = codes->look;
    known->checked_ns = codes->now_ns;
    known->generation = codes->generation;
}

/* NULL if there is none. */
static struct fm_known_code *read_code(struct fm_codes *codes, fm_addr at)
{
    struct fm_known_code known = { 0 };
    if (codes->layout->code_size > HEAD_MAX_BYTES ||
        fm_code_read(&known.code, codes->remote, codes->layout, at, codes->type) < 0)
        return NULL;
    known.hidden = fm_code_is_shim(&known.code, codes->layout);
    /* Without a table (which 3.9 and 3.10 may leave empty) the code object is being made or unmade.
     */
    if (codes->layout->table == FM_TABLE_PEP657 && !known.code.table_len && !known.hidden) {
        fm_code_release(&known.code);
        return NULL;
    }
    codes->type = known.code.type;
    codes->changed_ns = codes->now_ns;
    mark_compared(codes, &known);
    struct fm_known_code *kept = fm_malloc(sizeof *kept);
    *kept = known;
    return kept;
}

/* Was one made of the same source as the other? */
static bool is_same_source(const struct fm_code *a, const struct fm_code *b)
{
    return a->at == b->at && a->first_line == b->first_line && a->flags == b->flags &&
           a->table_len == b->table_len && a->bytecode_len == b->bytecode_len &&
           strcmp(a->name, b->name) == 0 && strcmp(a->qualname, b->qualname) == 0 &&
           strcmp(a->file, b->file) == 0 &&
           (!a->table_len || memcmp(a->table, b->table, a->table_len) == 0) &&
           a->n_copies == b->n_copies &&
           (!a->n_copies || memcmp(a->copies, b->copies, a->n_copies * sizeof *a->copies) == 0);
}

/* A program may make the same code over and over: equal code keeps its number, or memory would grow
 * with time. */
static uint32_t keep(struct fm_codes *codes, uint32_t old, struct fm_known_code *fresh)
{
    struct fm_known_code *known = old == FM_NO_CODE ? NULL : codes->list.data[old];
    if (known && is_same_source(&known->code, &fresh->code)) {
        known->code.identity = fresh->code.identity;
        memcpy(known->code.tails, fresh->code.tails, sizeof known->code.tails);
        mark_compared(codes, known);
        free_code(fresh);
        return old;
    }
    fm_vec_push(&codes->list, fresh);
    return (uint32_t)codes->list.len - 1;
}

/* Read what lies at `at` now, in place of what was known of that address. */
static void read_anew(struct fm_codes *codes, fm_addr at)
{
    uint32_t *number = fm_map_at(&codes->by_address, at, FM_NO_CODE, NULL);
    struct fm_known_code *fresh = read_code(codes, at);
    if (fresh)
        *number = keep(codes, *number, fresh);
    else if (codes->n_none < FM_COUNT(codes->none))
        codes->none[codes->n_none++] = at;
}

/* --- comparing -------------------------------------------------------------------------------- */

/* Compare up to BATCH code objects in one read; those that differ are read anew. How many were? */
static uint32_t compare(struct fm_codes *codes, const uint32_t *numbers, uint32_t n)
{
    static _Thread_local uint8_t heads[BATCH][HEAD_MAX_BYTES];
    struct fm_span spans[3 * BATCH] = { { 0 } };
    uint8_t tails[BATCH][2][FM_CODE_TAIL];
    int each = fm_code_compares_tails(codes->layout) ? 3 : 1;
    uint32_t replaced = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct fm_code *code = &codes->list.data[numbers[i]]->code;
        spans[each * i] = (struct fm_span){ code->at, heads[i], codes->layout->code_size };
        for (int k = 1; k < each; k++)
            spans[each * i + k] =
                (struct fm_span){ code->tails[k - 1].at, tails[i][k - 1], code->tails[k - 1].len };
    }
    int got = n ? fm_remote_read_spans(codes->remote, spans, each * (int)n) / each : 0;
    for (uint32_t i = 0; i < n; i++) {
        struct fm_known_code *known = codes->list.data[numbers[i]];
        if ((int)i < got && fm_code_identity(codes->layout, heads[i]) == known->code.identity &&
            (each == 1 || fm_code_has_tails(&known->code, tails[i]))) {
            mark_compared(codes, known);
            continue;
        }
        known->look = codes->look;
        read_anew(codes, known->code.at);
        replaced++;
    }
    return replaced;
}

static bool is_due(const struct fm_codes *codes, const struct fm_known_code *known)
{
    if (known->look == codes->look)
        return false;
    if (codes->counts_deaths)
        return known->generation != codes->generation;
    return codes->now_ns - codes->changed_ns < CHURN_NS ||
           codes->now_ns - known->checked_ns >= FRESH_NS;
}

bool fm_codes_confirm(struct fm_codes *codes, const struct fm_raw_frame *frames, size_t n)
{
    uint32_t replaced = 0;
    codes->due.len = 0;
    for (size_t i = 0; i < n; i++) {
        struct fm_known_code *known = codes->list.data[frames[i].code];
        if (!is_due(codes, known))
            continue;
        known->look = codes->look; /* a recursion has the same code many times: compare it once */
        fm_vec_push(&codes->due, frames[i].code);
    }
    for (size_t i = 0; i < codes->due.len; i += BATCH) {
        size_t left = codes->due.len - i;
        replaced += compare(codes, codes->due.data + i, (uint32_t)(left < BATCH ? left : BATCH));
    }
    return replaced == 0;
}

/* --- asking ----------------------------------------------------------------------------------- */

static bool is_none(const struct fm_codes *codes, fm_addr at)
{
    for (uint32_t i = 0; i < codes->n_none; i++) {
        if (codes->none[i] == at)
            return true;
    }
    return codes->n_none == FM_COUNT(codes->none); /* too many to remember: no more */
}

enum fm_climb_code fm_codes_fit(struct fm_codes *codes, fm_addr at, uint64_t instr,
                                struct fm_raw_frame *ret)
{
    const uint32_t *number = fm_map_find(&codes->by_address, at);
    if (codes->n_none && is_none(codes, at))
        return FM_CODE_MISFIT;
    if (!number || *number == FM_NO_CODE)
        return FM_CODE_MISSING;
    const struct fm_known_code *known = codes->list.data[*number];
    ret->code = *number;
    if (fm_code_offset(&known->code, codes->layout, instr, &ret->offset))
        return known->hidden ? FM_CODE_HIDDEN : FM_CODE_FITS;
    return known->look == codes->look ? FM_CODE_MISFIT : FM_CODE_MISSING;
}

void fm_codes_read(struct fm_codes *codes, fm_addr at)
{
    const uint32_t *number = fm_map_find(&codes->by_address, at);
    /* Free-threaded: a thread may have made a copy of the bytecode for itself since. */
    if (!number || *number == FM_NO_CODE || codes->layout->free_threaded)
        read_anew(codes, at);
    else
        compare(codes, &(uint32_t){ *number }, 1);
}

uint32_t fm_codes_number(struct fm_codes *codes, fm_addr at)
{
    const uint32_t *number = fm_map_find(&codes->by_address, at);
    if (number && *number != FM_NO_CODE)
        return *number;
    if (!at || is_none(codes, at))
        return FM_NO_CODE;
    read_anew(codes, at);
    number = fm_map_find(&codes->by_address, at);
    return number ? *number : FM_NO_CODE;
}

bool fm_codes_runs_c(struct fm_codes *codes, const struct fm_raw_frame *frame, uint64_t now_ns)
{
    struct fm_known_code *known = codes->list.data[frame->code];
    struct fm_code *code = &known->code;
    if (frame->offset < 0 || (uint32_t)frame->offset >= code->bytecode_len)
        return false;
    if (now_ns - known->bytecode_ns > BYTECODE_NS && codes->layout->frames != FM_FRAMES_HEAP) {
        known->bytecode_ns = now_ns;
        fm_remote_read(codes->remote, code->at + codes->layout->code_bytecode, code->bytecode,
                       code->bytecode_len); /* the old copy serves if this fails */
    }
    return fm_layout_runs_c(codes->layout, code->bytecode[frame->offset]);
}
