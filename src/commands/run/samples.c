/* Sampling during `fathom run`; see run_samples.h. */
#include "commands/run/samples.h"

#include "base/clock.h"
#include "base/memory.h"
#include "commands/redact.h"
#include "record/formats/format.h"
#include "watch/os/path.h"

int fm_run_samples_start(struct fm_run_samples *s, const struct fm_sampler_options *options,
                         pid_t pid, const struct fm_folder *folder, struct fm_error *err)
{
    struct fm_sampler_options own = *options;
    own.folder = folder->path;
    s->sampler = fm_sampler_new(&own);
    s->path = fm_path_join(folder->path, FM_RUN_SAMPLES_FILE);
    fm_save_times_begin(&s->times, fm_clock_ns());
    fm_sampler_expect(s->sampler, pid);
    return fm_sampler_start(s->sampler, err);
}

uint64_t fm_run_samples_due_ns(const struct fm_run_samples *s)
{
    return s->sampler ? s->times.next_ns : UINT64_MAX;
}

int fm_run_samples_save(struct fm_run_samples *s, struct fm_error *err)
{
    uint64_t begin_ns = fm_clock_ns();
    if (!s->sampler)
        return 0;
    struct fm_profile *p = fm_sampler_profile(s->sampler);
    fm_memory_watch_gather(s->memory, p);
    if (s->redact)
        fm_redact(p);
    int rc = fm_profile_write(p, s->path, NULL, true, err);
    fm_profile_free(p);
    s->saved = s->saved || rc == 0;
    fm_save_times_done(&s->times, begin_ns, fm_clock_ns());
    return rc;
}

struct fm_profile *fm_run_samples_profile(struct fm_run_samples *s)
{
    return s->sampler ? fm_sampler_profile(s->sampler) : NULL;
}

void fm_run_samples_stop(struct fm_run_samples *s)
{
    if (s->sampler)
        fm_sampler_stop(s->sampler);
}

void fm_run_samples_release(struct fm_run_samples *s)
{
    fm_sampler_free(s->sampler);
    free(s->path);
    *s = (struct fm_run_samples){ 0 };
}
