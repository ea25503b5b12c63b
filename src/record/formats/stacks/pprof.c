/*
 * Writes pprof's format, gzip-compressed, for Google's pprof and whatever reads the same;
 * pprof_read.c reads it.
 *
 * A sample is a stack with what is its leaf's own: calls, samples, wall time and, of sampled
 * recordings, the part of it on a processor (cpu: running Python or C). Labels say which process
 * and thread it was and, if the time is known by states, which state: such a stack is one sample
 * for each state, its count of samples divided as its time is. A location is a function, its line
 * the first one.
 *
 * Of memory (a recording weighed by it, see model/derive/weigh.h) there are the four values of Go's heap profiles:
 * what was allocated, and what of it was in use at the peak, or at the end; a location is a line. Missing are min, max and suspended times, lines and source texts.
 *
 * In protobuf, messages one behind the other are one message with all their lists: each part is
 * packed by itself, so only the result is in memory. The texts come last, when all are known.
 */
#include "record/formats/stacks/pprof.h"

#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "record/formats/format.h"
#include "record/formats/profile.pb-c.h"
#include "record/formats/stacks/stacks.h"

#define OUTPUT_MAX ((size_t)1 << 30)
#define TYPES_MAX  (4 + FM_METRIC_COUNT)
#define LABELS_MAX 5

typedef Perftools__Profiles__Profile Profile;
typedef Perftools__Profiles__ValueType ValueType;
typedef Perftools__Profiles__Sample Sample;
typedef Perftools__Profiles__Label Label;
typedef Perftools__Profiles__Mapping Mapping;
typedef Perftools__Profiles__Location Location;
typedef Perftools__Profiles__Line Line;
typedef Perftools__Profiles__Function Function;

struct pprof_saver {
    const struct fm_profile *p;
    struct fm_own own;
    struct fm_buffer raw;
    struct fm_strings *texts;      /* the string table; equal texts once, "" first */
    int calls, samples, wall, cpu; /* which value of a sample it is, or -1 */
    int column[FM_METRIC_COUNT];   /* the same */
    bool heap;                     /* the values are those of heap[] … */
    bool at_end, together; /* … in use at the end, not at the peak; or when all had most */
    size_t types;
    bool *used;              /* by function */
    struct fm_map place_of;  /* (function, line): its location */
    FM_VEC(uint64_t) places; /* these, in order */
    uint32_t *path;
    FM_VEC(uint64_t) locations;
    struct fm_error *err;
};

/* The index of a text; what is not UTF-8 becomes U+FFFD. */
static int64_t text_index(struct pprof_saver *s, const char *text)
{
    fm_autobuffer clean = FM_BUFFER_INIT;
    fm_utf8_add_valid(&clean, text, strlen(text));
    return fm_strings_add(s->texts, fm_buffer_text(&clean), clean.len);
}

static int64_t string_index(struct pprof_saver *s, uint32_t string)
{
    return text_index(s, fm_profile_text(s->p, string));
}

static void put(struct pprof_saver *s, const Profile *part)
{
    size_t len = perftools__profiles__profile__get_packed_size(part);
    fm_buffer_reserve(&s->raw, len);
    perftools__profiles__profile__pack(part, (uint8_t *)s->raw.data + s->raw.len);
    s->raw.len += len;
    s->raw.data[s->raw.len] = '\0';
}

/* ---- the head ---- */

static int put_type(struct pprof_saver *s, const char *type, const char *unit)
{
    Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    ValueType value = PERFTOOLS__PROFILES__VALUE_TYPE__INIT, *values[] = { &value };
    value.type = text_index(s, type);
    value.unit = text_index(s, unit);
    part.sample_type = values;
    part.n_sample_type = 1;
    put(s, &part);
    return (int)s->types++;
}

static const char *pprof_unit(enum fm_metric metric)
{
    switch (fm_metric_info(metric)->unit) {
    case FM_UNIT_NS:
        return "nanoseconds";
    case FM_UNIT_BYTES:
        return "bytes";
    case FM_UNIT_SHARE:
        return "ppm";
    default:
        return "count";
    }
}

/* What of the model a value of memory is, and is called. */
static enum fm_metric heap_metric(const struct pprof_saver *s, int value)
{
    static const enum fm_metric at_peak[] = { FM_METRIC_BLOCKS, FM_METRIC_ALLOCATED,
                                              FM_METRIC_PEAK_BLOCKS, FM_METRIC_PEAK };
    static const enum fm_metric at_end[] = { FM_METRIC_BLOCKS, FM_METRIC_ALLOCATED,
                                             FM_METRIC_LEAKED_BLOCKS, FM_METRIC_LEAKED };
    static const enum fm_metric together[] = { FM_METRIC_BLOCKS, FM_METRIC_ALLOCATED,
                                               FM_METRIC_TOGETHER_BLOCKS, FM_METRIC_TOGETHER };
    return s->at_end ? at_end[value] : s->together ? together[value] : at_peak[value];
}

#define HEAP_TYPES 4

static void put_heap_types(struct pprof_saver *s)
{
    put_type(s, FM_PPROF_ALLOC_BLOCKS, "count");
    put_type(s, FM_PPROF_ALLOC_BYTES, "bytes");
    put_type(s, FM_PPROF_INUSE_BLOCKS, "count");
    put_type(s, FM_PPROF_INUSE_BYTES, "bytes");
}

static void put_types(struct pprof_saver *s)
{
    const char *unit = s->own.unit;
    bool bytes = unit && strcmp(unit, "bytes") == 0;
    if (s->own.calls)
        s->calls = put_type(s, "calls", "count");
    if (s->own.samples)
        s->samples = put_type(s, "samples", "count");
    if (!unit)
        s->wall = put_type(s, "wall", "nanoseconds");
    else if (s->samples < 0 || strcmp(unit, "samples") != 0)
        s->wall = put_type(s, bytes ? "space" : unit, bytes ? "bytes" : "count");
    if (!unit && s->own.states)
        s->cpu = put_type(s, "cpu", "nanoseconds");
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        s->column[m] = s->own.column[m] ? put_type(s, fm_metric_name((enum fm_metric)m),
                                                   pprof_unit((enum fm_metric)m))
                                        : -1;
}

/* What is shown first: what the recording was weighed by. */
static int64_t heap_default(struct pprof_saver *s)
{
    enum fm_metric metric = fm_metric_named(fm_profile_fact_get(s->p, "metric"));
    bool allocated = metric == FM_METRIC_ALLOCATED || metric == FM_METRIC_BLOCKS;
    bool bytes = fm_metric_info(metric)->unit == FM_UNIT_BYTES;
    return text_index(s, allocated ? bytes ? FM_PPROF_ALLOC_BYTES : FM_PPROF_ALLOC_BLOCKS
                         : bytes   ? FM_PPROF_INUSE_BYTES
                                   : FM_PPROF_INUSE_BLOCKS);
}

static void put_head(struct pprof_saver *s)
{
    const struct fm_profile *p = s->p;
    const char *command = fm_profile_fact_get(p, "command");
    uint64_t real_ns = 0, start_ns = 0, end_ns = 0, interval_ns = 0;
    Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    ValueType period = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
    int64_t comments[3] = { text_index(s, FM_PPROF_MARK FATHOM_VERSION) };
    for (size_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *process = &p->processes.data[i];
        if (process->start_real_ns && (!real_ns || process->start_real_ns < real_ns))
            real_ns = process->start_real_ns;
        if (process->start_ns && (!start_ns || process->start_ns < start_ns))
            start_ns = process->start_ns;
        end_ns = process->end_ns > end_ns ? process->end_ns : end_ns;
        interval_ns = interval_ns ? interval_ns : process->sample_interval_ns;
    }
    part.time_nanos = (int64_t)real_ns;
    part.duration_nanos = end_ns > start_ns ? (int64_t)(end_ns - start_ns) : 0;
    part.default_sample_type = s->heap                        ? heap_default(s)
                               : s->wall >= 0 && !s->own.unit ? text_index(s, "wall")
                                                              : 0;
    if (s->heap || (interval_ns && !s->own.unit)) {
        period.type = text_index(s, s->heap ? "space" : "wall");
        period.unit = text_index(s, s->heap ? "bytes" : "nanoseconds");
        part.period_type = &period;
        part.period = s->heap ? 1 : (int64_t)interval_ns; /* every byte was counted */
    }
    part.n_comment = 1;
    if (command)
        comments[part.n_comment++] = text_index(s, command);
    if (s->heap)
        comments[part.n_comment++] = text_index(s, s->at_end ? FM_PPROF_AT_END : FM_PPROF_AT_PEAK);
    part.comment = comments;
    put(s, &part);
}

/* ---- samples ---- */

static void add_label(struct pprof_saver *s, Label *labels, Sample *sample, const char *key,
                      int64_t str, int64_t num)
{
    Label *label = &labels[sample->n_label];
    if (!str && !num)
        return;
    *label = (Label)PERFTOOLS__PROFILES__LABEL__INIT;
    label->key = text_index(s, key);
    label->str = str;
    label->num = num;
    sample->label[sample->n_label++] = label;
}

struct numbers {
    int64_t calls, samples, wall_ns, cpu_ns;
    const char *state; /* NULL: several, or unknown */
    bool first;        /* sample of the node: has what no state tells apart */
};

static void put_sample(struct pprof_saver *s, uint32_t node, const struct numbers *n)
{
    uint32_t thread = s->p->nodes.data[node].thread;
    const struct fm_thread *t = &s->p->threads.data[thread];
    const struct fm_process *process = &s->p->processes.data[t->process];
    Label labels[LABELS_MAX], *list[LABELS_MAX];
    Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    Sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT, *samples[] = { &sample };
    int64_t values[TYPES_MAX];
    if (s->calls >= 0)
        values[s->calls] = n->calls;
    if (s->samples >= 0)
        values[s->samples] = n->samples;
    if (s->wall >= 0)
        values[s->wall] = n->wall_ns;
    if (s->cpu >= 0)
        values[s->cpu] = n->cpu_ns;
    for (int i = 0; s->heap && i < HEAP_TYPES; i++)
        values[i] = fm_profile_value(s->p, heap_metric(s, i), node);
    for (int m = 0; !s->heap && m < FM_METRIC_COUNT; m++)
        if (s->column[m] >= 0)
            values[s->column[m]] = n->first ? s->own.column[m][node] : 0;
    sample.value = values;
    sample.n_value = s->types;
    sample.location_id = s->locations.data;
    sample.n_location_id = s->locations.len;
    sample.label = list;
    add_label(s, labels, &sample, FM_PPROF_PID, 0, process->pid);
    if (s->own.processes > 1)
        add_label(s, labels, &sample, FM_PPROF_COMMAND, string_index(s, process->command), 0);
    add_label(s, labels, &sample, FM_PPROF_TID, 0, t->tid);
    add_label(s, labels, &sample, FM_PPROF_THREAD, string_index(s, t->name), 0);
    if (n->state)
        add_label(s, labels, &sample, FM_PPROF_STATE, text_index(s, n->state), 0);
    part.sample = samples;
    part.n_sample = 1;
    put(s, &part);
}

/* The share of `count` that the time up to `part` of `whole` has, rounded. */
static int64_t share(int64_t count, int64_t part, int64_t whole)
{
    return (int64_t)(((__int128)count * part * 2 + whole) / ((__int128)whole * 2));
}

/* One sample, or one for each state if all of the time is known by states. */
static void put_node(struct pprof_saver *s, uint32_t node)
{
    const struct fm_profile *p = s->p;
    bool first = true;
    int64_t wall = s->own.ns[node], known = 0, running = 0, passed = 0, given = 0;
    int64_t samples = fm_profile_value(p, FM_METRIC_SAMPLES, node);
    int64_t calls = fm_sum(fm_profile_value(p, FM_METRIC_CALLS, node),
                           fm_profile_value(p, FM_METRIC_RESUMES, node));
    for (int i = 0; i < FM_STATE_COUNT; i++) {
        int64_t ns = fm_profile_value(p, fm_metric_of_state((enum fm_state)i), node);
        known = fm_sum(known, ns > 0 ? ns : 0);
        if (fm_state_is_running((enum fm_state)i))
            running = fm_sum(running, ns > 0 ? ns : 0);
    }
    if (known != wall || !known || s->own.unit) {
        put_sample(s, node, &(struct numbers){ calls, samples, wall, running, NULL, true });
        return;
    }
    for (int i = 0; i < FM_STATE_COUNT; i++) {
        int64_t ns = fm_profile_value(p, fm_metric_of_state((enum fm_state)i), node);
        if (ns <= 0)
            continue;
        passed += ns;
        int64_t until = share(samples, passed, known);
        bool runs = fm_state_is_running((enum fm_state)i);
        put_sample(s, node,
                   &(struct numbers){ calls, until - given, ns, runs ? ns : 0,
                                      fm_state_name((enum fm_state)i), first });
        given = until;
        calls = 0;
        first = false;
    }
}

static bool has_anything(const struct pprof_saver *s, uint32_t node)
{
    for (int i = 0; s->heap && i < HEAP_TYPES; i++)
        if (fm_profile_value(s->p, heap_metric(s, i), node) > 0)
            return true;
    return !s->heap && fm_own_has(&s->own, s->p, node);
}

/* The location of a node: its function, or one line of it. */
static uint64_t place_of(struct pprof_saver *s, uint32_t node)
{
    const struct fm_node *n = &s->p->nodes.data[node];
    uint64_t key = fm_map_pair(n->func, n->line);
    bool is_new;
    if (!s->heap)
        key = fm_map_pair(n->func, 0);
    uint32_t place = *fm_map_at(&s->place_of, key, (uint32_t)s->places.len, &is_new);
    s->used[n->func] = true;
    if (is_new)
        fm_vec_push(&s->places, key);
    return (uint64_t)place + 1;
}

static int put_samples(struct pprof_saver *s)
{
    const struct fm_profile *p = s->p;
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        if (!has_anything(s, i))
            continue;
        s->locations.len = 0;
        for (size_t n = fm_own_path(p, i, s->path); n-- > 0;) /* the leaf first */
            fm_vec_push(&s->locations, place_of(s, s->path[n]));
        if (s->heap)
            put_sample(s, i, &(struct numbers){ .first = true });
        else
            put_node(s, i);
        if (s->raw.len > OUTPUT_MAX)
            return fm_error_set(s->err, FM_UNSUPPORTED,
                                "the stacks are so deep that they would take more than 1 GB");
    }
    return 0;
}

/* ---- functions and texts ---- */

static void put_place(struct pprof_saver *s, size_t place, bool mapped)
{
    uint32_t func = (uint32_t)(s->places.data[place] >> 32);
    uint32_t number = (uint32_t)s->places.data[place];
    Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    Location location = PERFTOOLS__PROFILES__LOCATION__INIT, *locations[] = { &location };
    Line line = PERFTOOLS__PROFILES__LINE__INIT, *lines[] = { &line };
    line.function_id = (uint64_t)func + 1;
    line.line = number ? number : s->p->functions.data[func].line;
    location.id = place + 1;
    location.mapping_id = mapped;
    location.line = lines;
    location.n_line = 1;
    part.location = locations;
    part.n_location = 1;
    put(s, &part);
}

static void put_function(struct pprof_saver *s, uint32_t func)
{
    const struct fm_function *f = &s->p->functions.data[func];
    Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    Function function = PERFTOOLS__PROFILES__FUNCTION__INIT, *functions[] = { &function };
    function.id = (uint64_t)func + 1;
    /* pprof takes a name that equals the system's for one of C++, and "<module>" for its template:
     * so there is none of the system. */
    function.name = string_index(s, f->qualname);
    function.filename = string_index(s, f->file);
    function.start_line = f->line;
    part.function = functions;
    part.n_function = 1;
    put(s, &part);
}

/* The Python, so that pprof has something to call the program. */
static bool put_mapping(struct pprof_saver *s)
{
    Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    Mapping mapping = PERFTOOLS__PROFILES__MAPPING__INIT, *mappings[] = { &mapping };
    for (size_t i = 0; i < s->p->processes.len && !mapping.filename; i++)
        mapping.filename = string_index(s, s->p->processes.data[i].exe);
    if (!mapping.filename)
        return false;
    mapping.id = 1;
    mapping.has_functions = mapping.has_filenames = mapping.has_line_numbers = 1;
    part.mapping = mappings;
    part.n_mapping = 1;
    put(s, &part);
    return true;
}

static void put_texts(struct pprof_saver *s)
{
    Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    uint32_t n = fm_strings_count(s->texts);
    fm_autofree char **list = fm_malloc((n + 1) * sizeof *list);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (char *)fm_strings_get(s->texts, i);
    part.string_table = list;
    part.n_string_table = n;
    put(s, &part);
}

/* Is it of memory, and of which moment? */
static void choose_heap(struct pprof_saver *s)
{
    const char *name = fm_profile_fact_get(s->p, "metric");
    enum fm_metric metric = name ? fm_metric_named(name) : FM_METRIC_COUNT;
    bool peak = s->p->columns[FM_METRIC_PEAK].data;
    s->heap = metric != FM_METRIC_COUNT && fm_metric_info(metric)->place == FM_PLACE_MEMORY;
    s->together = metric == FM_METRIC_TOGETHER || metric == FM_METRIC_TOGETHER_BLOCKS;
    s->at_end = metric == FM_METRIC_LEAKED || metric == FM_METRIC_LEAKED_BLOCKS || !peak;
}

static int put_all(struct pprof_saver *s)
{
    choose_heap(s);
    s->calls = s->samples = s->wall = s->cpu = -1;
    if (s->heap)
        put_heap_types(s);
    else
        put_types(s);
    put_head(s);
    if (put_samples(s) < 0)
        return s->err->status;
    bool mapped = put_mapping(s);
    for (uint32_t i = 0; i < s->p->functions.len; i++)
        if (s->used[i])
            put_function(s, i);
    for (size_t i = 0; i < s->places.len; i++)
        put_place(s, i, mapped);
    put_texts(s);
    return 0;
}

static int save(const struct fm_profile *p, struct fm_buffer *out, struct fm_error *err)
{
    struct pprof_saver s = { .p = p, .err = err, .texts = fm_strings_new() };
    int status = fm_own_init(&s.own, p, err);
    if (status == 0) {
        s.used = fm_calloc(p->functions.len + 1, sizeof *s.used);
        s.path = fm_malloc((p->nodes.len + 1) * sizeof *s.path);
        status = put_all(&s);
    }
    if (status == 0)
        status = fm_gzip_pack(s.raw.data, s.raw.len, out, err);
    fm_own_release(&s.own);
    fm_buffer_release(&s.raw);
    fm_strings_free(s.texts);
    fm_vec_release(&s.locations);
    fm_vec_release(&s.places);
    fm_map_release(&s.place_of);
    free(s.used);
    free(s.path);
    return status;
}

static const char *const suffixes[] = { ".pb.gz", ".pprof", ".pprof.gz", NULL };

const struct fm_format fm_format_pprof = {
    .name = "pprof",
    .title = "pprof's protobuf",
    .suffixes = suffixes,
    .recognise = fm_pprof_recognise,
    .load = fm_pprof_load,
    .save = save,
};
