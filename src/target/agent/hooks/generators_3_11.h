/*
 * Generators and coroutines as frames of CPython 3.11 show them.
 *
 * Going on without an event. throw() into a generator that delegates (yield from, await) goes to the innermost one
 * first, past those around it. When that ends and something is returned, the one around it goes on behind its
 * SEND: no RESUME is executed, and RESUME is what tells the profile function. So its next event comes from a
 * generator that nobody heard of: a call that it makes, or its end. (What ends by an exception is thrown into the next
 * one, which tells. From 3.12 on everything is thrown, and the evaluation hook hears of all of it.)
 *
 * While the inner one runs, the frames around it are linked as its callers though they do not run: they stand at
 * the YIELD_VALUE at which they wait.
 */
#ifndef FM_AGENT_GENERATORS_3_11_H
#define FM_AGENT_GENERATORS_3_11_H

#define Py_BUILD_CORE_MODULE 1
#include <internal/pycore_frame.h>
#include <opcode.h>

#include "target/agent/collector.h"

static inline bool fm_is_generator(const PyCodeObject *code)
{
    return code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
}

/* A frame begins that ran before, by send or by throw. At its very start the current instruction is RESUME with
 * argument 0, or what creates the generator. */
static inline bool fm_generator_is_resumed(const _PyInterpreterFrame *frame)
{
    if (frame->owner != FRAME_OWNED_BY_GENERATOR)
        return false;
    int opcode = _Py_OPCODE(*frame->prev_instr);
    if (opcode == RESUME || opcode == RESUME_QUICK)
        return _Py_OPARG(*frame->prev_instr) != 0;
    return opcode != RETURN_GENERATOR;
}

/* In the event of its begin: does it go on by send, and not because something is thrown in? */
static inline bool fm_generator_is_sent(const _PyInterpreterFrame *frame)
{
    int opcode = _Py_OPCODE(*frame->prev_instr);
    return opcode == RESUME || opcode == RESUME_QUICK;
}

/* Does it stand where it gave up control, and not behind what it delegated to? */
static inline bool fm_generator_waits(const _PyInterpreterFrame *frame)
{
    return _Py_OPCODE(*frame->prev_instr) == YIELD_VALUE;
}

static inline bool fm_generator_is_suspended(_PyInterpreterFrame *frame)
{
    return frame->owner == FRAME_OWNED_BY_GENERATOR &&
           _PyFrame_GetGenerator(frame)->gi_frame_state == FRAME_SUSPENDED;
}

/* Is it a generator that runs, and not one that a throw() passes by? */
static inline bool fm_generator_runs(const _PyInterpreterFrame *frame)
{
    return frame && frame->owner == FRAME_OWNED_BY_GENERATOR && !fm_generator_waits(frame);
}

static inline bool fm_is_c_call(const struct fm_live_frame *open)
{
    const struct fm_func *f = (const struct fm_func *)(uintptr_t)open->func;
    return f && f->flags & FM_LIVE_FUNCTION_C;
}

#endif
