/*
 * Processes that may become a Python that is worth watching: a program just launched, children of
 * watched processes. Each is tried again, less and less often, until it is a Python or has ended; a
 * shell that will execute one is not given up.
 */
#ifndef FM_SAMPLER_SUSPECTS_H
#define FM_SAMPLER_SUSPECTS_H

#include "watch/sampler/target.h"

struct fm_suspect {
    pid_t pid, parent;
    uint64_t program;  /* a mark of what the process executes; 0: not known */
    uint64_t since_ns; /* … since then */
    uint64_t try_ns;   /* when to search that for a Python again */
    uint64_t next_ns;  /* when to see whether it executes another, or has ended */
};

/* A Python that cannot be watched: what was last said about it. */
struct fm_refusal {
    pid_t pid;
    char *text;
};

struct fm_suspects {
    FM_VEC(struct fm_suspect) list;
    FM_VEC(struct fm_refusal) refused;
};

void fm_suspects_release(struct fm_suspects *s);
bool fm_suspects_has(const struct fm_suspects *s, pid_t pid);
void fm_suspects_add(struct fm_suspects *s, pid_t pid, pid_t parent, uint64_t now_ns);

/* Try those whose time has come, one after the other, up to the first that is a Python: it is
 * returned and no suspect any more. NULL when none is left for now. Ended ones are forgotten. */
struct fm_target *fm_suspects_try(struct fm_suspects *s, const struct fm_target_options *options,
                                  uint64_t now_ns);

#endif
