/* Recordings, metrics and results; see engine.h. */
#include "engine.h"

#include <string.h>

#include "base/memory.h"
#include "record/model/file/file.h"
#include "record/model/trace/lanes/timeline.h"
#include "timeline.h"
#include "view.h"

/* ---- metrics ---- */

bool fm_engine_metric_is_drawn(unsigned metric)
{
    return metric < FM_METRIC_COUNT
               ? fm_metric_is_sum((enum fm_metric)metric) && metric != FM_METRIC_RESUMES
               : metric < FM_ENGINE_METRICS;
}

uint64_t fm_engine_metric_columns(unsigned metric)
{
    uint64_t running = (uint64_t)fm_states_running() << FM_METRIC_STATES;
    uint64_t states = (((uint64_t)1 << FM_STATE_COUNT) - 1) << FM_METRIC_STATES;
    if (metric >= FM_METRIC_COUNT)
        return metric == FM_ENGINE_RUNNING   ? running
               : metric == FM_ENGINE_WAITING ? states & ~running
                                             : 0;
    return (uint64_t)1 << metric |
           (metric == FM_ENGINE_CALLS ? (uint64_t)1 << FM_METRIC_RESUMES : 0);
}

struct fm_metric_info fm_engine_metric_info(unsigned metric)
{
    if (metric < FM_METRIC_COUNT)
        return *fm_metric_info((enum fm_metric)metric);
    struct fm_metric_info info = *fm_metric_info(fm_metric_of_state(FM_STATE_PYTHON));
    info.name = info.title = metric == FM_ENGINE_RUNNING ? "running" : "waiting";
    info.light = info.dark = 0;
    return info;
}

bool fm_engine_metric_is_there(const struct fm_profile *p, unsigned metric)
{
    uint64_t columns = fm_engine_metric_columns(metric);
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
    fm_mark_overview_free(r->overview);
    fm_timeline_free(r->timeline);
    fm_profile_free(r->p);
    for (int k = 0; k < FM_MOMENT_COLUMNS; k++)
        free(r->earlier[k].data);
    free(r->name);
    free(r->func_of);
    free(r->thread_of);
    fm_links_release(&r->links);
    free(r->timeless);
    free(r->bytes);
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
