/* Estimates of memory, and how far they may be off; see memory.h and model/metrics.h. */
#include "base/buffer.h"
#include "show/report/memory/memory.h"
#include "show/report/number.h"

const char *fm_memory_recorded(const struct fm_process *process)
{
    if (process->memory_sample_bytes)
        return "sampled";
    if (!process->memory)
        return "no";
    return process->memory_foreign ? "unknown" : process->memory_python ? "all" : "malloc";
}

bool fm_memory_has_error(const struct fm_profile *p, enum fm_metric metric)
{
    return fm_profile_has_estimates(p) && fm_metric_error(metric) < FM_METRIC_COUNT;
}

void fm_memory_error_column(struct fm_table *t, const struct fm_profile *p, enum fm_metric metric)
{
    if (fm_memory_has_error(p, metric))
        fm_table_column(t, "±", FM_TABLE_RIGHT);
}

static int64_t error_of(const struct fm_profile *p, enum fm_metric metric, const int64_t *numbers)
{
    enum fm_metric error = fm_metric_error(metric);
    return error < FM_METRIC_COUNT ? fm_profile_error_bytes(p, numbers[error]) : 0;
}

void fm_memory_error_cell(struct fm_table *t, const struct fm_profile *p, enum fm_metric metric,
                          const int64_t *numbers)
{
    char text[FM_NUMBER_BYTES];
    int64_t error = error_of(p, metric, numbers);
    if (fm_memory_has_error(p, metric))
        fm_table_cell(t, FM_COLOR_DIM, error ? fm_number_bytes(text, error) : "");
}

void fm_memory_describe(struct fm_buffer *out, const struct fm_profile *p, enum fm_metric metric,
                        const int64_t *numbers)
{
    char bytes[FM_NUMBER_BYTES], error[FM_NUMBER_BYTES];
    fm_number_bytes(bytes, numbers[metric]);
    if (!fm_profile_has_estimates(p))
        fm_buffer_add_text(out, bytes);
    else if (!fm_memory_has_error(p, metric))
        fm_buffer_addf(out, "about %s", bytes);
    else
        fm_buffer_addf(out, "about %s ± %s", bytes,
                       fm_number_bytes(error, error_of(p, metric, numbers)));
}

void fm_memory_describe_samples(struct fm_buffer *out, const struct fm_memory_sums *sums)
{
    char least[FM_NUMBER_BYTES], most[FM_NUMBER_BYTES];
    if (!sums->sample_most)
        return;
    fm_number_bytes(most, sums->sample_most);
    if (!sums->sample_least)
        fm_buffer_addf(out, "of some processes blocks were sampled every %s", most);
    else if (sums->sample_least != sums->sample_most)
        fm_buffer_addf(out, "blocks were sampled every %s to %s",
                       fm_number_bytes(least, sums->sample_least), most);
    else
        fm_buffer_addf(out, "blocks were sampled every %s", most);
    fm_buffer_add_text(out, ": these are estimates, right within ± in 19 of 20 cases");
}
