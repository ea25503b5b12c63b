/*
 * Writes the JSON that Firefox Profiler opens, for sampled recordings; firefox.h says what it consists of.
 *
 * A sample is a stack with its weight in milliseconds ("tracing-ms"), told apart by the state that its thread
 * was in, in the order of time (firefox_order.c). Where the order of samples is not known, each stack is there once, one behind the other in the order
 * of the tree, so that tables and flame graphs are right, and the chart over time is not one.
 */
#include <string.h>

#include "base/memory.h"
#include "record/formats/format.h"
#include "record/formats/json.h"
#include "record/formats/timeline/firefox.h"

#define VERSION       "60" /* of processed profiles: tables are shared; newer readers upgrade it */
#define GECKO_VERSION "29"
#define OUTPUT_MAX    ((size_t)1 << 30) /* browsers hold no longer text */

struct firefox_saver {
    struct fm_firefox f;
    struct fm_buffer *out;
    struct fm_firefox_samples samples;
    size_t *begin;     /* by thread, and one more: where its samples begin */
    uint64_t start_ns; /* the earliest instant of the recording */
    struct fm_error *err;
};

/* ---- samples ---- */

/* Stacks of all nodes that something stands on. */
static void make_stacks(struct firefox_saver *s)
{
    const struct fm_profile *p = s->f.p;
    fm_autofree bool *needed = fm_calloc(p->nodes.len + 1, sizeof *needed);
    s->f.node_stack = fm_malloc((p->nodes.len + 1) * sizeof *s->f.node_stack);
    for (size_t i = p->nodes.len; i-- > 0;) {
        uint32_t parent = p->nodes.data[i].parent;
        if (parent != FM_NONE && (needed[i] || s->f.own.ns[i] > 0))
            needed[parent] = true;
    }
    for (uint32_t i = 0; i < p->nodes.len; i++) { /* parents come first */
        const struct fm_node *n = &p->nodes.data[i];
        s->f.node_stack[i] = FM_NONE;
        if (needed[i] && n->parent != FM_NONE)
            s->f.node_stack[i] = fm_firefox_stack(&s->f, s->f.node_stack[n->parent], n->func,
                                                  n->line, FM_FIREFOX_NO_CATEGORY);
    }
}

static uint32_t stack_in(struct fm_firefox *f, uint32_t node, uint32_t category)
{
    const struct fm_node *n = &f->p->nodes.data[node];
    uint32_t prefix = n->parent == FM_NONE ? FM_NONE : f->node_stack[n->parent];
    return fm_firefox_stack(f, prefix, n->func, n->line, category);
}

uint32_t fm_firefox_node_stack(struct fm_firefox *f, uint32_t node, enum fm_state state)
{
    return stack_in(f, node, fm_firefox_category(state));
}

static void add_sample(struct firefox_saver *s, uint32_t node, uint32_t category, int64_t weight,
                       int64_t *at_ns)
{
    struct fm_firefox_sample sample = { .at_ns = *at_ns, .weight = weight };
    sample.stack = stack_in(&s->f, node, category);
    fm_vec_push(&s->samples.list, sample);
    *at_ns = fm_sum(*at_ns, weight);
}

/* States explain the time only if they are of it: beside recorded calls they are of other instants. */
static bool states_explain(const struct firefox_saver *s, uint32_t node)
{
    int64_t sum = 0;
    for (int i = 0; i < FM_STATE_COUNT; i++)
        sum = fm_sum(sum, fm_profile_value(s->f.p, fm_metric_of_state((enum fm_state)i), node));
    return !s->f.own.unit && sum > 0 && sum <= s->f.own.ns[node];
}

static void add_node(struct firefox_saver *s, uint32_t node, int64_t *at_ns)
{
    int64_t left = s->f.own.ns[node];
    if (states_explain(s, node))
        for (int i = 0; i < FM_STATE_COUNT; i++) {
            enum fm_state state = (enum fm_state)i;
            int64_t ns = fm_profile_value(s->f.p, fm_metric_of_state(state), node);
            if (ns > 0)
                add_sample(s, node, fm_firefox_category(state), ns, at_ns);
            left -= ns;
        }
    if (left > 0)
        add_sample(s, node, FM_FIREFOX_NO_CATEGORY, left, at_ns);
}

static uint64_t since_start(const struct firefox_saver *s, uint64_t ns)
{
    return ns > s->start_ns ? ns - s->start_ns : 0;
}

static int add_tree(struct firefox_saver *s)
{
    const struct fm_profile *p = s->f.p;
    for (uint32_t thread = 0; thread < p->threads.len; thread++) {
        int64_t at_ns = (int64_t)since_start(s, p->threads.data[thread].start_ns);
        s->begin[thread] = s->samples.begin = s->samples.list.len;
        if (fm_firefox_add_order(&s->f, thread, s->start_ns, &s->samples))
            continue;
        for (uint32_t i = s->f.first_node[thread]; i != FM_NONE; i = s->f.next_node[i])
            add_node(s, i, &at_ns);
    }
    s->begin[p->threads.len] = s->samples.list.len;
    if (!s->samples.list.len)
        return fm_error_set(s->err, FM_UNSUPPORTED,
                            "the recording holds nothing that Firefox Profiler could show");
    return 0;
}

/* ---- the file ---- */

static void put_categories(struct fm_buffer *out)
{
    /* By enum fm_state; the format has these colours alone, and "transparent" for what is idle. */
    static const char *const colors[FM_STATE_COUNT] = {
        [FM_STATE_PYTHON] = "yellow",     [FM_STATE_C] = "blue",
        [FM_STATE_GIL] = "red",           [FM_STATE_LOCK] = "orange",
        [FM_STATE_DISK] = "purple",       [FM_STATE_NETWORK] = "magenta",
        [FM_STATE_SLEEP] = "transparent", [FM_STATE_OTHER] = "brown",
    };
    fm_buffer_add_text(out, "\"categories\":[{\"name\":\"Other\",\"color\":\"grey\","
                            "\"subcategories\":[\"Other\"]}");
    for (int i = 0; i < FM_STATE_COUNT; i++)
        fm_buffer_addf(out, ",{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}",
                       fm_state_title((enum fm_state)i), colors[i] ? colors[i] : "darkgrey");
    fm_buffer_add_text(out, "],\n");
}

static void put_meta(struct firefox_saver *s)
{
    const struct fm_profile *p = s->f.p;
    const struct fm_process *first = p->processes.len ? &p->processes.data[0] : NULL;
    const char *command = fm_profile_fact_get(p, "command");
    uint64_t interval = first && first->sample_interval_ns ? first->sample_interval_ns : 1000000;
    uint64_t real = first ? first->start_real_ns : 0;
    fm_buffer_add_text(s->out, "{\"meta\":{\"version\":" GECKO_VERSION
                               ",\"preprocessedProfileVersion\":" VERSION ",\n\"interval\":");
    fm_json_put_ns(s->out, (int64_t)(interval & INT64_MAX), 6);
    fm_buffer_add_text(s->out, ",\"startTime\":");
    fm_json_put_ns(s->out, (int64_t)(real & INT64_MAX), 6);
    fm_buffer_add_text(s->out, ",\"processType\":0,\"stackwalk\":1,\"product\":");
    fm_json_put_text(s->out, command ? command : "Python", strlen(command ? command : "Python"));
    fm_buffer_add_text(s->out,
                       ",\n\"importedFrom\":\"Fathom " FATHOM_VERSION "\",\"symbolicated\":true,"
                       "\"symbolicationNotSupported\":true,\"usesOnlyOneStackType\":true,"
                       "\"sourceCodeIsNotOnSearchfox\":true,\"keepProfileThreadOrder\":true,"
                       "\n\"markerSchema\":[],\"extensions\":{\"baseURL\":[],\"id\":[],"
                       "\"name\":[],\"length\":0},\n");
    put_categories(s->out);
    fm_buffer_addf(s->out,
                   "\"sampleUnits\":{\"time\":\"%s\",\"eventDelay\":\"ms\","
                   "\"threadCPUDelta\":\"ns\"}},\n\"libs\":[],\"pages\":[],\n",
                   s->f.own.unit && strcmp(s->f.own.unit, "bytes") == 0 ? "bytes" : "ms");
}

static void put_weight(const struct firefox_saver *s, int64_t number)
{
    if (s->f.own.unit)
        fm_buffer_addf(s->out, "%lld", (long long)number);
    else
        fm_json_put_ns(s->out, number, 6);
}

static void put_samples(struct firefox_saver *s, uint32_t thread)
{
    size_t begin = s->begin[thread], end = s->begin[thread + 1];
    const char *type = !s->f.own.unit                        ? "tracing-ms"
                       : strcmp(s->f.own.unit, "bytes") == 0 ? "bytes"
                                                             : "samples";
    fm_buffer_add_text(s->out, "\"samples\":{\"stack\":[");
    for (size_t i = begin; i < end; i++) {
        uint32_t stack = s->samples.list.data[i].stack;
        if (stack == FM_NONE)
            fm_buffer_add_text(s->out, i == begin ? "null" : ",null");
        else
            fm_buffer_addf(s->out, i == begin ? "%u" : ",%u", stack);
    }
    fm_buffer_add_text(s->out, "],\n\"time\":[");
    for (size_t i = begin; i < end; i++) {
        if (i > begin)
            fm_buffer_add_char(s->out, ',');
        put_weight(s, s->samples.list.data[i].at_ns);
    }
    fm_buffer_add_text(s->out, "],\n\"weight\":[");
    for (size_t i = begin; i < end; i++) {
        if (i > begin)
            fm_buffer_add_char(s->out, ',');
        put_weight(s, s->samples.list.data[i].weight);
    }
    fm_buffer_addf(s->out, "],\n\"weightType\":\"%s\",\"length\":%zu},\n", type, end - begin);
}

static void put_instant(struct firefox_saver *s, const char *key, uint64_t ns)
{
    fm_buffer_addf(s->out, ",\"%s\":", key);
    if (ns)
        fm_json_put_ns(s->out, (int64_t)(since_start(s, ns) & INT64_MAX), 6);
    else
        fm_buffer_add_text(s->out, "null");
}

/* Processes are known by their numbers, as text; a number that was used again gets a point and which. */
static void put_pid(struct firefox_saver *s, uint32_t process)
{
    const struct fm_profile *p = s->f.p;
    uint32_t again = 0;
    for (uint32_t i = 0; i < process; i++)
        again += p->processes.data[i].pid == p->processes.data[process].pid;
    fm_buffer_addf(s->out, "\"pid\":\"%u", p->processes.data[process].pid);
    if (again)
        fm_buffer_addf(s->out, ".%u", again);
    fm_buffer_add_char(s->out, '"');
}

static void put_thread(struct firefox_saver *s, uint32_t thread)
{
    const struct fm_profile *p = s->f.p;
    const struct fm_thread *t = &p->threads.data[thread];
    const struct fm_process *process = &p->processes.data[t->process];
    bool is_main = thread == 0 || p->threads.data[thread - 1].process != t->process;
    fm_autobuffer name = FM_BUFFER_INIT;
    if (fm_strings_len(p->strings, t->name))
        fm_buffer_add(&name, fm_profile_text(p, t->name), fm_strings_len(p->strings, t->name));
    else
        fm_buffer_addf(&name, "Thread %u", t->tid);
    fm_buffer_add_text(s->out, "{\"processType\":\"default\",\"name\":");
    fm_json_put_text(s->out, name.data, name.len);
    fm_buffer_addf(s->out, ",\"isMainThread\":%s,", is_main ? "true" : "false");
    put_pid(s, t->process);
    fm_buffer_addf(s->out, ",\"tid\":%u", t->tid);
    if (fm_strings_len(p->strings, process->command)) {
        fm_buffer_add_text(s->out, ",\"processName\":");
        fm_json_put_string(s->out, p, process->command);
    }
    put_instant(s, "processStartupTime", process->start_ns ? process->start_ns : s->start_ns + 1);
    put_instant(s, "processShutdownTime", process->end_ns);
    put_instant(s, "registerTime", t->start_ns ? t->start_ns : s->start_ns + 1);
    put_instant(s, "unregisterTime", t->end_ns);
    fm_buffer_add_text(s->out, ",\"pausedRanges\":[],\n");
    put_samples(s, thread);
    fm_buffer_add_text(s->out,
                       "\"markers\":{\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],"
                       "\"phase\":[],\"category\":[],\"length\":0}}");
}

static int put_all(struct firefox_saver *s)
{
    bool any = false;
    put_meta(s);
    fm_buffer_add_text(s->out, "\"threads\":[");
    for (uint32_t i = 0; i < s->f.p->threads.len; i++) {
        if (s->begin[i] == s->begin[i + 1])
            continue;
        fm_buffer_add_text(s->out, any ? ",\n" : "\n");
        any = true;
        put_thread(s, i);
    }
    fm_buffer_add_text(s->out, "],\n");
    fm_firefox_put_shared(&s->f, s->out);
    fm_buffer_add_text(s->out, "}\n");
    if (s->out->len > OUTPUT_MAX)
        return fm_error_set(s->err, FM_UNSUPPORTED,
                            "it would take %zu MB, and no browser opens more than 1024: choose a "
                            "part of it",
                            s->out->len >> 20);
    return 0;
}

static uint64_t earliest(const struct fm_profile *p)
{
    uint64_t ns = UINT64_MAX;
    for (size_t i = 0; i < p->processes.len; i++)
        if (p->processes.data[i].start_ns && p->processes.data[i].start_ns < ns)
            ns = p->processes.data[i].start_ns;
    for (size_t i = 0; i < p->threads.len; i++)
        if (p->threads.data[i].start_ns && p->threads.data[i].start_ns < ns)
            ns = p->threads.data[i].start_ns;
    return ns == UINT64_MAX ? 0 : ns;
}

static int save(const struct fm_profile *p, struct fm_buffer *out, struct fm_error *err)
{
    struct firefox_saver s = { .out = out, .start_ns = earliest(p), .err = err };
    fm_firefox_init(&s.f, p);
    int status = fm_own_init(&s.f.own, p, err);
    if (status == 0) {
        s.begin = fm_calloc(p->threads.len + 1, sizeof *s.begin);
        make_stacks(&s);
        status = add_tree(&s);
    }
    if (status == 0)
        status = put_all(&s);
    fm_vec_release(&s.samples.list);
    free(s.begin);
    fm_firefox_release(&s.f);
    return status;
}

static const char *const suffixes[] = { ".firefox.json", ".firefox", NULL };

const struct fm_format fm_format_firefox = {
    .name = "firefox",
    .title = "Firefox Profiler's JSON",
    .suffixes = suffixes,
    .save = save,
};
