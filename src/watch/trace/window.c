/* Only the last seconds of a trace; see window.h. */
#include "watch/trace/window.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/capture/format.h"

void fm_trace_window_release(struct fm_trace_window *window)
{
    fm_vec_release(&window->blocks);
}

/* Clocks and tasks are small, and what comes later needs them. */
void fm_trace_window_add(struct fm_trace_window *window, uint16_t type, uint64_t at, uint64_t end)
{
    if (!window->ns || (type != FM_BLOCK_TRACE_EVENTS && type != FM_BLOCK_TRACE_LEVELS &&
                        type != FM_BLOCK_TRACE_MARKS))
        return;
    fm_vec_push(&window->blocks, ((struct fm_window_block){ at, end, fm_clock_ns() }));
}

bool fm_trace_window_is_due(struct fm_trace_window *window)
{
    uint64_t now_ns = window->ns ? fm_clock_ns() : 0;
    if (!window->ns || now_ns < window->due_ns)
        return false;
    window->due_ns = now_ns + window->ns / 4;
    return true;
}

/* A file system without holes keeps the bytes, but no reader takes them for a block any more. */
void fm_trace_window_give_back(const struct fm_window_block *block, int fd)
{
    static const char zeros[FM_BLOCK_HEADER_BYTES];
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)block->at,
                  (off_t)(block->end - block->at)) != 0 &&
        pwrite(fd, zeros, sizeof zeros, (off_t)block->at) < 0)
        return; /* then it stays */
}

void fm_trace_window_forget(struct fm_trace_window *window, int fd, uint64_t now_ns)
{
    while (window->first < window->blocks.len &&
           now_ns > window->blocks.data[window->first].ns + window->ns)
        fm_trace_window_give_back(&window->blocks.data[window->first++], fd);
    if (window->first < window->blocks.len / 2)
        return;
    size_t left = window->blocks.len - window->first;
    if (left)
        memmove(window->blocks.data, window->blocks.data + window->first,
                left * sizeof *window->blocks.data);
    window->blocks.len = left;
    window->first = 0;
}
