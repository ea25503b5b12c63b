/*
 * What a .fathom file holds of a process: one line per column, for the recorder and the loader alike.
 * docs/format.md explains them. The order is that of the format; add at the end only. A column that an
 * older file lacks reads as 0.
 *
 * A kind says how a field of struct fm_process becomes a number: U32, U64 and MODE as it is, I32 in
 * zig-zag, STR by its number in the file, FLAGS a bit per truth (enum fm_process_flags).
 */
#ifndef FM_MODEL_PROCESS_COLUMNS_H
#define FM_MODEL_PROCESS_COLUMNS_H

#include "record/model/profile.h"

/* clang-format off */
#define FM_PROCESS_COLUMN_LIST(X)                                                                  \
    X(U32,   pid)                                                                                  \
    X(U32,   parent_pid)                                                                           \
    X(STR,   exe)                                                                                  \
    X(STR,   command)                                                                              \
    X(STR,   cwd)                                                                                  \
    X(STR,   version)                                                                              \
    X(U64,   start_real_ns)                                                                        \
    X(U64,   start_ns)                                                                             \
    X(U64,   end_ns)                                                                               \
    X(I32,   exit_status)                                                                          \
    X(FLAGS, flags)                                                                                \
    X(U64,   cost_call_ps)                                                                         \
    X(U64,   cost_c_call_ps)                                                                       \
    X(U64,   cost_resume_ps)                                                                       \
    X(U64,   own_ns)                                                                               \
    X(U64,   cost_line_ps)                                  /* since 1.1 */                        \
    X(MODE,  sample_mode)                                   /* since 1.2 */                        \
    X(U64,   sample_interval_ns)                                                                   \
    X(U64,   sample_rounds)                                                                        \
    X(U64,   samples)                                                                              \
    X(U64,   samples_partial)                                                                      \
    X(U64,   samples_lost)                                                                         \
    X(U64,   sampler_cpu_ns)                                                                       \
    X(U64,   slow_permille)                                 /* since 1.3 */                        \
    X(U32,   run)                                           /* since 1.4 */                        \
    X(U64,   memory_own_bytes)                              /* since 1.5 */                        \
    X(U64,   memory_sample_bytes)                           /* since 1.6 */

/* The truths of a process; INVERTED: the bit is set if it is not so. */
#define FM_PROCESS_FLAG_LIST(X)                                                                    \
    X(1,  profiled, false)                                                                         \
    X(2,  forked,   false)                                                                         \
    X(4,  c_calls,  false)                                                                         \
    X(8,  calls,    true)   /* calls only of functions with lines; not set: of all functions */    \
    X(16, lines,    false)                                                                         \
    X(32, sampled,  false)                                                                         \
    X(64, memory,   false)                                                                         \
    X(128, memory_python, false)                                                                   \
    X(256, memory_foreign, false)
/* clang-format on */

enum {
#define X(kind, field) FM_PROCESS_COLUMN_##field,
    FM_PROCESS_COLUMN_LIST(X)
#undef X
        FM_PROCESS_COLUMNS
};

static inline uint64_t fm_process_flags(const struct fm_process *process)
{
    uint64_t flags = 0;
#define X(bit, field, inverted) flags |= process->field != (inverted) ? (bit) : 0;
    FM_PROCESS_FLAG_LIST(X)
#undef X
    return flags;
}

static inline void fm_process_set_flags(struct fm_process *process, uint64_t flags)
{
#define X(bit, field, inverted) process->field = ((flags & (bit)) != 0) != (inverted);
    FM_PROCESS_FLAG_LIST(X)
#undef X
}

#endif
