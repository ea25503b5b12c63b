/*
 * What a thread is doing, from one line of /proc/PID/task/TID/syscall: "running", or the system
 * call it is blocked in with its arguments. No ptrace, no root beyond what reading memory needs.
 *
 * The line costs 0.6 µs through a descriptor that is kept open, parsing it 0.1 µs. What a
 * descriptor is, descriptors.h knows.
 */
#ifndef FM_SAMPLER_SYSCALLS_H
#define FM_SAMPLER_SYSCALLS_H

#include <stdbool.h>

#include "base/buffer.h"
#include "record/model/states.h"
#include "watch/os/remote/remote.h"
#include "watch/sampler/descriptors.h"

/* What the line says, before anything is looked up. */
struct fm_syscall {
    bool running; /* on a processor or ready to be */
    long number;  /* −1: blocked outside a system call (a page fault, or stopped) */
    uint64_t args[6];
    uint64_t stack_pointer, program_counter;
};

/* False if the line makes no sense. */
bool fm_syscall_parse(struct fm_syscall *call, const char *line, size_t len);

/* The state of a thread that is not running. `gil` … `gil + gil_bytes` is where its interpreter's
 * GIL lies. Costs nothing for locks and sleeps, a look at a descriptor (0.1 µs, or 2 µs if it was
 * not looked at lately) for reads and writes, a read of the list (1.5 µs) for poll and select. */
enum fm_state fm_syscall_state(const struct fm_syscall *call, const struct fm_remote *remote,
                               fm_addr gil, uint32_t gil_bytes, struct fm_fd_kinds *fds);

/* Does the call change the map of the program's memory? Whoever reads that memory makes such a call
 * wait, for an instant. */
bool fm_syscall_maps(const struct fm_syscall *call);

/* What the thread waits for, in words, appended: what fm_fd_describe() says, "futex 0x…",
 * "3 descriptors: …", "process 123", the path that is being opened; nothing if there is nothing to
 * say. Looks into /proc: some 10 µs, for a new socket milliseconds. Call it once per new identity,
 * and again a second later if it says false: there was no time to look for a socket. */
bool fm_syscall_describe(const struct fm_syscall *call, const struct fm_remote *remote,
                         struct fm_fd_kinds *fds, struct fm_buffer *out);

/* Two waits for the same thing (system call, descriptor, futex, path) have equal identities; a
 * descriptor that was closed and reused for something else is another. */
uint64_t fm_syscall_identity(const struct fm_syscall *call, const struct fm_remote *remote,
                             struct fm_fd_kinds *fds);

#endif
