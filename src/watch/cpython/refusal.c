/*
 * Why a process may not be read, as one sentence with the way out.
 *
 * The kernel gives one error number for a dozen reasons. They are told apart by looking at the
 * process, at ourselves and at the settings, the surest first: gone, a zombie, a kernel thread; a
 * filter that refuses even our own memory; Yama's ban; another user; a process that hides itself;
 * Yama's restriction; a container without the capability.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "watch/cpython/runtime.h"
#include "watch/os/permits.h"
#include "watch/os/procfs.h"

#define SYSCTL "sudo sysctl kernel.yama.ptrace_scope=0"

/* /proc does not show the process. */
static void explain_unseen(pid_t pid, const struct fm_permits *permits, struct fm_error *err)
{
    if (!permits->proc) {
        fm_error_set(err, FM_FORBIDDEN,
                     "/proc is not mounted, and without it no process can be "
                     "read; allow it with: mount -t proc proc /proc");
        return;
    }
    if (pid > 0 && (kill(pid, 0) == 0 || errno == EPERM)) {
        fm_error_set(err, FM_FORBIDDEN,
                     "process %d exists, but /proc is mounted with hidepid=%d "
                     "and hides it; run Fathom as its user or as root (sudo), or: "
                     "sudo mount -o remount,hidepid=0 /proc",
                     (int)pid, permits->hidepid);
        return;
    }
    fm_error_set(err, FM_NOT_FOUND, "there is no process %d", (int)pid);
}

static void explain_filter(pid_t pid, int errnum, const struct fm_permits *permits,
                           struct fm_error *err)
{
    const char *way =
        permits->container[0]
            ? "start the container with --cap-add=SYS_PTRACE or --security-opt seccomp=unconfined"
            : "run Fathom outside of this sandbox";
    fm_error_set(err, FM_FORBIDDEN,
                 "process %d cannot be read: the system call process_vm_readv "
                 "is refused here even for our own memory (%s), by a seccomp filter%s; %s",
                 (int)pid, strerror(errnum),
                 errnum == ENOSYS ? " or a kernel built without it" : "", way);
}

static void explain_other_user(const struct fm_proc *target, const struct fm_permits *permits,
                               struct fm_error *err)
{
    char owner[64];
    snprintf(owner, sizeof owner, "%s", fm_permits_user(target->uid));
    if (permits->root) {
        fm_error_set(err, FM_FORBIDDEN,
                     "process %d belongs to user %s, and this root lacks the "
                     "capability SYS_PTRACE; %s",
                     (int)target->pid, owner,
                     permits->container[0] ? "start the container with --cap-add=SYS_PTRACE"
                                           : "run Fathom with CAP_SYS_PTRACE");
        return;
    }
    fm_error_set(err, FM_FORBIDDEN,
                 "process %d belongs to user %s; read it as that user or as "
                 "root: sudo fathom …",
                 (int)target->pid, owner);
}

static void explain_yama(const struct fm_proc *target, const struct fm_permits *permits,
                         struct fm_error *err)
{
    if (permits->yama_scope == 3)
        fm_error_set(err, FM_FORBIDDEN,
                     "process %d cannot be read: kernel.yama.ptrace_scope is 3, "
                     "which forbids it to everyone until the next boot; set it lower in "
                     "/etc/sysctl.d and boot again",
                     (int)target->pid);
    else if (permits->yama_scope == 2)
        fm_error_set(err, FM_FORBIDDEN,
                     "process %d cannot be read: kernel.yama.ptrace_scope is 2, "
                     "which allows it only to root; use sudo fathom …, or allow it with: " SYSCTL,
                     (int)target->pid);
    else
        fm_error_set(err, FM_FORBIDDEN,
                     "process %d cannot be read: kernel.yama.ptrace_scope is 1, "
                     "which allows it only to a parent; start the program with fathom run, use "
                     "sudo fathom …, or allow it with: " SYSCTL,
                     (int)target->pid);
}

/* A process of our own user, or of anyone if we are root. */
static void explain_own(const struct fm_proc *target, const struct fm_permits *permits,
                        struct fm_error *err)
{
    int pid = target->pid;
    if (!permits->ptrace_capable && fm_permits_hidden(pid, target->euid))
        fm_error_set(err, FM_FORBIDDEN,
                     "process %d has made itself unreadable (it is setuid, has "
                     "called prctl(PR_SET_DUMPABLE), or its executable is not readable); only "
                     "root may read it: sudo fathom …",
                     pid);
    else if (permits->yama_scope > 0 && !permits->ptrace_capable)
        explain_yama(target, permits, err);
    else if (!permits->ptrace_capable && (target->cap_effective & ~permits->capabilities))
        fm_error_set(err, FM_FORBIDDEN, "process %d has capabilities that Fathom lacks; %s", pid,
                     permits->container[0] ? "start the container with --cap-add=SYS_PTRACE"
                                           : "read it as root: sudo fathom …");
    else if (permits->container[0] && !permits->ptrace_capable)
        fm_error_set(err, FM_FORBIDDEN,
                     "process %d cannot be read: this %s container lacks the "
                     "capability; start it with --cap-add=SYS_PTRACE",
                     pid, permits->container);
    else if (permits->ptrace_capable)
        fm_error_set(err, FM_FORBIDDEN,
                     "process %d cannot be read although Fathom has "
                     "CAP_SYS_PTRACE: it lives in another user namespace, or a security module "
                     "(AppArmor, SELinux) forbids it; the kernel log (sudo dmesg) tells which",
                     pid);
    else
        fm_error_set(err, FM_FORBIDDEN,
                     "process %d cannot be read: a security module (AppArmor, "
                     "SELinux) may forbid it; read it as root: sudo fathom …",
                     pid);
}

void fm_runtime_explain_refusal(pid_t pid, int errnum, struct fm_error *err)
{
    struct fm_permits permits;
    struct fm_proc target;
    fm_permits_read(&permits);
    int failed = fm_process_read(&target, pid), self;
    if (failed == -ENOENT || failed == -ESRCH) {
        explain_unseen(pid, &permits, err);
        return;
    }
    if (target.state == 'Z' || target.state == 'X') {
        fm_error_set(err, FM_NOT_FOUND,
                     "process %d has ended; only its exit status is left, for "
                     "its parent %d to collect (a zombie)",
                     (int)pid, (int)target.parent);
        return;
    }
    if (target.kernel_thread) {
        fm_error_set(err, FM_NOT_PYTHON, "process %d (%s) is a thread of the kernel, not a program",
                     (int)pid, target.name);
        return;
    }
    if (errnum == ESRCH) {
        fm_error_set(err, FM_NOT_READY, "process %d is ending, or not started yet", (int)pid);
        return;
    }
    if ((self = fm_permits_read_self()))
        explain_filter(pid, self, &permits, err);
    else if (permits.yama_scope == 3)
        explain_yama(&target, &permits, err);
    else if (!permits.ptrace_capable && (target.uid != getuid() || target.euid != geteuid()))
        explain_other_user(&target, &permits, err);
    else
        explain_own(&target, &permits, err);
}
