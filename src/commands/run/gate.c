/* A limit on the peak; see gate.h. */
#include "commands/run/gate.h"

#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/memory.h"
#include "show/report/number.h"

#define GUILTY 10 /* contexts that are named */

int fm_run_gate_parse(int64_t *ret_bytes, const char *text, struct fm_error *err)
{
    static const char units[] = "KMGTP";
    char *end;
    double bytes = strtod(text, &end);
    end += strspn(end, " ");
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    if (unit) {
        for (const char *u = units; u <= unit; u++)
            bytes *= 1024;
        end++;
        end += *end == 'i';
    }
    end += *end == 'B' || *end == 'b';
    if (end == text || *end || !(bytes > 0 && bytes < 9e18))
        return fm_error_set(err, FM_USAGE, "\"%s\" is no size; 200M or 1.5G are", text);
    *ret_bytes = (int64_t)bytes;
    return 0;
}

static uint32_t process_of(const struct fm_profile *p, uint32_t node)
{
    return p->threads.data[p->nodes.data[node].thread].process;
}

struct guilty {
    uint32_t node;
    int64_t bytes;
};

static int by_bytes(const void *a, const void *b)
{
    const struct guilty *x = a, *y = b;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : x->node < y->node ? -1 : 1;
}

/* "load (app.py:12) ← main (app.py:30)": as far as a line of a terminal goes. */
static void add_stack(struct fm_buffer *line, const struct fm_profile *p, uint32_t node)
{
    if (p->nodes.data[node].parent == FM_NONE)
        fm_buffer_add_text(line, "in no Python function");
    for (int depth = 0; depth < 4 && p->nodes.data[node].parent != FM_NONE; depth++) {
        const struct fm_node *n = &p->nodes.data[node];
        const struct fm_function *f = &p->functions.data[n->func];
        const char *file = fm_profile_text(p, f->file), *base = strrchr(file, '/');
        fm_buffer_addf(line, "%s%s", depth ? " ← " : "", fm_profile_text(p, f->qualname));
        if (*file)
            fm_buffer_addf(line, " (%s:%u)", base ? base + 1 : file, n->line ? n->line : f->line);
        node = n->parent;
    }
}

static enum fm_metric guilty_metric(const struct fm_profile *p, uint32_t process)
{
    bool together = process == FM_NONE && p->columns[FM_METRIC_TOGETHER].data;
    return together ? FM_METRIC_TOGETHER : FM_METRIC_PEAK;
}

int64_t fm_run_gate_sum(const struct fm_profile *p, uint32_t process)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->nodes.len; i++)
        if (process == FM_NONE || process_of(p, i) == process)
            sum = fm_sum(sum, fm_profile_value(p, guilty_metric(p, process), i));
    return sum;
}

static void name_one(const struct fm_profile *p, const struct guilty *one, bool which)
{
    fm_autobuffer line = FM_BUFFER_INIT;
    char number[FM_NUMBER_BYTES];
    fm_buffer_addf(&line, "%10s  ", fm_number_bytes(number, one->bytes));
    if (which)
        fm_buffer_addf(&line, "process %u: ", p->processes.data[process_of(p, one->node)].pid);
    add_stack(&line, p, one->node);
    fm_clean_say(stderr, "%s", line.data);
}

void fm_run_gate_name_guilty(const struct fm_profile *p, uint32_t process)
{
    FM_VEC(struct guilty) all = { 0 };
    bool several = false;
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        int64_t bytes = fm_profile_value(p, guilty_metric(p, process), i);
        if (bytes > 0 && (process == FM_NONE || process_of(p, i) == process))
            fm_vec_push(&all, ((struct guilty){ i, bytes }));
    }
    if (all.len)
        qsort(all.data, all.len, sizeof *all.data, by_bytes);
    for (size_t i = 1; i < all.len; i++)
        several |= process_of(p, all.data[i].node) != process_of(p, all.data[0].node);
    for (size_t i = 0; i < all.len && i < GUILTY; i++)
        name_one(p, &all.data[i], several);
    fm_vec_release(&all);
}

int fm_run_gate(const struct fm_profile *p, int64_t limit)
{
    fm_autofree int64_t *peaks = fm_calloc(p->processes.len + 1, sizeof *peaks);
    uint32_t worst = 0;
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        uint32_t process = process_of(p, i);
        peaks[process] = fm_sum(peaks[process], fm_profile_value(p, FM_METRIC_PEAK, i));
    }
    for (uint32_t i = 1; i < p->processes.len; i++)
        worst = peaks[i] > peaks[worst] ? i : worst;
    if (peaks[worst] <= limit)
        return 0;
    char peak[FM_NUMBER_BYTES], most[FM_NUMBER_BYTES];
    fm_number_bytes_apart(peak, peaks[worst], most, limit);
    fm_clean_say(stderr,
                 "fathom run: process %u had %s of memory at its peak, more than %s; most of it by",
                 p->processes.data[worst].pid, peak, most);
    fm_run_gate_name_guilty(p, worst);
    return fm_status_exit(FM_OVER_LIMIT);
}
