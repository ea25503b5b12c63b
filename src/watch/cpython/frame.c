/* Variables and value stacks of frames; see frame.h. */
#include "watch/cpython/frame.h"

#include <string.h>

enum { MAX_SLOTS = 4096, HIDDEN_KIND = 0x10 };

/* The tuples with the names of a code's variables, in the order of the slots: one since 3.11;
 * before, co_varnames, and behind it in the code object co_freevars and co_cellvars, which swap. */
static int name_tuples(const struct fm_heap *t, fm_addr code, fm_addr tuples[3])
{
    const struct fm_layout *l = t->layout;
    tuples[0] = fm_remote_pointer(t->remote, code + l->code_local_names);
    if (l->frames != FM_FRAMES_HEAP)
        return 1;
    tuples[1] = fm_remote_pointer(t->remote, code + l->code_local_names + 16);
    tuples[2] = fm_remote_pointer(t->remote, code + l->code_local_names + 8);
    return 3;
}

static bool variable_names(const struct fm_heap *t, fm_addr code, struct fm_addrs *names)
{
    fm_addr tuples[3];
    int n = name_tuples(t, code, tuples);
    for (int i = 0; i < n; i++) {
        int64_t count = fm_sequence_items(t, tuples[i], MAX_SLOTS, names);
        if (count < 0 || count > MAX_SLOTS)
            return false;
    }
    return names->len <= MAX_SLOTS;
}

/* co_stacksize stands behind three or four other ints that begin with co_argcount. */
static uint32_t stack_size(const struct fm_heap *t, fm_addr code)
{
    const struct fm_layout *l = t->layout;
    uint32_t size = 0;
    fm_addr at = code + l->code_argcount + (l->frames == FM_FRAMES_HEAP ? 16 : 12);
    if (fm_remote_read(t->remote, at, &size, sizeof size) < 0 || size > MAX_SLOTS)
        return 0;
    return size;
}

/* How many slots are in use, variables included; −1 if the frame does not say. */
static int64_t used_slots(const struct fm_heap *t, fm_addr frame, size_t n_variables)
{
    const struct fm_layout *l = t->layout;
    fm_addr at = frame + l->frame_stackpointer, locals = frame + l->frame_localsplus;
    unsigned minor = fm_layout_minor(l);
    if (minor == 9 || minor >= 14) {
        fm_addr top = fm_remote_pointer(t->remote, at);
        return top < locals ? -1 : (int64_t)((top - locals) / 8);
    }
    int32_t depth = -1;
    if (fm_remote_read(t->remote, at, &depth, sizeof depth) < 0 || depth < 0)
        return -1;
    return minor == 10 ? depth + (int64_t)n_variables : depth;
}

bool fm_frame_slots(const struct fm_heap *t, const struct fm_stack_frame *frame,
                    struct fm_frame_slots *ret)
{
    struct fm_addrs names = { 0 };
    *ret = (struct fm_frame_slots){ 0 };
    if (t->layout->frame_localsplus == FM_ABSENT || t->layout->code_local_names == FM_ABSENT)
        return false;
    bool ok = variable_names(t, frame->code, &names);
    size_t n = names.len;
    fm_vec_release(&names);
    if (!ok)
        return false;
    ret->n_variables = n;
    size_t most = n + stack_size(t, frame->code);
    int64_t used = used_slots(t, frame->at, n);
    ret->exact = used >= (int64_t)n && (size_t)used <= most;
    size_t count = ret->exact ? (size_t)used : most;
    if (!count)
        return true;
    fm_vec_reserve(&ret->slots, count);
    if (fm_remote_read(t->remote, frame->at + t->layout->frame_localsplus, ret->slots.data,
                       count * 8) < 0) {
        fm_frame_slots_release(ret);
        return false;
    }
    ret->slots.len = count;
    for (size_t i = 0; i < count; i++)
        ret->slots.data[i] = fm_slot_object(t, ret->slots.data[i]);
    return true;
}

void fm_frame_slots_release(struct fm_frame_slots *slots)
{
    fm_vec_release(&slots->slots);
}

static bool is_hidden(const struct fm_heap *t, fm_addr code, size_t index)
{
    const struct fm_layout *l = t->layout;
    uint8_t kind = 0;
    if (l->code_local_kinds == FM_ABSENT)
        return false;
    fm_addr kinds = fm_remote_pointer(t->remote, code + l->code_local_kinds);
    if (!kinds || fm_remote_read(t->remote, kinds + l->bytes_data + index, &kind, 1) < 0)
        return false;
    return kind & HIDDEN_KIND;
}

void fm_frame_variables(const struct fm_heap *t, const struct fm_stack_frame *frame,
                        struct fm_variables *ret)
{
    struct fm_addrs names = { 0 };
    struct fm_frame_slots slots;
    ret->len = 0;
    ret->partial = false;
    if (!fm_frame_slots(t, frame, &slots)) {
        ret->partial = true;
        return;
    }
    if (!variable_names(t, frame->code, &names))
        ret->partial = true;
    for (size_t i = 0; i < slots.n_variables && i < slots.slots.len && i < names.len; i++) {
        struct fm_variable v = { .value = slots.slots.data[i] };
        if (!v.value || is_hidden(t, frame->code, i))
            continue;
        if (fm_object_is(t, v.value, "cell"))
            v.value = fm_remote_pointer(t->remote, v.value + t->layout->object_size);
        if (!v.value)
            continue;
        if (ret->len == FM_FRAME_MAX_VARIABLES ||
            !fm_object_text(t, names.data[i], v.name, sizeof v.name)) {
            ret->partial = true;
            break;
        }
        fm_vec_push(ret, v);
    }
    fm_vec_release(&names);
    fm_frame_slots_release(&slots);
}

fm_addr fm_frame_globals(const struct fm_heap *t, const struct fm_stack_frame *frame)
{
    fm_addr dict = fm_remote_pointer(t->remote, frame->at + t->layout->frame_globals);
    return fm_type_flags(t, fm_object_type(t, dict)) & FM_TYPE_DICT ? dict : 0;
}
