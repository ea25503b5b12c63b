/* Processes that may become a Python; see suspects.h. */
#include "sampler/suspects.h"

#include <errno.h>
#include <stdio.h>

#include "os/procfs.h"

#define EAGER_NS        100000000u /* an interpreter needs some 10 ms to start … */
#define EAGER_WAIT_NS   1000000u   /* … and what it does first is worth seeing */
#define LONGEST_WAIT_NS 50000000u

void fm_suspects_release(struct fm_suspects *s)
{
    fm_vec_release(&s->list);
    fm_strings_free(s->refused);
    s->refused = NULL;
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
    struct fm_suspect suspect = { pid, parent, now_ns, now_ns, EAGER_WAIT_NS };
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

struct fm_target *fm_suspects_try(struct fm_suspects *s, bool tasks, uint64_t now_ns)
{
    for (size_t i = 0; i < s->list.len;) {
        struct fm_suspect *suspect = &s->list.data[i];
        struct fm_error err = FM_ERROR_INIT;
        if (suspect->next_ns > now_ns) {
            i++;
            continue;
        }
        if (has_ended(suspect->pid)) {
            forget(s, i);
            continue;
        }
        struct fm_target *t = fm_target_new(suspect->pid, tasks, &err);
        if (t) {
            forget(s, i);
            return t;
        }
        if (err.status == FM_UNSUPPORTED || err.status == FM_FORBIDDEN) {
            char text[1200];
            snprintf(text, sizeof text, "process %d: %s", (int)suspect->pid, err.text);
            s->refused = s->refused ? s->refused : fm_strings_new();
            fm_strings_add_text(s->refused, text);
        }
        if (now_ns - suspect->since_ns > EAGER_NS && suspect->wait_ns < LONGEST_WAIT_NS)
            suspect->wait_ns *= 2;
        suspect->next_ns = now_ns + suspect->wait_ns;
        i++;
    }
    return NULL;
}
