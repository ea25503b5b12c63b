/*
 * Where CPython keeps what a profiler reads, per version: one list of fields as data.
 *
 * The list below generates the struct, the check and the dump. Versions 3.13 and later fill it from
 * the debug offsets at the start of the target's own _PyRuntime; 3.9 to 3.12 from tables generated
 * from real headers (tools/generate-layouts → layout_tables.h). fm_layout_check() looks at every
 * value once, so the hot path may rely on each offset being inside its object and each object small.
 *
 * A field that a version does not have is FM_ABSENT.
 */
#ifndef FM_CPYTHON_LAYOUT_H
#define FM_CPYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/positions.h"
#include "watch/cpython/versions.h"
#include "watch/os/remote/remote.h"

#define FM_ABSENT UINT32_MAX

/* Offsets in bytes from the start of the object that the first word names; *_size: of the object. */
/* clang-format off */
#define FM_LAYOUT_LIST(X)                                                                          \
    X(runtime_interpreters_head)                                                                   \
    X(runtime_gil)              /* 3.9–3.11: the GIL lies in the runtime */                        \
    X(interp_id)                                                                                   \
    X(interp_next)                                                                                 \
    X(interp_threads_head)                                                                         \
    X(interp_modules)                                                                              \
    X(interp_gil)               /* 3.12+: pointer to the GIL this interpreter uses */              \
    X(interp_code_generation)   /* 3.14+: grows whenever a code object dies */                     \
    X(interp_size)              /* enough to read all fields above */                              \
    X(gil_locked)               /* int */                                                          \
    X(gil_holder)               /* thread state of the last holder */                              \
    X(gil_switches)             /* how often another thread took it than the one before */        \
    X(gil_size)                 /* a futex address inside means: waits for the GIL */              \
    X(thread_prev)                                                                                 \
    X(thread_next)                                                                                 \
    X(thread_interp)                                                                               \
    X(thread_frame)             /* frame; 3.11, 3.12: pointer to the cframe */                     \
    X(thread_id)                /* pthread_t */                                                    \
    X(thread_native_id)         /* 3.11+ */                                                        \
    X(thread_chunk)             /* 3.11+: newest datastack chunk */                                \
    X(thread_base_frame)        /* 3.15+: the frame at which every stack ends */                   \
    X(thread_gil_requested)     /* 3.15+: int */                                                   \
    X(thread_size)              /* enough to read all fields above */                              \
    X(cframe_frame)             /* 3.11, 3.12 */                                                   \
    X(frame_previous)                                                                              \
    X(frame_code)               /* tagged pointer since 3.14; may be None */                       \
    X(frame_instr)              /* pointer; 3.9, 3.10: int f_lasti */                              \
    X(frame_globals)                                                                               \
    X(frame_owner)              /* char, 3.11+ */                                                  \
    X(frame_localsplus)                                                                            \
    X(frame_stackpointer)       /* 3.14+ pointer; 3.11–3.13: int stacktop; 3.9: f_stacktop */      \
    X(frame_state)              /* 3.9: char f_executing; 3.10: char f_state */                    \
    X(frame_size)               /* enough to read all fields above but locals */                   \
    X(code_filename)                                                                               \
    X(code_name)                                                                                   \
    X(code_qualname)            /* 3.11+ */                                                        \
    X(code_first_line)                                                                             \
    X(code_flags)                                                                                  \
    X(code_linetable)           /* 3.9: lnotab */                                                  \
    X(code_bytecode)            /* 3.11+: inline; 3.9, 3.10: pointer to a bytes object */          \
    X(code_tlbc)                /* free-threaded 3.14+ */                                          \
    X(code_units)               /* 3.11+: ob_size, number of code units */                         \
    X(code_argcount)                                                                               \
    X(code_local_names)         /* 3.11+: tuple localsplusnames; before: co_varnames */            \
    X(code_local_kinds)                                                                            \
    X(code_nlocalsplus)         /* 3.11+: int */                                                   \
    X(code_size)                /* enough to read all fields above but the bytecode */             \
    X(object_type)                                                                                 \
    X(object_size)              /* sizeof(PyObject) */                                             \
    X(type_name)                                                                                   \
    X(type_flags)                                                                                  \
    X(type_dictoffset)                                                                             \
    X(type_cached_keys)         /* of a heap type, counted from type_flags: heads differ */        \
    X(var_size)                 /* ob_size of bytes, tuple, list */                                \
    X(bytes_data)                                                                                  \
    X(tuple_items)                                                                                 \
    X(list_items)                                                                                  \
    X(set_used)                                                                                    \
    X(set_mask)                                                                                    \
    X(set_table)                                                                                   \
    X(dict_used)                                                                                   \
    X(dict_keys)                                                                                   \
    X(dict_values)                                                                                 \
    X(keys_log2_size)           /* 3.11+: char; before: dk_size, a Py_ssize_t */                   \
    X(keys_log2_index)          /* 3.11+: char, log2 of the bytes of the index table */            \
    X(keys_kind)                /* 3.11+: char; 0: general, 1: str keys, 2: split */               \
    X(keys_entries)             /* number of entries in use, deleted ones included */              \
    X(keys_index)               /* where the index table begins */                                 \
    X(values_first)             /* where the values of a split table begin */                      \
    X(float_value)                                                                                 \
    X(long_tag)                 /* 3.12+: lv_tag; before: ob_size */                               \
    X(long_digits)                                                                                 \
    X(unicode_state)                                                                               \
    X(unicode_kind_shift)       /* a bit number in it: kind (3 bits), compact, ascii follow */     \
    X(unicode_length)                                                                              \
    X(unicode_ascii_data)       /* where the characters of a compact ASCII string begin */         \
    X(unicode_compact_data)     /* … of another compact string; the pointer to those of others */   \
    X(gen_frame)                /* 3.11+: gi_iframe, inline; before: pointer gi_frame */
/* clang-format on */

enum fm_frames_kind {
    FM_FRAMES_HEAP,   /* 3.9, 3.10: frame objects linked by f_back */
    FM_FRAMES_CFRAME, /* 3.11, 3.12: the newest is found through the cframe */
    FM_FRAMES_THREAD, /* 3.13+: directly in the thread state */
};

struct fm_layout {
    uint32_t version_hex; /* as PY_VERSION_HEX; its last byte may be unknown (0) */
    bool free_threaded;
    enum fm_frames_kind frames;
    enum fm_table_kind table;
    uint8_t owner_boundary; /* frames whose owner is this or more are not Python's */
    uint8_t owner_generator;
    uint8_t code_tag_mask; /* low bits of frame_code that are a tag */
#define X(field) uint32_t field;
    FM_LAYOUT_LIST(X)
#undef X
};

/* The layout of the Python whose _PyRuntime lies at `runtime`. `version_hex` is what its file says
 * (0 if unknown, which only 3.13+ with its debug offsets survives). Errors: FM_UNSUPPORTED with a
 * sentence that names the version. */
int fm_layout_find(struct fm_layout *layout, const struct fm_remote *remote, fm_addr runtime,
                   uint32_t version_hex, struct fm_error *err);

/* Every offset inside its object, every object of a sane size. */
int fm_layout_check(const struct fm_layout *layout, struct fm_error *err);

/* Whether an instruction of (adaptive) bytecode runs C code that may take long: a call, an import, an
 * operator without a specialised form. */
bool fm_layout_runs_c(const struct fm_layout *layout, uint8_t opcode);

static inline unsigned fm_layout_minor(const struct fm_layout *layout)
{
    return layout->version_hex >> 16 & 0xff;
}

#endif
