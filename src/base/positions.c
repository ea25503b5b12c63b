/* Tables of source positions; see positions.h. The formats are those of CPython's Objects/
 * lnotab_notes.txt (3.9, 3.10) and locations.md or code_objects.md (3.11+). */
#include "base/positions.h"

void fm_linetable_init(struct fm_linetable_cursor *table, enum fm_table_kind kind,
                       const uint8_t *bytes, uint32_t len, uint32_t first_line, uint32_t code_len)
{
    *table = (struct fm_linetable_cursor){
        .kind = kind,
        .at = bytes,
        .stop = bytes + len,
        .code_len = code_len,
        .line = first_line,
    };
}

static uint32_t as_line(int64_t line)
{
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static uint32_t byte_or_zero(struct fm_linetable_cursor *table)
{
    return table->at < table->stop ? *table->at++ : 0;
}

/* Pairs: so many bytes after the start of the entry before, so many lines on (signed). */
static bool next_lnotab(struct fm_linetable_cursor *table, struct fm_linetable_entry *entry)
{
    if (table->offset >= table->code_len)
        return false;
    entry->start = table->offset;
    while (table->stop - table->at >= 2 && table->at[0] == 0) {
        table->line += (int8_t)table->at[1];
        table->at += 2;
    }
    entry->position =
        (struct fm_position){ .line = as_line(table->line), .end_line = as_line(table->line) };
    if (table->stop - table->at < 2) {
        entry->end = table->offset = table->code_len;
        return true;
    }
    table->offset += table->at[0];
    table->line += (int8_t)table->at[1];
    table->at += 2;
    entry->end = table->offset;
    return true;
}

/* Pairs: the length of this entry in bytes, its line relative to the one before (−128: no line). */
static bool next_pep626(struct fm_linetable_cursor *table, struct fm_linetable_entry *entry)
{
    while (table->stop - table->at >= 2) {
        uint32_t len = table->at[0];
        int8_t delta = (int8_t)table->at[1];
        table->at += 2;
        if (delta != -128)
            table->line += delta;
        if (len == 0)
            continue;
        uint32_t line = delta == -128 ? 0 : as_line(table->line);
        entry->start = table->offset;
        entry->end = table->offset += len;
        entry->position = (struct fm_position){ .line = line, .end_line = line };
        return true;
    }
    return false;
}

/* Six bits a byte, least significant first; bit 6: more follow. */
static uint32_t varint(struct fm_linetable_cursor *table)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift <= 30; shift += 6) {
        uint32_t byte = byte_or_zero(table);
        value |= (uint64_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value > INT32_MAX ? INT32_MAX : (uint32_t)value;
}

static int64_t signed_varint(struct fm_linetable_cursor *table)
{
    uint32_t value = varint(table);
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* The forms of PEP 657, by the four bits that tell them. */
enum { ONE_LINE_0 = 10, ONE_LINE_2 = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15 };

static struct fm_position position_pep657(struct fm_linetable_cursor *table, unsigned form)
{
    struct fm_position p = { 0 };
    if (form == NONE)
        return p;
    uint32_t end_delta = 0;
    if (form == LONG) {
        table->line += signed_varint(table);
        end_delta = varint(table);
        p.column = varint(table); /* one more than the column already; 0: none */
        p.end_column = varint(table);
    } else if (form == NO_COLUMNS) {
        table->line += signed_varint(table);
    } else if (form >= ONE_LINE_0) {
        table->line += form - ONE_LINE_0;
        p.column = byte_or_zero(table) + 1;
        p.end_column = byte_or_zero(table) + 1;
    } else {
        uint32_t byte = byte_or_zero(table);
        p.column = (form << 3 | (byte >> 4 & 7)) + 1;
        p.end_column = p.column + (byte & 15);
    }
    p.line = as_line(table->line);
    p.end_line = as_line(table->line + end_delta);
    return p;
}

/* One byte with bit 7 set (form and length in code units), then bytes without it. */
static bool next_pep657(struct fm_linetable_cursor *table, struct fm_linetable_entry *entry)
{
    if (table->at >= table->stop)
        return false;
    uint32_t first = *table->at++;
    entry->start = table->offset;
    entry->end = table->offset += ((first & 7) + 1) * 2;
    entry->position = position_pep657(table, first >> 3 & 15);
    while (table->at < table->stop && !(*table->at & 0x80))
        table->at++; /* of a form with more bytes than known */
    return true;
}

bool fm_linetable_next(struct fm_linetable_cursor *table, struct fm_linetable_entry *ret_entry)
{
    switch (table->kind) {
    case FM_TABLE_LNOTAB:
        return next_lnotab(table, ret_entry);
    case FM_TABLE_PEP626:
        return next_pep626(table, ret_entry);
    case FM_TABLE_PEP657:
        return next_pep657(table, ret_entry);
    }
    return false;
}
