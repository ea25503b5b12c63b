/*
 * The tables in which code objects keep the source position of each instruction: lnotab (3.9), the
 * one of PEP 626 (3.10) and the one of PEP 657 (3.11+), which has columns too.
 *
 * Offsets are in bytes of bytecode, inline caches included. A damaged table yields some position or
 * none, never a read beyond its end.
 */
#ifndef FM_BASE_POSITIONS_H
#define FM_BASE_POSITIONS_H

#include <stdbool.h>
#include <stdint.h>

enum fm_table_kind { FM_TABLE_LNOTAB, FM_TABLE_PEP626, FM_TABLE_PEP657 };

struct fm_position {
    uint32_t line, end_line;     /* 1-based; 0: no line */
    uint32_t column, end_column; /* 1-based in UTF-8 bytes, the end behind the last; 0: unknown */
};

/* The instructions from `start` up to `end` share a position. */
struct fm_linetable_entry {
    uint32_t start, end;
    struct fm_position position; /* line 0: none */
};

/* Goes through a table in order. */
struct fm_linetable_cursor {
    enum fm_table_kind kind;
    const uint8_t *at, *stop;
    uint32_t code_len; /* where lnotab's last entry ends */
    uint32_t offset;   /* where the next entry starts */
    int64_t line;      /* of the entry before */
};

void fm_linetable_init(struct fm_linetable_cursor *table, enum fm_table_kind kind,
                       const uint8_t *bytes, uint32_t len, uint32_t first_line, uint32_t code_len);

/* The next entry, none of them empty; false at the end. */
bool fm_linetable_next(struct fm_linetable_cursor *table, struct fm_linetable_entry *ret_entry);

#endif
