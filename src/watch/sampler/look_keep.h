/*
 * Keeps the last looks as text, each with all that the climb saw: FATHOM_KEEP_LOOKS=FOLDER. What
 * was wrong once can be looked at, changed and judged again without the program
 * (tests/unit/test_climb.c, tests/looks).
 *
 *     fathom-look 1
 *     python 3.13.0
 *     layout NAME VALUE              for each of the values that the climb uses
 *     thread 0x7f…
 *     word 0xADDRESS 0xVALUE         each word that was read, in the order of addresses
 *     code 0xADDRESS BYTES NAME      each code object, with the length of its bytecode
 *     hidden 0xADDRESS BYTES NAME    … of the interpreter's own
 *     want whole NAME@OFFSET;…       what came of it, oldest frame first: whole, cut, no
 */
#ifndef FM_SAMPLER_LOOK_KEEP_H
#define FM_SAMPLER_LOOK_KEEP_H

#include "watch/sampler/look.h"

/* What the climb uses of a layout. */
/* clang-format off */
#define FM_LOOK_LAYOUT(X)                                                                          \
    X(frames)                                                                                      \
    X(table)                                                                                       \
    X(owner_boundary)                                                                              \
    X(owner_generator)                                                                             \
    X(code_tag_mask)                                                                               \
    X(thread_frame)                                                                                \
    X(cframe_frame)                                                                                \
    X(frame_previous)                                                                              \
    X(frame_code)                                                                                  \
    X(frame_instr)                                                                                 \
    X(frame_owner)                                                                                 \
    X(frame_state)                                                                                 \
    X(frame_size)                                                                                  \
    X(code_bytecode)
/* clang-format on */

/* Does nothing unless asked for. */
void fm_look_keep(struct fm_looker *k, const struct fm_looked *who, enum fm_look_result result);

#endif
