/* Code objects of the target; see code.h. */
#include "watch/cpython/code.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/positions.h"
#include "watch/cpython/text.h"

#define MAX_NAME_BYTES          4096
#define MAX_BYTECODE_BYTES      (4u << 20)
#define MAX_TABLE_BYTES         (4u << 20)
#define CO_NO_MONITORING_EVENTS 0x2000000
#define MAX_COPIES              4096 /* threads that ran one function */

/* The objects that a code object points to. */
enum { FILE_NAME, NAME, QUALNAME, TABLE, BYTECODE, N_PIECES };

static const char type_name[] = "code";

struct code_reading {
    const struct fm_remote *remote;
    const struct fm_layout *layout;
    struct fm_code *code;
    uint8_t *head,
        *again; /* layout->code_size bytes; as it was at first and after all else was read */
    uint8_t tails_again[2][FM_CODE_TAIL];
    struct fm_piece pieces[N_PIECES];
    bool wanted[N_PIECES];
    bool is_code; /* as its type says, which is known */
    fm_addr type_name_at;
};

static uint64_t word_at(const uint8_t *head, uint32_t offset)
{
    uint64_t word;
    memcpy(&word, head + offset, sizeof word);
    return word;
}

static uint32_t int_at(const uint8_t *head, uint32_t offset)
{
    uint32_t value;
    memcpy(&value, head + offset, sizeof value);
    return value;
}

static bool bytecode_is_inline(const struct fm_layout *layout)
{
    return layout->code_units != FM_ABSENT;
}

static int read_all(const struct fm_remote *remote, const struct fm_span *spans, int n)
{
    int r = n ? fm_remote_read_spans(remote, spans, n) : 0;
    return r < 0 ? r : r < n ? -EFAULT : 0;
}

/* co_version, which no two code objects share: since 3.12, five ints behind co_nlocalsplus. Pointers alone do
 * not tell a code object from one of the same shape that was made where it was, with all that it points to. */
static uint32_t version_of(const struct fm_layout *layout, const uint8_t *head)
{
    uint32_t at = layout->code_nlocalsplus;
    if (fm_layout_minor(layout) < 12 || at == FM_ABSENT || at + 24 > layout->code_size)
        return 0;
    return int_at(head, at + 20);
}

uint64_t fm_code_identity(const struct fm_layout *layout, const void *head)
{
    const uint8_t *h = head;
    uint64_t words[] = {
        word_at(h, layout->code_filename),
        word_at(h, layout->code_name),
        layout->code_qualname != FM_ABSENT ? word_at(h, layout->code_qualname) : 0,
        word_at(h, layout->code_linetable),
        word_at(h, bytecode_is_inline(layout) ? layout->code_units : layout->code_bytecode),
        (uint64_t)int_at(h, layout->code_first_line) << 32 | int_at(h, layout->code_flags),
        version_of(layout, h),
    };
    uint64_t mix = 0;
    for (size_t i = 0; i < FM_COUNT(words); i++) { /* the finaliser of splitmix64 */
        mix = (mix ^ words[i]) + 0x9e3779b97f4a7c15u;
        mix = (mix ^ mix >> 30) * 0xbf58476d1ce4e5b9u;
        mix = (mix ^ mix >> 27) * 0x94d049bb133111ebu;
        mix ^= mix >> 31;
    }
    return mix;
}

bool fm_code_compares_tails(const struct fm_layout *layout)
{
    return fm_layout_minor(layout) < 12;
}

bool fm_code_has_tails(const struct fm_code *code, uint8_t tails[2][FM_CODE_TAIL])
{
    return memcmp(tails[0], code->tails[0].bytes, code->tails[0].len) == 0 &&
           memcmp(tails[1], code->tails[1].bytes, code->tails[1].len) == 0;
}

/* What stands in the object itself. */
static int take_head(struct code_reading *r)
{
    const struct fm_layout *layout = r->layout;
    struct fm_code *code = r->code;
    int32_t first_line = (int32_t)int_at(r->head, layout->code_first_line);
    code->first_line = first_line > 0 ? (uint32_t)first_line : 0;
    code->flags = int_at(r->head, layout->code_flags);
    code->identity = fm_code_identity(layout, r->head);
    code->type = word_at(r->head, layout->object_type);
    if (!bytecode_is_inline(layout))
        return 0;
    uint64_t units = word_at(r->head, layout->code_units);
    if (units == 0 || units > MAX_BYTECODE_BYTES / 2)
        return -EINVAL;
    code->bytecode_len = (uint32_t)units * 2;
    code->bytecode = fm_malloc(code->bytecode_len);
    return 0;
}

/* At the end of each read: is it still the same? While its parts were read it may have died, and they be those of
 * another. */
static struct fm_span head_again(struct code_reading *r)
{
    return (struct fm_span){ r->code->at, r->again, r->layout->code_size };
}

/* The end of a text and the NUL behind it, without which the beginning of a longer one would do. Of a text that was
 * cut off there is none. */
static struct fm_code_tail tail_of(const struct fm_piece *text)
{
    uint32_t len = text->len < FM_CODE_TAIL - 1 ? text->len : FM_CODE_TAIL - 1;
    struct fm_code_tail tail = { .at = text->data_at + text->len - len, .len = len };
    memcpy(tail.bytes, text->data + text->len - len, len);
    tail.len += text->len < MAX_NAME_BYTES;
    return tail;
}

/* All has been read: is it of one code object? */
static int compare_again(struct code_reading *r)
{
    bool same = fm_code_identity(r->layout, r->again) == r->code->identity;
    if (fm_code_compares_tails(r->layout)) {
        r->code->tails[0] = tail_of(&r->pieces[NAME]);
        r->code->tails[1] = tail_of(&r->pieces[FILE_NAME]);
    }
    return same && fm_code_has_tails(r->code, r->tails_again) ? 0 : -EAGAIN;
}

/* Second read: the name of the type, the heads of the objects pointed to, the bytecode. */
static int read_parts(struct code_reading *r)
{
    const struct fm_layout *layout = r->layout;
    const uint32_t at[N_PIECES] = {
        [FILE_NAME] = layout->code_filename,
        [NAME] = layout->code_name,
        [QUALNAME] = layout->code_qualname,
        [TABLE] = layout->code_linetable,
        [BYTECODE] = bytecode_is_inline(layout) ? FM_ABSENT : layout->code_bytecode,
    };
    struct fm_span spans[N_PIECES + 3];
    int n = 0;
    if (!r->is_code)
        spans[n++] = (struct fm_span){ r->code->type + layout->type_name, &r->type_name_at,
                                       sizeof r->type_name_at };
    for (int i = 0; i < N_PIECES; i++) {
        r->wanted[i] = at[i] != FM_ABSENT;
        if (r->wanted[i])
            spans[n++] = fm_piece_begin(&r->pieces[i], layout, word_at(r->head, at[i]));
    }
    if (r->code->bytecode)
        spans[n++] = (struct fm_span){ r->code->at + layout->code_bytecode, r->code->bytecode,
                                       r->code->bytecode_len };
    spans[n++] = head_again(r);
    return read_all(r->remote, spans, n);
}

/* The ends of name and file name, once more. Returns how many spans that takes. */
static int add_tails(struct code_reading *r, struct fm_span *spans)
{
    const struct fm_piece *texts[] = { &r->pieces[NAME], &r->pieces[FILE_NAME] };
    int n = 0;
    for (int i = 0; i < 2 && fm_code_compares_tails(r->layout); i++) {
        struct fm_code_tail tail =
            tail_of(texts[i]); /* its bytes may be still to be read, with these */
        spans[n++] = (struct fm_span){ tail.at, r->tails_again[i], tail.len };
    }
    return n;
}

/* Third read, if need be: what did not fit into the second, and whether it is a code object at all. */
static int read_rests(struct code_reading *r)
{
    struct fm_span spans[N_PIECES + 4];
    char name[sizeof type_name] = "";
    int n = 0;
    if (!r->is_code)
        spans[n++] = (struct fm_span){ r->type_name_at, name, sizeof name };
    for (int i = 0; i < N_PIECES; i++) {
        if (!r->wanted[i])
            continue;
        struct fm_span rest;
        int bad = i < TABLE
                      ? fm_piece_text(&r->pieces[i], r->layout, MAX_NAME_BYTES, &rest)
                      : fm_piece_bytes(&r->pieces[i], r->layout,
                                       i == TABLE ? MAX_TABLE_BYTES : MAX_BYTECODE_BYTES, &rest);
        if (bad < 0)
            return bad;
        if (rest.len)
            spans[n++] = rest;
    }
    n += add_tails(r, spans + n);
    if (!n)
        return 0;
    spans[n++] = head_again(r);
    int bad = read_all(r->remote, spans, n);
    if (bad < 0)
        return bad;
    return r->is_code || memcmp(name, type_name, sizeof name) == 0 ? 0 : -EINVAL;
}

static void take_pieces(struct code_reading *r)
{
    struct fm_code *code = r->code;
    code->file = fm_piece_utf8(&r->pieces[FILE_NAME], MAX_NAME_BYTES);
    code->name = fm_piece_utf8(&r->pieces[NAME], MAX_NAME_BYTES);
    code->qualname = r->wanted[QUALNAME] ? fm_piece_utf8(&r->pieces[QUALNAME], MAX_NAME_BYTES)
                                         : fm_strdup(code->name);
    code->table = r->pieces[TABLE].data;
    code->table_len = r->pieces[TABLE].len;
    r->pieces[TABLE].data = NULL;
    if (r->wanted[BYTECODE]) {
        code->bytecode = r->pieces[BYTECODE].data;
        code->bytecode_len = r->pieces[BYTECODE].len;
        r->pieces[BYTECODE].data = NULL;
    }
}

/* Free-threaded 3.14+: where each thread's own copy of the bytecode lies: a count, then pointers.
 * Copies made later are not known; who meets one reads the code object again. */
static void read_copies(struct code_reading *r)
{
    if (r->layout->code_tlbc == FM_ABSENT)
        return;
    fm_addr array = word_at(r->head, r->layout->code_tlbc);
    int64_t n;
    if (!array || fm_remote_read(r->remote, array, &n, sizeof n) < 0 || n <= 0 || n > MAX_COPIES)
        return;
    fm_addr *copies = fm_calloc((size_t)n, sizeof *copies);
    if (fm_remote_read(r->remote, array + sizeof n, copies, (size_t)n * sizeof *copies) < 0) {
        free(copies);
        return;
    }
    r->code->copies = copies;
    r->code->n_copies = (uint32_t)n;
}

int fm_code_read(struct fm_code *code, const struct fm_remote *remote,
                 const struct fm_layout *layout, fm_addr at, fm_addr type)
{
    *code = (struct fm_code){ .at = at };
    fm_autofree uint8_t *head = fm_malloc(2 * (size_t)layout->code_size);
    int r = fm_remote_read(remote, at, head, layout->code_size);
    if (r < 0)
        return r;
    struct code_reading reading = { .remote = remote,
                                    .layout = layout,
                                    .code = code,
                                    .head = head,
                                    .again = head + layout->code_size };
    if ((r = take_head(&reading)) == 0) {
        reading.is_code = type && code->type == type;
        if ((r = read_parts(&reading)) == 0 && (r = read_rests(&reading)) == 0)
            r = compare_again(&reading);
    }
    if (r == 0) {
        take_pieces(&reading);
        read_copies(&reading);
    }
    for (int i = 0; i < N_PIECES; i++)
        fm_piece_release(&reading.pieces[i]);
    if (r < 0)
        fm_code_release(code);
    return r;
}

void fm_code_release(struct fm_code *code)
{
    free(code->name);
    free(code->qualname);
    free(code->file);
    free(code->bytecode);
    free(code->table);
    free(code->copies);
    *code = (struct fm_code){ 0 };
}

bool fm_code_is_shim(const struct fm_code *code, const struct fm_layout *layout)
{
    /* From 3.13 on such code is marked; in 3.12 its table is empty and its file is its name. */
    if (layout->table != FM_TABLE_PEP657)
        return false;
    if (fm_layout_minor(layout) >= 13)
        return (code->flags & CO_NO_MONITORING_EVENTS) != 0;
    return code->table_len == 0 && strcmp(code->name, code->file) == 0;
}

static bool offset_from(const struct fm_code *code, fm_addr start, uint64_t instr,
                        int32_t *ret_offset)
{
    uint64_t distance = instr - start;
    if (distance >= code->bytecode_len || distance % 2)
        return false;
    *ret_offset = (int32_t)distance;
    return true;
}

bool fm_code_offset(const struct fm_code *code, const struct fm_layout *layout, uint64_t instr,
                    int32_t *ret_offset)
{
    if (layout->frames == FM_FRAMES_HEAP) { /* f_lasti: bytes in 3.9, code units in 3.10 */
        int64_t offset = (int64_t)(int32_t)instr * (layout->table == FM_TABLE_LNOTAB ? 1 : 2);
        *ret_offset = offset < 0 ? FM_NOT_BEGUN : (int32_t)offset;
        return (int32_t)instr >= -1 && offset < (int64_t)code->bytecode_len;
    }
    fm_addr start = code->at + layout->code_bytecode;
    if (layout->frames == FM_FRAMES_CFRAME && instr == start - 2) {
        *ret_offset = FM_NOT_BEGUN;
        return true;
    }
    if (offset_from(code, start, instr, ret_offset))
        return true;
    for (uint32_t i = 0; i < code->n_copies; i++)
        if (code->copies[i] && offset_from(code, code->copies[i], instr, ret_offset))
            return true;
    return false;
}

struct fm_position fm_code_position(const struct fm_code *code, const struct fm_layout *layout,
                                    int32_t offset)
{
    struct fm_linetable_cursor table;
    struct fm_linetable_entry entry;
    fm_linetable_init(&table, layout->table, code->table, code->table_len, code->first_line,
                      code->bytecode_len);
    while (offset >= 0 && fm_linetable_next(&table, &entry))
        if ((uint32_t)offset >= entry.start && (uint32_t)offset < entry.end)
            return entry.position;
    return (struct fm_position){ .line = code->first_line, .end_line = code->first_line };
}
