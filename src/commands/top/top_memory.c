/*
 * `fathom top --memory`: what is alive in a process that records its memory, live in the terminal. The
 * process keeps its accounts in a file anyway (capture/live_heap.h); this reads it once per interval.
 * Nothing is done in the process, and no sampler runs.
 *
 * Threads: one.
 */
#include "commands/top/top_memory.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "commands/verb.h"
#include "record/model/live/live_heap.h"
#include "show/top/memory_page.h"
#include "show/top/screen.h"
#include "watch/memory/heap_file.h"
#include "watch/memory/resident.h"
#include "watch/os/procfs.h"

struct memory_screen {
    struct fm_memory_top top;
    struct fm_memory_status status;
    struct fm_heap_file file;
    uint64_t delay_ns, next_ns;
    int signals, process, resident; /* descriptors */
    bool quit;
};

/* The process may have executed another program, or begun a new recording: that one is shown. */
static void follow(struct memory_screen *s)
{
    struct fm_heap_file fresh;
    struct fm_error err = FM_ERROR_INIT;
    if (!fm_heap_file_is_over(&s->file))
        return;
    if (fm_heap_file_open(&fresh, s->status.pid, &err) < 0)
        return;
    fm_heap_file_close(&s->file);
    s->file = fresh;
}

static int take(struct memory_screen *s, struct fm_error *err)
{
    struct fm_live_ending ending = { .exit_status = -1 };
    follow(s);
    struct fm_profile *p = fm_profile_new();
    int rc = fm_heap_file_read(&s->file, err);
    struct fm_heap_files files = { s->file.bytes.data, s->file.bytes.len, s->file.more_bytes.data,
                                   s->file.more_bytes.len };
    if (rc == 0)
        rc = fm_live_heap_load(p, &files, NULL, &ending, err);
    if (rc == 0)
        fm_memory_top_take(&s->top, p, fm_clock_ns());
    fm_profile_free(p);
    if (!s->top.ended)
        s->status.resident = fm_resident_read(s->resident, NULL);
    s->next_ns = fm_clock_ns() + s->delay_ns;
    return rc;
}

static void take_again(struct memory_screen *s)
{
    struct fm_error err = FM_ERROR_INIT;
    if (take(s, &err) < 0)
        s->status.note = "the recording of the process cannot be read any more; q quits";
}

static void read_signals(struct memory_screen *s)
{
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGWINCH)
            fm_screen_resize();
        else
            s->quit = true;
    }
}

static void read_keys(struct memory_screen *s)
{
    uint32_t key;
    while (!s->quit && (key = fm_screen_key()) != FM_KEY_NONE) {
        enum fm_memory_wish wish = fm_memory_top_key(&s->top, key);
        s->quit = wish == FM_MEMORY_WISH_QUIT;
        if (wish == FM_MEMORY_WISH_REFRESH)
            take_again(s);
        else if (wish == FM_MEMORY_WISH_REDRAW)
            fm_screen_redraw();
    }
}

static void end(struct memory_screen *s)
{
    s->top.paused = false;
    s->top.ended = true;
    take_again(s);
    s->status.note = "the process has ended; this is what it had last; q quits";
}

/* Wait for whatever comes first, and see to it. */
static void turn(struct memory_screen *s)
{
    bool waiting = !s->top.paused && !s->top.ended;
    uint64_t now = fm_clock_ns();
    int left = !waiting ? -1 : s->next_ns > now ? (int)((s->next_ns - now) / 1000000) + 1 : 0;
    struct pollfd fds[] = {
        { STDIN_FILENO, POLLIN, 0 },
        { s->signals, POLLIN, 0 },
        { s->top.ended ? -1 : s->process, POLLIN, 0 },
    };
    int ready = poll(fds, FM_COUNT(fds), left);
    if ((ready < 0 && errno != EINTR) ||
        (ready > 0 && fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
        s->quit = true; /* the terminal is gone */
    if (ready > 0 && fds[1].revents)
        read_signals(s);
    if (ready > 0 && fds[2].revents)
        end(s);
    read_keys(s);
    if (!s->quit && !s->top.paused && !s->top.ended && fm_clock_ns() >= s->next_ns)
        take_again(s);
}

static int watch(struct memory_screen *s, struct fm_error *err)
{
    if (fm_heap_file_open(&s->file, s->status.pid, err) < 0 || fm_screen_check(err) < 0)
        return err->status;
    s->process = (int)syscall(SYS_pidfd_open, s->status.pid, 0);
    s->resident = fm_resident_open(s->status.pid);
    s->status.start_ns = fm_clock_ns();
    if (take(s, err) < 0 || fm_screen_open(err) < 0)
        return err->status;
    while (!s->quit) {
        fm_memory_page_draw(&s->top, &s->status);
        turn(s);
    }
    fm_screen_close();
    return 0;
}

int fm_top_memory(pid_t pid, double delay_s, int signals)
{
    struct fm_error err = FM_ERROR_INIT;
    char *command = fm_process_command(pid);
    struct memory_screen s = {
        .status = { .pid = pid, .command = command ? command : "", .resident = -1 },
        .file = { .pid = pid, .fd = -1, .more = -1 },
        .delay_ns = (uint64_t)(delay_s * 1e9),
        .signals = signals,
        .process = -1,
        .resident = -1,
    };
    fm_memory_top_init(&s.top);
    int rc = watch(&s, &err);
    fm_memory_top_release(&s.top);
    fm_heap_file_close(&s.file);
    if (s.process >= 0)
        close(s.process);
    if (s.resident >= 0)
        close(s.resident);
    free(command);
    return rc < 0 ? fm_verb_fail("top", &err) : 0;
}
