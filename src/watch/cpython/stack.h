/*
 * The threads of a target and the frames of each: a simple, careful walk for looking once, of a
 * running process or of a core file. (The sampler has a faster one of its own.)
 *
 * A thread that runs changes its stack while it is read. So a stack is walked and then read once
 * more in one step; only if both agree is it called steady. What never agrees is kept, and marked.
 *
 * Every list is bounded and checked for cycles.
 */
#ifndef FM_CPYTHON_STACK_H
#define FM_CPYTHON_STACK_H

#include "base/vec.h"
#include "watch/cpython/object.h"
#include "watch/cpython/runtime.h"

struct fm_stack_thread {
    fm_addr at; /* of the thread state */
    fm_addr interp;
    int64_t interp_id;
    uint64_t ident;     /* pthread_t: what threading.get_ident() says */
    uint64_t native_id; /* of the kernel, as Python noted it (thread_ids.h); 0 if it did not */
};

struct fm_stack_threads {
    struct fm_stack_thread *data;
    size_t len, cap;
    bool partial; /* a list could not be followed to its end */
};

struct fm_stack_frame {
    fm_addr at;
    fm_addr code;
    uint64_t instr; /* as frame_instr; 3.9, 3.10: f_lasti, sign-extended */
    uint8_t owner;
};

struct fm_stack {
    struct fm_stack_frame *data; /* newest first; frames that are not Python's are left out */
    size_t len, cap;
    bool steady;  /* two readings agreed */
    bool partial; /* it goes on where nothing could be read, or for ever */
};

#define FM_STACK_MAX_THREADS 65536
#define FM_STACK_MAX_FRAMES  100000

/* All threads of all interpreters. 0, or a negative error number if not even the first interpreter
 * can be read. The main thread of an interpreter is its last. */
int fm_stack_threads(const struct fm_runtime *runtime, const struct fm_remote *remote,
                     struct fm_stack_threads *threads);

/* The frames of one thread; tries a few times to read a steady stack. 0, or a negative error
 * number if the thread state is gone. */
int fm_stack_read(const struct fm_runtime *runtime, const struct fm_remote *remote, fm_addr thread,
                  struct fm_stack *stack);

static inline void fm_stack_release(struct fm_stack *stack)
{
    fm_vec_release(stack);
}

/* Of the bytes of a frame of 3.9 or 3.10: is it being executed? One that has ended may have been freed, and
 * its link to the caller cut. */
bool fm_stack_frame_executes(const struct fm_layout *layout, const void *frame);

/* Who holds the GIL of the interpreter at `interp`: a thread state, or 0. Where that GIL lies: for
 * recognising who waits for it; 0 without one. */
fm_addr fm_stack_gil_holder(const struct fm_runtime *runtime, const struct fm_remote *remote,
                            fm_addr interp);
fm_addr fm_stack_gil(const struct fm_runtime *runtime, const struct fm_remote *remote,
                     fm_addr interp);

#endif
