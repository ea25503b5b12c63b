/* A log of every look; see look_log.h. */
#include "watch/sampler/look_log.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"

#define NAME "FATHOM_LOOK_LOG"

/* The file, opened at the first look; NULL: not asked for. */
static FILE *log_file(void)
{
    static FILE *file;
    static bool asked;
    if (!asked) {
        const char *path = getenv(NAME);
        asked = true;
        file = path && *path ? fopen(path, "we") : NULL;
    }
    return file;
}

static void head(FILE *f, const struct fm_watched_thread *th, uint64_t ns, const char *proof)
{
    fprintf(f, "%" PRIu64 " %d %d %s ", ns, (int)th->pid, (int)th->tid, proof);
}

void fm_look_log_stack(const struct fm_target *t, const struct fm_watched_thread *th)
{
    static const char *const proofs[] = {
#define X(name, text) text,
        FM_PROOF_LIST(X)
#undef X
    };
    FILE *f = log_file();
    if (!f)
        return;
    head(f, th, t->looker.read_ns, proofs[th->proof]);
    fprintf(f, "%s ", fm_state_name(th->state));
    for (size_t i = t->looker.climb.frames.len; i-- > 0;) {
        const struct fm_raw_frame *frame = &t->looker.climb.frames.data[i];
        fprintf(f, "%s%s", t->codes.list.data[frame->code]->code.qualname, i ? ";" : "");
    }
    fputc('\n', f);
}

void fm_look_log_lost(const struct fm_target *t, const struct fm_watched_thread *th)
{
    (void)t;
    FILE *f = log_file();
    if (!f)
        return;
    head(f, th, fm_clock_ns(), "lost");
    fputs("-\n", f);
}
