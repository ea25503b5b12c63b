/* Recordings, metrics and results; see engine.h. */
#include "engine.h"

#include <string.h>

#include "base/memory.h"
#include "record/model/file.h"
#include "view.h"

/* ---- metrics ---- */

#define BIT(metric) (1u << FM_METRIC_##metric)

uint32_t fm_engine_metric_columns(unsigned metric)
{
    const uint32_t states = ((1u << FM_STATE_COUNT) - 1) << FM_METRIC_STATE_PYTHON;
    switch (metric) {
    case FM_ENGINE_TOTAL:
        return BIT(TOTAL);
    case FM_ENGINE_CALLS:
        return BIT(CALLS) | BIT(RESUMES);
    case FM_ENGINE_SUSPENDED:
        return BIT(SUSPENDED);
    case FM_ENGINE_SAMPLES:
        return BIT(SAMPLES);
    case FM_ENGINE_RUNNING:
        return BIT(STATE_PYTHON) | BIT(STATE_C);
    case FM_ENGINE_WAITING:
        return states & ~(BIT(STATE_PYTHON) | BIT(STATE_C));
    default:
        return metric < FM_ENGINE_METRICS
                   ? 1u << (FM_METRIC_STATE_PYTHON + metric - FM_ENGINE_STATES)
                   : 0;
    }
}

const char *fm_engine_metric_key(unsigned metric)
{
    static const char *const keys[] = { "total",   "calls",   "suspended",
                                        "samples", "running", "waiting" };
    return metric < FM_ENGINE_STATES ? keys[metric]
                                     : fm_state_name((enum fm_state)(metric - FM_ENGINE_STATES));
}

bool fm_engine_metric_is_there(const struct fm_profile *p, unsigned metric)
{
    uint32_t columns = fm_engine_metric_columns(metric);
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        if (columns >> m & 1 && p->columns[m].data)
            return true;
    return false;
}

/* ---- results ---- */

void fm_result_release(struct fm_result *r)
{
    for (uint32_t i = 0; i < r->columns; i++)
        free(r->column[i].data);
    *r = (struct fm_result){ 0 };
}

void fm_result_begin(struct fm_result *r, uint32_t rows)
{
    fm_result_release(r);
    r->rows = rows;
}

static void *result_column(struct fm_result *r, uint32_t type, size_t count, size_t bytes)
{
    if (r->columns == FM_RESULT_COLUMNS)
        abort();
    struct fm_result_column *c = &r->column[r->columns++];
    *c = (struct fm_result_column){ fm_calloc(count, bytes), type, (uint32_t)count };
    return c->data;
}

uint32_t *fm_result_u32(struct fm_result *r)
{
    return result_column(r, FM_RESULT_U32, r->rows, sizeof(uint32_t));
}

double *fm_result_f64(struct fm_result *r)
{
    return result_column(r, FM_RESULT_F64, r->rows, sizeof(double));
}

double *fm_result_f64_wide(struct fm_result *r, uint32_t width)
{
    return result_column(r, FM_RESULT_F64, (size_t)r->rows * width, sizeof(double));
}

/* ---- recordings ---- */

void fm_engine_init(struct fm_engine *e)
{
    *e = (struct fm_engine){ 0 };
    e->strings = fm_strings_new();
    e->keys = fm_strings_new();
    uint32_t name = fm_strings_add_text(e->strings, "everything");
    fm_vec_push(&e->functions, ((struct fm_engine_function){ .kind = FM_ENGINE_KIND_EVERYTHING,
                                                             .name = name,
                                                             .qualname = name,
                                                             .module_func = FM_NONE }));
}

static void recording_free(struct fm_recording *r)
{
    if (!r)
        return;
    fm_profile_free(r->p);
    free(r->name);
    free(r->func_of);
    free(r->thread_of);
    free(r->first_child);
    free(r->next_child);
    free(r);
}

void fm_engine_release(struct fm_engine *e)
{
    for (int i = 0; i < FM_ENGINE_RECORDINGS; i++)
        fm_engine_close(e, i);
    for (size_t i = 0; i < FM_COUNT(e->results); i++)
        fm_result_release(&e->results[i]);
    fm_strings_free(e->strings);
    fm_strings_free(e->keys);
    fm_vec_release(&e->functions);
    fm_buffer_release(&e->text);
}

struct fm_recording *fm_engine_recording(struct fm_engine *e, int recording)
{
    if (recording >= 0 && recording < FM_ENGINE_RECORDINGS && e->recordings[recording])
        return e->recordings[recording];
    fm_error_set(&e->err, FM_USAGE, "there is no recording %d", recording);
    return NULL;
}

int fm_engine_add(struct fm_engine *e, struct fm_profile *p, const char *name)
{
    int id = 0;
    while (id < FM_ENGINE_RECORDINGS && e->recordings[id])
        id++;
    if (id == FM_ENGINE_RECORDINGS) {
        fm_profile_free(p);
        fm_error_set(&e->err, FM_UNSUPPORTED, "more than %d recordings are open already",
                     FM_ENGINE_RECORDINGS);
        return -1;
    }
    struct fm_recording *r = fm_calloc(1, sizeof *r);
    r->p = p;
    r->name = fm_strdup(name);
    r->processes = (uint32_t)p->processes.len;
    r->threads = (uint32_t)p->threads.len;
    r->nodes = (uint32_t)p->nodes.len;
    if (p->flat && p->nodes.len == p->threads.len)
        fm_recording_estimate(r);
    fm_engine_name(e, r);
    e->recordings[id] = r;
    return id;
}

int fm_engine_open(struct fm_engine *e, const void *bytes, size_t len, const char *name)
{
    struct fm_profile *p = fm_file_load(bytes, len, name, &e->err);
    return p ? fm_engine_add(e, p, name) : -1;
}

void fm_engine_close(struct fm_engine *e, int recording)
{
    if (recording < 0 || recording >= FM_ENGINE_RECORDINGS)
        return;
    for (int i = 0; i < FM_ENGINE_VIEWS; i++)
        if (e->views[i] && fm_view_uses(e->views[i], e->recordings[recording]))
            fm_engine_view_free(e, i);
    recording_free(e->recordings[recording]);
    e->recordings[recording] = NULL;
}
