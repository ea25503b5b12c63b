/* Samples beside exact numbers; see join_samples.h. */
#include "record/model/derive/join_samples.h"

#include <string.h>

#include "base/map.h"
#include "record/capture/live.h"
#include "record/model/tree.h"

struct sample_join {
    struct fm_profile *into;
    const struct fm_profile *from;
    uint32_t *functions; /* of `from` → of `into`; FM_NONE: what the agent ran, not the program */
    uint32_t *processes;
    uint32_t *threads;
    uint32_t first_new;        /* processes of `into` from here on were only sampled */
    uint32_t first_new_thread; /* … and threads, those of known processes included */
    struct fm_tree tree;       /* of `into`, C functions passed over */
};

/* The exact process of the same number that was running at the same time; FM_NONE if none was. Of those
 * that one process was before and after it executed something else, the last that had begun when
 * sampling ended: exact recordings may begin a moment later than samples, and need not know their end. */
static uint32_t find_process(const struct sample_join *u, const struct fm_process *sampled)
{
    uint32_t found = FM_NONE;
    for (uint32_t i = 0; i < u->into->processes.len; i++) {
        const struct fm_process *process = &u->into->processes.data[i];
        if (process->pid != sampled->pid || !process->profiled || process->sampled ||
            (process->end_ns && process->end_ns < sampled->start_ns))
            continue;
        bool begun = !sampled->end_ns || process->start_ns < sampled->end_ns;
        if (found == FM_NONE ||
            (begun && process->start_ns >= u->into->processes.data[found].start_ns))
            found = i;
    }
    return found;
}

/* A program that is sampled tells of its regions from its first one on, or from the import of fathom: it was
 * there before. Recorded calls begin with the program's first code, and that is where such a process begins. */
static void take_start(struct fm_process *process, const struct fm_process *sampled)
{
    if (process->calls || sampled->start_ns >= process->start_ns)
        return;
    process->start_ns = sampled->start_ns;
    process->start_real_ns = sampled->start_real_ns;
}

static void take_numbers(struct fm_process *process, const struct fm_process *sampled)
{
    take_start(process, sampled);
    process->sampled = true;
    process->sample_mode = sampled->sample_mode;
    process->sample_interval_ns = sampled->sample_interval_ns;
    process->sample_rounds = sampled->sample_rounds;
    process->samples = sampled->samples;
    process->samples_partial = sampled->samples_partial;
    process->samples_lost = sampled->samples_lost;
    process->sampler_cpu_ns = sampled->sampler_cpu_ns;
    if (process->exit_status < 0)
        process->exit_status = sampled->exit_status;
}

/* The last come first: where a process executed another program each has been sampled for itself, and
 * what the later ones have taken is not there for those before. */
static void find_processes(struct sample_join *u)
{
    for (size_t i = u->from->processes.len; i-- > 0;) {
        const struct fm_process *process = &u->from->processes.data[i];
        u->processes[i] = find_process(u, process);
        if (u->processes[i] != FM_NONE &&
            process->sampled) /* else it is there for its memory only */
            take_numbers(&u->into->processes.data[u->processes[i]], process);
    }
}

static void join_processes(struct sample_join *u)
{
    u->first_new = (uint32_t)u->into->processes.len;
    find_processes(u);
    for (size_t i = 0; i < u->from->processes.len; i++) {
        struct fm_process process = u->from->processes.data[i];
        if (u->processes[i] != FM_NONE)
            continue;
        process.exe = fm_profile_string_of(u->into, u->from, process.exe);
        process.command = fm_profile_string_of(u->into, u->from, process.command);
        process.cwd = fm_profile_string_of(u->into, u->from, process.cwd);
        process.version = fm_profile_string_of(u->into, u->from, process.version);
        u->processes[i] = fm_profile_process(u->into, &process);
    }
}

static bool is_taken(const struct sample_join *u, size_t before, uint32_t thread)
{
    for (size_t i = 0; i < before; i++) {
        if (u->threads[i] == thread)
            return true;
    }
    return false;
}

/* A process has one main thread, however often it was met: short programs may execute one another between
 * two looks. FM_NONE if the exact recording has none. */
static uint32_t find_main(const struct sample_join *u, const struct fm_thread *sampled,
                          uint32_t process)
{
    const char *name = fm_profile_text(u->from, sampled->name);
    if (sampled->tid != u->into->processes.data[process].pid ||
        strncmp(name, FM_TASKS_THREAD, strlen(FM_TASKS_THREAD)) == 0) /* it has the same id */
        return FM_NONE;
    for (uint32_t k = 0; k < u->into->threads.len; k++)
        if (u->into->threads.data[k].process == process &&
            u->into->threads.data[k].tid == sampled->tid)
            return k;
    return FM_NONE;
}

/* The exact thread of sampled thread number `i`, or a new one. A sampled thread's asyncio tasks are a
 * thread with the same id: they never take the exact one's place, since they come later. */
static uint32_t find_thread(struct sample_join *u, size_t i)
{
    struct fm_thread sampled = u->from->threads.data[i];
    uint32_t process = u->processes[sampled.process];
    for (uint32_t k = 0; k < u->into->threads.len && process < u->first_new; k++) {
        const struct fm_thread *thread = &u->into->threads.data[k];
        if (thread->process != process || thread->tid != sampled.tid ||
            (thread->end_ns && thread->end_ns < sampled.start_ns) || is_taken(u, i, k))
            continue;
        if (!thread->cpu_ns) /* it ended before it looked at its own clock */
            u->into->threads.data[k].cpu_ns = sampled.cpu_ns;
        return k;
    }
    uint32_t main = process < u->first_new ? find_main(u, &sampled, process) : FM_NONE;
    if (main != FM_NONE)
        return main;
    sampled.process = process;
    sampled.name = fm_profile_string_of(u->into, u->from, sampled.name);
    return fm_profile_thread(u->into, &sampled);
}

static void join_functions(struct sample_join *u)
{
    for (size_t i = 0; i < u->from->functions.len; i++) {
        struct fm_function f = u->from->functions.data[i];
        u->functions[i] = FM_NONE;
        if (strcmp(fm_profile_text(u->from, f.file), FM_LIVE_OWN_FILE) == 0)
            continue;
        f.name = fm_profile_string_of(u->into, u->from, f.name);
        f.qualname = fm_profile_string_of(u->into, u->from, f.qualname);
        f.file = fm_profile_string_of(u->into, u->from, f.file);
        u->functions[i] = fm_profile_function(u->into, &f);
    }
}

/* The nodes of the exact trees by nearest caller that is not a C function. */
static void index_children(struct sample_join *u)
{
    const struct fm_profile *p = u->into;
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        uint32_t parent = p->nodes.data[i].parent;
        while (parent != FM_NONE &&
               p->functions.data[p->nodes.data[parent].func].kind == FM_FUNCTION_C)
            parent = p->nodes.data[parent].parent;
        if (parent != FM_NONE && !p->nodes.data[i].line)
            fm_tree_know(&u->tree, parent, p->nodes.data[i].func, i);
    }
}

/* Is all of a thread's time known exactly? Not of one that only the samples know (asyncio's tasks),
 * nor where calls of some functions alone were recorded, for their lines. */
static bool is_exact(const struct sample_join *u, uint32_t thread)
{
    uint32_t process = u->into->threads.data[thread].process;
    return thread < u->first_new_thread && process < u->first_new &&
           u->into->processes.data[process].calls;
}

/* Where samples bring the times, those of some calls must not be added to them. */
static void forget_inexact_times(struct sample_join *u)
{
    struct fm_profile *p = u->into;
    for (uint32_t i = 0; p->columns[FM_METRIC_TOTAL].data && i < p->nodes.len; i++) {
        const struct fm_thread *thread = &p->threads.data[p->nodes.data[i].thread];
        if (!is_exact(u, p->nodes.data[i].thread) && p->processes.data[thread->process].samples)
            p->columns[FM_METRIC_TOTAL].data[i] = 0;
    }
}

static void join_trees(struct sample_join *u)
{
    const struct fm_profile *from = u->from;
    fm_autofree uint32_t *place = fm_malloc((from->nodes.len + 1) * sizeof *place);
    u->first_new_thread = (uint32_t)u->into->threads.len;
    forget_inexact_times(u);
    for (size_t i = 0; i < from->threads.len; i++)
        u->threads[i] = find_thread(u, i);
    index_children(u);
    for (uint32_t i = 0; i < from->nodes.len; i++) {
        const struct fm_node *node = &from->nodes.data[i];
        uint32_t thread = u->threads[node->thread];
        if (node->parent == FM_NONE) {
            place[i] = u->into->threads.data[thread].root;
        } else if (u->functions[node->func] == FM_NONE) {
            place[i] = place[node->parent];
            continue;
        } else
            place[i] = fm_tree_child(&u->tree, place[node->parent], u->functions[node->func]);
        for (int m = 0; m < FM_METRIC_COUNT; m++)
            if (!is_exact(u, thread) || fm_metric_info((enum fm_metric)m)->origin == FM_SAMPLED)
                fm_profile_add(u->into, (enum fm_metric)m, place[i],
                               fm_profile_value(from, (enum fm_metric)m, i));
    }
    fm_sample_order_copy(&u->into->order, &from->order,
                         &(struct fm_order_renumbering){
                             .process = u->processes, .thread = u->threads, .node = place });
}

/* Times of lines are exact in functions whose lines were recorded, else those of the samples are
 * all there is. */
static void join_lines(struct sample_join *u)
{
    struct fm_map exact = { 0 }; /* (process, function) */
    for (size_t i = 0; i < u->into->lines.rows.len; i++) {
        const struct fm_line *row = &u->into->lines.rows.data[i];
        fm_map_at(&exact, fm_map_pair(row->process, row->func), 0, NULL);
    }
    for (size_t i = 0; i < u->from->lines.rows.len; i++) {
        const struct fm_line *row = &u->from->lines.rows.data[i];
        uint32_t process = u->processes[row->process], func = u->functions[row->func];
        if (func == FM_NONE)
            continue;
        struct fm_line *line = fm_lines_add(&u->into->lines, process, func, row->line, false);
        line->samples = row->samples;
        for (int k = 0; k < FM_STATE_COUNT; k++)
            line->state_ns[k] = row->state_ns[k];
        if (!fm_map_find(&exact, fm_map_pair(process, func))) {
            line->total_ns = row->total_ns;
            line->self_ns = row->self_ns;
        }
    }
    fm_map_release(&exact);
    fm_lines_sort(&u->into->lines);
}

static void join_tables(struct sample_join *u)
{
    for (size_t i = 0; i < u->from->samples.spots.len; i++) {
        struct fm_spot spot = u->from->samples.spots.data[i];
        spot.process = u->processes[spot.process];
        spot.func = u->functions[spot.func];
        if (spot.func != FM_NONE)
            fm_vec_push(&u->into->samples.spots, spot);
    }
    for (size_t i = 0; i < u->from->samples.waits.len; i++) {
        struct fm_wait wait = u->from->samples.waits.data[i];
        wait.process = u->processes[wait.process];
        wait.func = u->functions[wait.func];
        wait.detail = fm_profile_string_of(u->into, u->from, wait.detail);
        if (wait.func != FM_NONE)
            fm_vec_push(&u->into->samples.waits, wait);
    }
    fm_samples_sort(&u->into->samples);
    for (size_t i = 0; i < u->from->memory.points.len; i++) {
        struct fm_memory_point point = u->from->memory.points.data[i];
        if (point.process != FM_NONE)
            point.process = u->processes[point.process];
        fm_vec_push(&u->into->memory.points, point);
    }
}

static void join_notes(struct sample_join *u)
{
    for (size_t i = 0; i < u->from->notes.len; i++) {
        const struct fm_note *note = &u->from->notes.data[i];
        uint32_t process = note->process == FM_NONE ? FM_NONE : u->processes[note->process];
        fm_profile_note(u->into, process, fm_profile_text(u->from, note->kind), note->count,
                        fm_profile_text(u->from, note->text));
    }
}

void fm_profile_join_samples(struct fm_profile *into, const struct fm_profile *sampled)
{
    struct sample_join u = { .into = into, .from = sampled, .tree = { .p = into } };
    u.functions = fm_malloc((sampled->functions.len + 1) * sizeof *u.functions);
    u.processes = fm_malloc((sampled->processes.len + 1) * sizeof *u.processes);
    u.threads = fm_malloc((sampled->threads.len + 1) * sizeof *u.threads);
    join_functions(&u);
    join_processes(&u);
    join_trees(&u);
    join_lines(&u);
    join_tables(&u);
    join_notes(&u);
    fm_tree_release(&u.tree);
    free(u.functions);
    free(u.processes);
    free(u.threads);
}
