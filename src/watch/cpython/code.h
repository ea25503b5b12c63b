/*
 * Code objects of the target: read once, then kept. Names, file, first line, the line table and the
 * bytecode are copied out; positions are decoded from the copy when somebody asks.
 *
 * An address says nothing about a code object for long: it may die and another take its place. So
 * each copy carries an identity, a mix of the words of the object that differ between objects, to be
 * compared with the target from time to time.
 */
#ifndef FM_CPYTHON_CODE_H
#define FM_CPYTHON_CODE_H

#include "base/positions.h"
#include "watch/cpython/layout.h"

/* Before 3.12 code objects have no number of their own, and one that takes another's place may have the same
 * pointers: then what they point to tells them apart, the end of the texts best. */
#define FM_CODE_TAIL 16
struct fm_code_tail {
    fm_addr at;
    uint32_t len;
    uint8_t bytes[FM_CODE_TAIL];
};

struct fm_code {
    fm_addr at;
    uint64_t identity;
    char *name, *qualname, *file; /* UTF-8, owned; qualname equals name before 3.11 */
    uint32_t first_line;
    uint32_t flags; /* co_flags */
    uint32_t bytecode_len;
    uint8_t *bytecode; /* owned */
    uint32_t table_len;
    uint8_t *table; /* owned */
    uint32_t n_copies;
    fm_addr *copies; /* owned; free-threaded: where threads keep bytecode of their own, 0: none */
    fm_addr type;    /* of all code objects */
    struct fm_code_tail tails[2]; /* of its name and its file name */
};

/* Offsets into the bytecode are in bytes everywhere; −1 or FM_NOT_BEGUN: before the first. */
#define FM_NOT_BEGUN (-1)

/* Copy the code object at `at`. `type` is that of one that was read before, or 0: then it takes one more read to
 * see what it is. 0 or a negative error number (−EINVAL: it is not a code object), with
 * nothing to release. Names are cut at 4 KB; bytecode or a table of more than 4 MB is refused. */
int fm_code_read(struct fm_code *code, const struct fm_remote *remote,
                 const struct fm_layout *layout, fm_addr at, fm_addr type);
/* Are tails[] needed to tell code objects apart? Else they are left empty. */
bool fm_code_compares_tails(const struct fm_layout *layout);
/* Is this what its name and its file name end with? */
bool fm_code_has_tails(const struct fm_code *code, uint8_t tails[2][FM_CODE_TAIL]);
void fm_code_release(struct fm_code *code);

/* The identity of the code object whose first layout->code_size bytes are `head`. */
uint64_t fm_code_identity(const struct fm_layout *layout, const void *head);

/* 3.12+ puts a frame of its own between a class that is called and its __init__. Its code has no
 * source; tracebacks leave it out, and so should a walker. */
bool fm_code_is_shim(const struct fm_code *code, const struct fm_layout *layout);

/* Is `instr` (the value of frame_instr: an address, or f_lasti) inside this code? Its offset. */
bool fm_code_offset(const struct fm_code *code, const struct fm_layout *layout, uint64_t instr,
                    int32_t *ret_offset);

/* Where the source of the instruction at `offset` is, as co_positions() tells. Not begun, or beyond
 * the table: the first line. */
struct fm_position fm_code_position(const struct fm_code *code, const struct fm_layout *layout,
                                    int32_t offset);

#endif
