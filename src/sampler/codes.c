/* The code objects of a target; see codes.h. */
#include "sampler/codes.h"

#include <string.h>

#define CHECK_BATCH 64
#define BYTECODE_NS 20000000u /* how long a copy of bytecode serves */
#define FIRST_CHURN_NS 100000000u
#define HEAD_MAX_BYTES 512

void fm_codes_init(struct fm_codes *codes, const struct fm_remote *remote,
                   const struct fm_layout *layout)
{
    *codes = (struct fm_codes){ .remote = remote, .layout = layout };
    codes->counts_deaths = layout->interp_code_generation != FM_ABSENT;
}

void fm_codes_release(struct fm_codes *codes)
{
    for (size_t i = 0; i < codes->list.len; i++)
        fm_code_release(&codes->list.data[i].code);
    fm_vec_release(&codes->list);
    fm_map_release(&codes->by_address);
}

/* How large a frame of this code is: what tells frames apart in a datastack chunk. As _PyCode_New and, in 3.11,
 * _PyEval_MakeFrameVector compute it: all in whole words. */
static uint32_t frame_bytes(const struct fm_codes *codes, const struct fm_code *code)
{
    if (codes->layout->frames == FM_FRAMES_HEAP)
        return 0;
    return (codes->layout->frame_localsplus & ~7u) + (code->locals + code->stack) * 8;
}

static void remember(struct fm_codes *codes, fm_addr at, uint32_t number)
{
    *fm_map_at(&codes->by_address, at, number, NULL) = number;
    codes->recent[at >> 4 & 255] = (struct fm_addr_number){ at, number };
}

static uint32_t read_new(struct fm_codes *codes, fm_addr at)
{
    /* It may be dead, read for a frame that has ended: to be compared before a stack relies on it. */
    struct fm_known_code known = { .generation = UINT64_MAX };
    if (fm_code_read(&known.code, codes->remote, codes->layout, at, codes->type) < 0)
        return FM_NO_CODE;
    codes->type = known.code.type;
    known.frame_bytes = frame_bytes(codes, &known.code);
    /* Without a table (which 3.9 and 3.10 may leave empty) it is one that is being made or unmade. */
    bool half = codes->layout->table == FM_TABLE_PEP657 && !known.code.table_len &&
                !fm_code_is_shim(&known.code, codes->layout);
    bool endless = codes->layout->frames != FM_FRAMES_HEAP && !known.frame_bytes; /* a layout may say anything */
    if (half || endless) {
        fm_code_release(&known.code);
        return FM_NO_CODE;
    }
    known.hidden = fm_code_is_shim(&known.code, codes->layout);
    fm_vec_push(&codes->list, known);
    remember(codes, at, (uint32_t)codes->list.len - 1);
    return (uint32_t)codes->list.len - 1;
}

uint32_t fm_codes_slow(struct fm_codes *codes, fm_addr at)
{
    const uint32_t *found = fm_map_find(&codes->by_address, at);
    if (!found || *found == FM_NO_CODE)
        return at ? read_new(codes, at) : FM_NO_CODE;
    codes->recent[at >> 4 & 255] = (struct fm_addr_number){ at, *found };
    return *found;
}

unsigned fm_codes_opcode_kind(struct fm_codes *codes, const struct fm_raw_frame *frame,
                              uint64_t now_ns)
{
    struct fm_known_code *known = &codes->list.data[frame->code];
    struct fm_code *code = &known->code;
    if (frame->offset < 0 || (uint32_t)frame->offset >= code->bytecode_len)
        return 0;
    if (now_ns - known->bytecode_ns > BYTECODE_NS && codes->layout->frames != FM_FRAMES_HEAP) {
        known->bytecode_ns = now_ns;
        fm_remote_read(codes->remote, code->at + codes->layout->code_bytecode, code->bytecode,
                       code->bytecode_len); /* the old copy serves if this fails */
    }
    return fm_layout_opcode_kind(codes->layout, code->bytecode[frame->offset]);
}

void fm_codes_doubt(struct fm_codes *codes, uint64_t generation)
{
    codes->before = codes->generation;
    codes->generation = generation;
}

static bool needs_check(const struct fm_codes *codes, const struct fm_known_code *known, uint64_t now_ns)
{
    if (codes->counts_deaths)
        return known->generation != codes->generation || codes->before != codes->generation;
    if (now_ns - codes->replaced_ns < FM_CODES_CHURN_NS)
        return true;
    return now_ns - known->checked_ns >= FM_CODES_FRESH_NS;
}

/* Was one made of the same source as the other? */
static bool is_same_source(const struct fm_code *a, const struct fm_code *b)
{
    return a->first_line == b->first_line && a->flags == b->flags && a->table_len == b->table_len &&
           a->bytecode_len == b->bytecode_len && strcmp(a->name, b->name) == 0 &&
           strcmp(a->qualname, b->qualname) == 0 && strcmp(a->file, b->file) == 0 &&
           (!a->table_len || memcmp(a->table, b->table, a->table_len) == 0);
}

/* What lies there now, in place of number `old`. A program may make the same code over and over: it keeps its
 * number, or memory would grow with time. */
static uint32_t replace(struct fm_codes *codes, uint32_t old)
{
    fm_addr at = codes->list.data[old].code.at;
    remember(codes, at, FM_NO_CODE);
    codes->recent[at >> 4 & 255].at = 0;
    uint32_t fresh = read_new(codes, at);
    if (fresh == FM_NO_CODE)
        return fresh;
    if (!is_same_source(&codes->list.data[old].code, &codes->list.data[fresh].code)) {
        codes->list.data[fresh].replaced_ns = codes->replaced_ns;
        return fresh;
    }
    struct fm_known_code dead = codes->list.data[old];
    codes->list.data[old] = codes->list.data[fresh]; /* the last one */
    codes->list.data[old].replaced_ns = dead.replaced_ns;
    codes->list.len--;
    fm_code_release(&dead.code);
    remember(codes, at, old);
    return old;
}

/* Compare up to CHECK_BATCH of them in one read. */
static uint32_t check_batch(struct fm_codes *codes, uint32_t **numbers, uint32_t n, uint64_t now_ns)
{
    static _Thread_local uint8_t heads[CHECK_BATCH][HEAD_MAX_BYTES];
    struct fm_span spans[3 * CHECK_BATCH];
    uint8_t tails[CHECK_BATCH][2][FM_CODE_TAIL];
    int each = fm_code_compares_tails(codes->layout) ? 3 : 1;
    uint32_t replaced = 0;
    if (!n)
        return 0;
    spans[0].len = 0; /* the compiler does not see that the loop sets it */
    for (uint32_t i = 0; i < n; i++) {
        const struct fm_known_code *known = &codes->list.data[*numbers[i]];
        spans[each * i] = (struct fm_span){ known->code.at, heads[i], codes->layout->code_size };
        for (int k = 1; k < each; k++)
            spans[each * i + k] = (struct fm_span){ known->code.tails[k - 1].at, tails[i][k - 1],
                                                    known->code.tails[k - 1].len };
    }
    int got = fm_remote_read_spans(codes->remote, spans, each * (int)n) / each;
    for (uint32_t i = 0; i < n; i++) {
        struct fm_known_code *known = &codes->list.data[*numbers[i]];
        if ((int)i < got && fm_code_identity(codes->layout, heads[i]) == known->code.identity &&
            (each == 1 || fm_code_has_tails(&known->code, tails[i]))) {
            known->checked_ns = now_ns;
            known->generation = codes->before; /* by now it may have died, though it looks the same */
            continue;
        }
        codes->replaced_ns = now_ns;
        *numbers[i] = replace(codes, *numbers[i]);
        replaced++;
    }
    return replaced;
}

uint32_t fm_codes_check(struct fm_codes *codes, uint32_t *numbers, uint32_t n, uint64_t now_ns)
{
    uint32_t *old[CHECK_BATCH], n_old = 0, replaced = 0;
    if (codes->layout->code_size > HEAD_MAX_BYTES)
        return 0;
    if (!codes->stamp++)
        codes->replaced_ns = now_ns - FM_CODES_CHURN_NS + FIRST_CHURN_NS; /* at first, anything is expected */
    for (uint32_t i = 0; i < n; i++) {
        struct fm_known_code *known = &codes->list.data[numbers[i]];
        if (known->stamp == codes->stamp || !needs_check(codes, known, now_ns))
            continue; /* recursion: the same code once */
        known->stamp = codes->stamp;
        old[n_old++] = &numbers[i];
        if (n_old == CHECK_BATCH) {
            replaced += check_batch(codes, old, n_old, now_ns);
            n_old = 0;
        }
    }
    return replaced + check_batch(codes, old, n_old, now_ns);
}

uint32_t fm_codes_renew(struct fm_codes *codes, uint32_t number, bool at_once, uint64_t now_ns)
{
    const struct fm_known_code *known = &codes->list.data[number];
    uint32_t *numbers[] = { &number };
    if (codes->layout->code_size > HEAD_MAX_BYTES || known->checked_ns == now_ns)
        return number;
    if (at_once || needs_check(codes, known, now_ns))
        check_batch(codes, numbers, 1, now_ns);
    return number;
}
