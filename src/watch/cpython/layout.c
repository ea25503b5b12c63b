/* The layouts of CPython; see layout.h. */
#include "watch/cpython/layout.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "watch/cpython/debug_offsets.h"
#include "watch/cpython/layout_tables.h"
#include "watch/cpython/opcodes.h"

#define FIRST_MINOR_WITH_DEBUG_OFFSETS 13

#define MAX_BYTES       (64u << 10) /* of an object of which fields are read */
#define MAX_STATE_BYTES (1u << 20)  /* of the runtime and of an interpreter */

static const struct field {
    const char *name;
    size_t at; /* in struct fm_layout */
} fields[] = {
#define X(field) { #field, offsetof(struct fm_layout, field) },
    FM_LAYOUT_LIST(X)
#undef X
};

/* Where the target itself says what the table says too, the target is right. */
static const struct {
    size_t at;
    const char *name; /* of the debug offset */
} told[] = {
/* clang-format off */
#define TOLD(field, name) { offsetof(struct fm_layout, field), name }
    /* clang-format on */
    TOLD(runtime_interpreters_head, "runtime_state.interpreters_head"),
    TOLD(interp_id, "interpreter_state.id"),
    TOLD(interp_next, "interpreter_state.next"),
    TOLD(interp_threads_head, "interpreter_state.threads_head"),
    TOLD(interp_modules, "interpreter_state.imports_modules"),
    TOLD(interp_gil, "interpreter_state.ceval_gil"),
    TOLD(interp_code_generation, "interpreter_state.code_object_generation"),
    TOLD(thread_prev, "thread_state.prev"),
    TOLD(thread_next, "thread_state.next"),
    TOLD(thread_interp, "thread_state.interp"),
    TOLD(thread_frame, "thread_state.current_frame"),
    TOLD(thread_id, "thread_state.thread_id"),
    TOLD(thread_native_id, "thread_state.native_thread_id"),
    TOLD(thread_chunk, "thread_state.datastack_chunk"),
    TOLD(thread_base_frame, "thread_state.base_frame"),
    TOLD(thread_gil_requested, "thread_state.gil_requested"),
    TOLD(frame_previous, "interpreter_frame.previous"),
    TOLD(frame_code, "interpreter_frame.executable"),
    TOLD(frame_instr, "interpreter_frame.instr_ptr"),
    TOLD(frame_owner, "interpreter_frame.owner"),
    TOLD(frame_localsplus, "interpreter_frame.localsplus"),
    TOLD(frame_stackpointer, "interpreter_frame.stackpointer"),
    TOLD(code_filename, "code_object.filename"),
    TOLD(code_name, "code_object.name"),
    TOLD(code_qualname, "code_object.qualname"),
    TOLD(code_first_line, "code_object.firstlineno"),
    TOLD(code_linetable, "code_object.linetable"),
    TOLD(code_bytecode, "code_object.co_code_adaptive"),
    TOLD(code_tlbc, "code_object.co_tlbc"),
    TOLD(code_argcount, "code_object.argcount"),
    TOLD(code_local_names, "code_object.localsplusnames"),
    TOLD(code_local_kinds, "code_object.localspluskinds"),
    TOLD(object_type, "pyobject.ob_type"),
    TOLD(object_size, "pyobject.size"),
    TOLD(type_name, "type_object.tp_name"),
    TOLD(type_flags, "type_object.tp_flags"),
    TOLD(type_dictoffset, "type_object.tp_dictoffset"),
    TOLD(var_size, "tuple_object.ob_size"),
    TOLD(bytes_data, "bytes_object.ob_sval"),
    TOLD(tuple_items, "tuple_object.ob_item"),
    TOLD(list_items, "list_object.ob_item"),
    TOLD(set_used, "set_object.used"),
    TOLD(set_mask, "set_object.mask"),
    TOLD(set_table, "set_object.table"),
    TOLD(dict_keys, "dict_object.ma_keys"),
    TOLD(dict_values, "dict_object.ma_values"),
    TOLD(float_value, "float_object.ob_fval"),
    TOLD(long_tag, "long_object.lv_tag"),
    TOLD(long_digits, "long_object.ob_digit"),
    TOLD(unicode_state, "unicode_object.state"),
    TOLD(unicode_length, "unicode_object.length"),
    TOLD(unicode_ascii_data, "unicode_object.asciiobject_size"),
    TOLD(unicode_compact_data, "unicode_object.compactunicodeobject_size"),
    TOLD(gen_frame, "gen_object.gi_iframe"),
#undef TOLD
};

/* Fields that are told as a distance from something other than the start of their object. */
static const struct {
    size_t at;
    const char *name, *from;
} told_apart[] = {
    { offsetof(struct fm_layout, gil_locked), "interpreter_state.gil_runtime_state_locked",
      "interpreter_state.gil_runtime_state" },
    { offsetof(struct fm_layout, gil_holder), "interpreter_state.gil_runtime_state_holder",
      "interpreter_state.gil_runtime_state" },
};

static uint32_t *value_at(struct fm_layout *layout, size_t at)
{
    return (uint32_t *)((char *)layout + at);
}

static uint32_t value_of(const struct fm_layout *layout, const struct field *field)
{
    return *(const uint32_t *)((const char *)layout + field->at);
}

/* Bytes of the fields that are no pointers or other words. */
static uint32_t width_of(const struct fm_layout *layout, const struct field *field)
{
    static const struct {
        const char *name;
        uint32_t bytes;
    } narrow[] = {
        { "frame_owner", 1 },          { "frame_state", 1 },      { "gil_locked", 4 },
        { "thread_gil_requested", 4 }, { "code_first_line", 4 },  { "code_flags", 4 },
        { "code_argcount", 4 },        { "frame_localsplus", 0 }, { "code_nlocalsplus", 4 },
    };
    for (size_t i = 0; i < FM_COUNT(narrow); i++)
        if (strcmp(field->name, narrow[i].name) == 0)
            return narrow[i].bytes;
    unsigned minor = fm_layout_minor(layout);
    if (strcmp(field->name, "frame_stackpointer") == 0 && minor >= 10 && minor <= 13)
        return 4;
    if (strcmp(field->name, "frame_instr") == 0 && minor <= 10)
        return 4;
    if (strcmp(field->name, "code_bytecode") == 0 && minor >= 11)
        return 0; /* begins where the head ends */
    return 8;
}

/* The groups of which a whole head is read at once, and how large it may be. */
static const struct head_group {
    const char *prefix;
    size_t size_at;
    uint32_t max_bytes;
} groups[] = {
    { "interp_", offsetof(struct fm_layout, interp_size), MAX_STATE_BYTES },
    { "gil_", offsetof(struct fm_layout, gil_size), MAX_BYTES },
    { "thread_", offsetof(struct fm_layout, thread_size), MAX_BYTES },
    { "frame_", offsetof(struct fm_layout, frame_size), MAX_BYTES },
    { "code_", offsetof(struct fm_layout, code_size), MAX_BYTES },
    { "object_", offsetof(struct fm_layout, object_size), MAX_BYTES },
};

static const struct head_group *group_of(const struct field *field)
{
    for (size_t i = 0; i < FM_COUNT(groups); i++)
        if (strncmp(field->name, groups[i].prefix, strlen(groups[i].prefix)) == 0 &&
            field->at < groups[i].size_at)
            return &groups[i];
    return NULL;
}

/* What to read of each object: up to the last of its fields. */
static void measure_heads(struct fm_layout *layout)
{
    layout->interp_size = layout->thread_size = layout->frame_size = layout->code_size = 0;
    for (size_t i = 0; i < FM_COUNT(fields); i++) {
        const struct head_group *group = group_of(&fields[i]);
        uint32_t value = value_of(layout, &fields[i]);
        if (!group || value == FM_ABSENT || strcmp(group->prefix, "gil_") == 0 ||
            strcmp(group->prefix, "object_") == 0)
            continue;
        uint32_t end = value + width_of(layout, &fields[i]);
        uint32_t *size = value_at(layout, group->size_at);
        *size = end > *size ? end : *size;
    }
}

int fm_layout_check(const struct fm_layout *layout, struct fm_error *err)
{
    for (size_t i = 0; i < FM_COUNT(fields); i++) {
        const struct field *field = &fields[i];
        uint32_t value = value_of(layout, field);
        if (value == FM_ABSENT)
            continue;
        const struct head_group *group = group_of(field);
        uint64_t end = (uint64_t)value + width_of(layout, field);
        uint64_t max = MAX_BYTES;
        if (group)
            max = *value_at((struct fm_layout *)layout, group->size_at);
        else if (strncmp(field->name, "interp_", 7) == 0 ||
                 strncmp(field->name, "runtime_", 8) == 0)
            max = MAX_STATE_BYTES;
        if (end > max || (group && max > group->max_bytes))
            return fm_error_set(err, FM_DAMAGED, "the Python in the process says that %s is %u",
                                field->name, value);
    }
    if (layout->unicode_kind_shift > 24 || layout->object_size > layout->code_size)
        return fm_error_set(err, FM_DAMAGED, "the layout of this Python makes no sense");
    return 0;
}

static int take(struct fm_layout *layout, size_t at, uint64_t value, const char *name,
                struct fm_error *err)
{
    if (value >= MAX_STATE_BYTES)
        return fm_error_set(err, FM_DAMAGED,
                            "the debug offsets of the Python in the process say that %s is %llu",
                            name, (unsigned long long)value);
    *value_at(layout, at) = (uint32_t)value;
    return 0;
}

/* Replace what the table says by what the target says. */
static int apply_offsets(struct fm_layout *layout, const struct fm_debug_offsets *offsets,
                         struct fm_error *err)
{
    uint64_t value, from;
    for (size_t i = 0; i < FM_COUNT(told); i++) {
        if (*value_at(layout, told[i].at) == FM_ABSENT ||
            !fm_debug_offsets_find(offsets, told[i].name, &value))
            continue;
        int r = take(layout, told[i].at, value, told[i].name, err);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < FM_COUNT(told_apart); i++) {
        if (!fm_debug_offsets_find(offsets, told_apart[i].name, &value) ||
            !fm_debug_offsets_find(offsets, told_apart[i].from, &from))
            continue;
        int r = take(layout, told_apart[i].at, value - from, told_apart[i].name, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int check_version(uint32_t version_hex, struct fm_error *err)
{
    unsigned major = version_hex >> 24, minor = version_hex >> 16 & 0xff;
    unsigned micro = version_hex >> 8 & 0xff;
    bool older = major < 3 || (major == 3 && minor < FM_OLDEST_MINOR);
    if (older || major > 3 || minor > FM_NEWEST_MINOR)
        return fm_error_set(err, FM_UNSUPPORTED,
                            "Python %u.%u.%u is %s than this Fathom knows (%s to %s)", major, minor,
                            micro, older ? "older" : "newer", FM_OLDEST_PYTHON, FM_NEWEST_PYTHON);
    return 0;
}

/* The table of a version that check_version() let pass. */
static int find_table(struct fm_layout *layout, uint32_t version_hex, bool free_threaded,
                      struct fm_error *err)
{
    for (size_t i = 0; i < FM_COUNT(layout_tables); i++)
        if (layout_tables[i].version_hex >> 16 == version_hex >> 16 &&
            layout_tables[i].free_threaded == free_threaded) {
            *layout = layout_tables[i];
            layout->version_hex = version_hex;
            return 0;
        }
    return fm_error_set(err, FM_UNSUPPORTED, "this Fathom does not know %sPython 3.%u",
                        free_threaded ? "free-threaded " : "", version_hex >> 16 & 0xff);
}

/* 3.13 and later, or unknown. */
static int find_told(struct fm_layout *layout, const struct fm_remote *remote, fm_addr runtime,
                     uint32_t version_hex, struct fm_error *err)
{
    struct fm_debug_offsets offsets;
    int r = fm_debug_offsets_read(&offsets, remote, runtime);
    if (r == -ENOENT && version_hex == 0)
        return fm_error_set(err, FM_UNSUPPORTED,
                            "the version of the Python in the process cannot be told");
    if (r == -ENOENT)
        return fm_error_set(err, FM_DAMAGED,
                            "the Python in the process does not begin with its debug offsets");
    if (r < 0)
        return fm_error_set_errno(err, FM_CANNOT_READ, -r,
                                  "reading the debug offsets of the Python");
    if ((r = check_version(offsets.version_hex, err)) < 0)
        return r;
    if (!offsets.known || (version_hex && version_hex >> 16 != offsets.version_hex >> 16))
        return fm_error_set(err, FM_DAMAGED,
                            "the Python in the process says it is 3.%u, its file says 3.%u",
                            offsets.version_hex >> 16 & 0xff, version_hex >> 16 & 0xff);
    if ((r = find_table(layout, offsets.version_hex, offsets.free_threaded, err)) < 0)
        return r;
    return apply_offsets(layout, &offsets, err);
}

int fm_layout_find(struct fm_layout *layout, const struct fm_remote *remote, fm_addr runtime,
                   uint32_t version_hex, struct fm_error *err)
{
    int r = version_hex ? check_version(version_hex, err) : 0;
    if (r < 0)
        return r;
    if (version_hex && (version_hex >> 16 & 0xff) < FIRST_MINOR_WITH_DEBUG_OFFSETS)
        r = find_table(layout, version_hex, false, err);
    else
        r = find_told(layout, remote, runtime, version_hex, err);
    if (r < 0)
        return r;
    measure_heads(layout);
    return fm_layout_check(layout, err);
}

bool fm_layout_runs_c(const struct fm_layout *layout, uint8_t opcode)
{
    unsigned row = fm_layout_minor(layout) - FM_OLDEST_MINOR;
    if (row >= FM_COUNT(opcodes_running_c))
        return false;
    return opcodes_running_c[row][opcode >> 6] >> (opcode & 63) & 1;
}
