/*
 * The control group of a process, as far as memory goes: what it has, what it may have, and how
 * many of its processes the kernel killed because there was no more.
 *
 * Both versions of control groups. A limit holds for everything below it, so the least of a group
 * and its parents is the one that counts, as far up as they can be seen: in a container that is the
 * container's own. Descriptors are kept; one reading costs about a microsecond.
 */
#ifndef FM_WATCH_MEMORY_CGROUP_H
#define FM_WATCH_MEMORY_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct fm_cgroup {
    int usage, events;  /* descriptors; −1: not there */
    int stat;           /* … */
    FM_VEC(int) limits; /* of the group and its parents */
    bool first_version;
};

/* The group of a process; nothing of it is known if there is none, or it cannot be seen. */
void fm_cgroup_open(struct fm_cgroup *g, pid_t pid);

/* The group `path` ("/a/b") of the hierarchy that is mounted at `mount`. */
void fm_cgroup_open_at(struct fm_cgroup *g, const char *mount, const char *path,
                       bool first_version);
void fm_cgroup_close(struct fm_cgroup *g);

int64_t fm_cgroup_usage(const struct fm_cgroup *g); /* bytes; −1: not known */
int64_t fm_cgroup_limit(const struct fm_cgroup *g); /* bytes; −1: none, or not known */
int64_t fm_cgroup_kills(const struct fm_cgroup *g); /* so far; −1: not known */
int64_t fm_cgroup_cache(const struct fm_cgroup *g); /* of its usage: of files; −1: not known */

/* The same of the whole machine. */
int64_t fm_machine_kills(void);

/* Where in /proc/PID/cgroup and /proc/PID/mountinfo (as text) the group is: mount point and path
 * below it, for free(). False if memory is in no group. */
bool fm_cgroup_find(const char *groups, const char *mounts, char **ret_mount, char **ret_path,
                    bool *ret_first_version);

#endif
