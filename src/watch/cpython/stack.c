/* Threads and frames of a target; see stack.h. */
#include "watch/cpython/stack.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"

enum { TRIES = 20, MAX_FRAME_BYTES = 512, MAX_INTERPRETERS = 4096, MAX_BATCH = 512 };

static uint64_t word_in(const unsigned char *bytes, uint32_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof word);
    return word;
}

/* ---- threads ---- */

static bool seen(struct fm_map *map, fm_addr at)
{
    bool is_new;
    fm_map_at(map, at, 0, &is_new);
    return !is_new;
}

/* The threads of one interpreter. */
static void interpreter_threads(const struct fm_runtime *runtime, const struct fm_remote *remote,
                                fm_addr interp, struct fm_map *known,
                                struct fm_stack_threads *threads)
{
    const struct fm_layout *l = &runtime->layout;
    uint64_t id = 0;
    fm_addr at = 0;
    if (fm_remote_read(remote, interp + l->interp_id, &id, 8) < 0 ||
        fm_remote_read(remote, interp + l->interp_threads_head, &at, 8) < 0) {
        threads->partial = true;
        return;
    }
    while (at) {
        struct fm_stack_thread t = { .at = at, .interp = interp, .interp_id = (int64_t)id };
        fm_addr next = 0, owner = 0;
        if (threads->len >= FM_STACK_MAX_THREADS || at & 7 || seen(known, at) ||
            fm_remote_read(remote, at + l->thread_next, &next, 8) < 0 ||
            fm_remote_read(remote, at + l->thread_interp, &owner, 8) < 0 || owner != interp ||
            fm_remote_read(remote, at + l->thread_id, &t.ident, 8) < 0) {
            threads->partial = true;
            return;
        }
        if (l->thread_native_id != FM_ABSENT)
            t.native_id = fm_remote_pointer(remote, at + l->thread_native_id);
        fm_vec_push(threads, t);
        at = next;
    }
}

int fm_stack_threads(const struct fm_runtime *runtime, const struct fm_remote *remote,
                     struct fm_stack_threads *threads)
{
    const struct fm_layout *l = &runtime->layout;
    struct fm_map known = { 0 };
    fm_addr interp = 0;
    threads->len = 0;
    threads->partial = false;
    int status = fm_remote_read(remote, runtime->at + l->runtime_interpreters_head, &interp, 8);
    for (int i = 0; status == 0 && interp; i++) {
        fm_addr next = 0;
        if (i == MAX_INTERPRETERS || interp & 7 || seen(&known, interp) ||
            fm_remote_read(remote, interp + l->interp_next, &next, 8) < 0) {
            threads->partial = true;
            break;
        }
        interpreter_threads(runtime, remote, interp, &known, threads);
        interp = next;
    }
    fm_map_release(&known);
    return status;
}

/* ---- frames ---- */

static int newest_frame(const struct fm_layout *l, const struct fm_remote *remote, fm_addr thread,
                        fm_addr *ret)
{
    int status = fm_remote_read(remote, thread + l->thread_frame, ret, 8);
    if (status == 0 && l->frames == FM_FRAMES_CFRAME)
        status = *ret ? fm_remote_read(remote, *ret + l->cframe_frame, ret, 8) : 0;
    return status;
}

static void frame_parse(const struct fm_layout *l, fm_addr at, const unsigned char *bytes,
                        struct fm_stack_frame *frame, fm_addr *ret_previous)
{
    frame->at = at;
    frame->code = word_in(bytes, l->frame_code) & ~(uint64_t)l->code_tag_mask;
    frame->owner = l->frame_owner == FM_ABSENT ? 0 : bytes[l->frame_owner];
    if (l->frames == FM_FRAMES_HEAP) {
        int32_t last;
        memcpy(&last, bytes + l->frame_instr, sizeof last);
        frame->instr = (uint64_t)(int64_t)last;
    } else {
        frame->instr = word_in(bytes, l->frame_instr);
    }
    *ret_previous = word_in(bytes, l->frame_previous);
}

static bool is_python(const struct fm_layout *l, const struct fm_stack_frame *frame)
{
    return frame->code && !(frame->code & 7) &&
           (l->frame_owner == FM_ABSENT || frame->owner < l->owner_boundary);
}

/* The last piece of memory that was read. Since 3.11 the frames of a thread lie side by side, the
 * older ones below: so a walk takes a few reads instead of one per frame, and sees nearly one
 * instant. */
struct memory_piece {
    fm_addr from;
    size_t len;
    unsigned char bytes[16384];
};

static const unsigned char *frame_bytes(const struct fm_layout *l, const struct fm_remote *remote,
                                        fm_addr at, struct memory_piece *piece)
{
    if (piece->len && at >= piece->from && at - piece->from <= piece->len - l->frame_size)
        return piece->bytes + (at - piece->from);
    size_t below = l->frames == FM_FRAMES_HEAP ? 0 : sizeof piece->bytes - l->frame_size;
    for (;; below = below > 4096 ? below / 4 : 0) {
        piece->from = at - below;
        piece->len = below + l->frame_size;
        if (fm_remote_read(remote, piece->from, piece->bytes, piece->len) == 0)
            return piece->bytes + below;
        piece->len = 0;
        if (!below)
            return NULL;
    }
}

/* Walk from `at` to the end. All frames, also those of C, go to `stack` with their `previous`. */
static void walk(const struct fm_layout *l, const struct fm_remote *remote, fm_addr at,
                 struct fm_stack *stack)
{
    struct memory_piece piece = { 0 };
    struct fm_map known = { 0 };
    stack->len = 0;
    stack->partial = false;
    while (at) {
        struct fm_stack_frame frame;
        const unsigned char *bytes = NULL;
        if (stack->len < FM_STACK_MAX_FRAMES && !(at & 7) && !seen(&known, at))
            bytes = frame_bytes(l, remote, at, &piece);
        if (!bytes) {
            stack->partial = true;
            break;
        }
        frame_parse(l, at, bytes, &frame, &at);
        fm_vec_push(stack, frame);
    }
    fm_map_release(&known);
}

bool fm_stack_frame_executes(const struct fm_layout *l, const void *frame)
{
    enum { F_EXECUTING_3_9 = 1, FRAME_EXECUTING_3_10 = 0, FRAME_UNWINDING_3_10 = 2 };
    int8_t state = (int8_t)((const uint8_t *)frame)[l->frame_state];
    if (fm_layout_minor(l) == 9)
        return state == F_EXECUTING_3_9;
    return state == FRAME_EXECUTING_3_10 || state == FRAME_UNWINDING_3_10;
}

/* Does the walk end where a stack ends? Up to 3.10 the oldest frame executes; since 3.12 it is one of C;
 * 3.15 names it in the thread state. A walk that lost its way in a frame that was just being made or left
 * does not come there. */
static bool ends_well(const struct fm_layout *l, const struct fm_remote *remote, fm_addr thread,
                      const struct fm_stack *stack)
{
    if (!stack->len || fm_layout_minor(l) == 11)
        return true;
    const struct fm_stack_frame *oldest = &stack->data[stack->len - 1];
    if (l->frames == FM_FRAMES_HEAP) {
        uint8_t bytes[MAX_FRAME_BYTES];
        return fm_remote_read(remote, oldest->at, bytes, l->frame_size) == 0 &&
               fm_stack_frame_executes(l, bytes);
    }
    if (l->thread_base_frame != FM_ABSENT)
        return oldest->at == fm_remote_pointer(remote, thread + l->thread_base_frame);
    return oldest->owner >= l->owner_boundary;
}

/* Read the frames of `stack` once more, many in one step: still the same chain? Where the newest
 * stands may have changed. */
static bool agrees(const struct fm_layout *l, const struct fm_remote *remote,
                   const struct fm_stack *stack)
{
    unsigned char *bytes = fm_malloc((size_t)MAX_BATCH * l->frame_size);
    struct fm_span spans[MAX_BATCH];
    bool same = true;
    for (size_t from = 0; same && from < stack->len; from += MAX_BATCH) {
        size_t n = stack->len - from < MAX_BATCH ? stack->len - from : MAX_BATCH;
        for (size_t i = 0; i < n; i++)
            spans[i] = (struct fm_span){ stack->data[from + i].at, bytes + i * l->frame_size,
                                         l->frame_size };
        same = fm_remote_read_spans(remote, spans, (int)n) == (int)n;
        for (size_t i = 0; same && i < n; i++) {
            const struct fm_stack_frame *old = &stack->data[from + i];
            struct fm_stack_frame now;
            fm_addr previous;
            frame_parse(l, old->at, bytes + i * l->frame_size, &now, &previous);
            fm_addr expected = from + i + 1 < stack->len ? old[1].at : 0;
            same = now.code == old->code && now.owner == old->owner &&
                   (stack->partial || previous == expected) &&
                   (from + i == 0 || now.instr == old->instr);
        }
    }
    free(bytes);
    return same;
}

int fm_stack_read(const struct fm_runtime *runtime, const struct fm_remote *remote, fm_addr thread,
                  struct fm_stack *stack)
{
    const struct fm_layout *l = &runtime->layout;
    stack->len = 0;
    stack->steady = false;
    stack->partial = false;
    if (l->frame_size > MAX_FRAME_BYTES)
        return -EINVAL;
    for (int i = 0; i < TRIES && (!stack->steady || stack->partial); i++) {
        fm_addr newest, again;
        int status = newest_frame(l, remote, thread, &newest);
        if (status < 0)
            return status;
        walk(l, remote, newest, stack);
        stack->partial = stack->partial || !ends_well(l, remote, thread, stack);
        stack->steady = agrees(l, remote, stack) && newest_frame(l, remote, thread, &again) == 0 &&
                        again == newest;
    }
    size_t kept = 0;
    for (size_t i = 0; i < stack->len; i++) {
        if (is_python(l, &stack->data[i]))
            stack->data[kept++] = stack->data[i];
    }
    stack->len = kept;
    return 0;
}

/* ---- the GIL ---- */

fm_addr fm_stack_gil(const struct fm_runtime *runtime, const struct fm_remote *remote,
                     fm_addr interp)
{
    const struct fm_layout *l = &runtime->layout;
    if (l->free_threaded)
        return 0;
    if (l->interp_gil != FM_ABSENT)
        return fm_remote_pointer(remote, interp + l->interp_gil);
    return l->runtime_gil != FM_ABSENT ? runtime->at + l->runtime_gil : 0;
}

fm_addr fm_stack_gil_holder(const struct fm_runtime *runtime, const struct fm_remote *remote,
                            fm_addr interp)
{
    const struct fm_layout *l = &runtime->layout;
    fm_addr gil = fm_stack_gil(runtime, remote, interp);
    int32_t locked = 0;
    if (!gil || l->gil_locked == FM_ABSENT || l->gil_holder == FM_ABSENT ||
        fm_remote_read(remote, gil + l->gil_locked, &locked, sizeof locked) < 0 || locked != 1)
        return 0;
    return fm_remote_pointer(remote, gil + l->gil_holder);
}
