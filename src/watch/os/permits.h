/*
 * What this system lets us do: the settings that forbid reading other processes, and trials of the
 * things themselves, since no list of settings is complete (seccomp filters and security modules do
 * not show).
 */
#ifndef FM_OS_PERMITS_H
#define FM_OS_PERMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FM_PERMITS_UNKNOWN (-100)

struct fm_permits {
    bool proc;             /* /proc is mounted */
    int hidepid;           /* 0, 1, 2; 4 for ptraceable; of the /proc we see */
    int yama_scope;        /* 0 to 3; FM_PERMITS_UNKNOWN: the module is not there */
    int perf_paranoid;     /* -1 to 4; FM_PERMITS_UNKNOWN */
    uint64_t capabilities; /* effective, bits as in linux/capability.h */
    bool ptrace_capable;   /* CAP_SYS_PTRACE among them */
    bool root;             /* our effective user is 0 */
    int seccomp;           /* 0 none, 1 strict, 2 filter; -1 unknown */
    char container[32];    /* "docker", "podman", "kubernetes", "lxc", "container"; "" for none */
    bool user_namespace;   /* in one that does not have all users of the machine */
    bool inner_pids;       /* in a pid namespace of our own */
    /* Trials: 0, or an error number */
    int read_self;    /* process_vm_readv of our own memory */
    int read_child;   /* … of a child of ours */
    int read_syscall; /* /proc/TID/syscall of a child */
    int read_schedstat;
    int open_perf; /* perf_event_open of a child, user space only */
    int seat;      /* to sit on a processor (seat.h) */
    bool prompt;   /* … with a short slice */
    int stop;      /* to stop a thread of a child (halt.h) */
};

/* The settings; no trial. */
void fm_permits_read(struct fm_permits *permits);

/* Settings and trials; makes a child for a moment. */
void fm_permits_try(struct fm_permits *permits);

/* process_vm_readv of our own memory: 0 or an error number. Only a filter can refuse it. */
int fm_permits_read_self(void);

/* Has `pid` forbidden others of its user to look at it (prctl, setuid, unreadable executable)? */
bool fm_permits_hidden(pid_t pid, uid_t euid);

/* The name of a user, or its number; in a static buffer. */
const char *fm_permits_user(uid_t uid);

#endif
