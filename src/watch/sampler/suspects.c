/* Processes that may become a Python; see suspects.h. */
#include "watch/sampler/suspects.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "watch/os/procfs.h"

#define FIRST_WAIT_NS   1000000u /* what an interpreter does first is worth seeing */
#define LONGEST_WAIT_NS 50000000u
#define SELDOM_NS       2000000000u /* how often a program that is no Python is searched again */
#define PATIENCE        8 /* a try comes after one part in so many of the time until now */

void fm_suspects_release(struct fm_suspects *s)
{
    fm_vec_release(&s->list);
    for (size_t i = 0; i < s->refused.len; i++)
        free(s->refused.data[i].text);
    fm_vec_release(&s->refused);
}

bool fm_suspects_has(const struct fm_suspects *s, pid_t pid)
{
    for (size_t i = 0; i < s->list.len; i++) {
        if (s->list.data[i].pid == pid)
            return true;
    }
    return false;
}

void fm_suspects_add(struct fm_suspects *s, pid_t pid, pid_t parent, uint64_t now_ns)
{
    struct fm_suspect suspect = { .pid = pid, .parent = parent, .since_ns = now_ns };
    if (!fm_suspects_has(s, pid))
        fm_vec_push(&s->list, suspect);
}

static void forget(struct fm_suspects *s, size_t i)
{
    s->list.data[i] = s->list.data[--s->list.len];
}

static bool has_ended(pid_t pid)
{
    struct fm_process_kin kin;
    return fm_process_kin(&kin, pid) < 0 || kin.state == 'Z' || kin.state == 'X';
}

/* Later sentences know more: a Python that has just started has not said its exact version yet. */
static void refuse(struct fm_suspects *s, pid_t pid, const char *text)
{
    struct fm_refusal refusal = { pid, fm_strdup(text) };
    for (size_t i = 0; i < s->refused.len; i++) {
        if (s->refused.data[i].pid == pid) {
            free(s->refused.data[i].text);
            s->refused.data[i] = refusal;
            return;
        }
    }
    fm_vec_push(&s->refused, refusal);
}

/* A process that could not be watched executes another Python now, which can. */
static void forgive(struct fm_suspects *s, pid_t pid)
{
    for (size_t i = 0; i < s->refused.len; i++) {
        if (s->refused.data[i].pid == pid) {
            free(s->refused.data[i].text);
            s->refused.data[i] = s->refused.data[--s->refused.len];
            return;
        }
    }
}

/* Differs between programs that one process executes one after the other. */
static uint64_t program_of(pid_t pid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    return stat(path, &st) == 0 ? fm_mix64((uint64_t)st.st_dev << 40 ^ (uint64_t)st.st_ino) | 1 : 0;
}

/* To be called after a try that failed. How long an interpreter takes to start depends on the
 * machine and what else it does, so the pauses grow with the time that has passed. A program that
 * links no Python may still load one, as servers that embed it do: it is not given up. */
static void put_off(struct fm_suspect *suspect, int status, uint64_t now_ns)
{
    uint64_t wait_ns = (now_ns - suspect->since_ns) / PATIENCE;
    uint64_t most_ns = status == FM_NOT_PYTHON ? SELDOM_NS : LONGEST_WAIT_NS;
    wait_ns = wait_ns < FIRST_WAIT_NS ? FIRST_WAIT_NS : wait_ns > most_ns ? most_ns : wait_ns;
    suspect->try_ns = now_ns + wait_ns;
}

/* Is it time to search the process? Another program than before is new in every respect. */
static bool is_due(struct fm_suspect *suspect, uint64_t now_ns)
{
    uint64_t program = program_of(suspect->pid);
    if (program != suspect->program) {
        suspect->program = program;
        suspect->since_ns = suspect->try_ns = now_ns;
    }
    return suspect->try_ns <= now_ns;
}

/* The target that the suspect has become, or NULL. */
static struct fm_target *try_one(struct fm_suspects *s, struct fm_suspect *suspect,
                                 const struct fm_target_options *options, uint64_t now_ns)
{
    struct fm_error err = FM_ERROR_INIT;
    struct fm_target *t = fm_target_new(suspect->pid, options, &err);
    if (t) {
        forgive(s, suspect->pid);
        return t;
    }
    if (err.status == FM_UNSUPPORTED || err.status == FM_FORBIDDEN)
        refuse(s, suspect->pid, err.text);
    put_off(suspect, err.status, now_ns);
    return NULL;
}

struct fm_target *fm_suspects_try(struct fm_suspects *s, const struct fm_target_options *options,
                                  uint64_t now_ns)
{
    for (size_t i = 0; i < s->list.len;) {
        struct fm_suspect *suspect = &s->list.data[i];
        struct fm_target *t = NULL;
        if (suspect->next_ns > now_ns) {
            i++;
        } else if (has_ended(suspect->pid) ||
                   (is_due(suspect, now_ns) && (t = try_one(s, suspect, options, now_ns)))) {
            forget(s, i);
            if (t)
                return t;
        } else {
            uint64_t latest_ns = now_ns + LONGEST_WAIT_NS;
            suspect->next_ns = suspect->try_ns < latest_ns ? suspect->try_ns : latest_ns;
            i++;
        }
    }
    return NULL;
}
