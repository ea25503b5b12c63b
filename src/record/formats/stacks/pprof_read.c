/*
 * Reads pprof's format, compressed or not, of Fathom, Go, and everybody else who writes it.
 *
 * Of the values of a sample, the time is read as time: the default type if it is one, else "wall",
 * else the last that is one. The count is read as samples, except "calls". If there is no time, the
 * default value, or the last, is shown as if it was nanoseconds, and a note says what it is.
 *
 * A profile of memory, as Go writes them, has types of its own: what was allocated, and what was in use, at the end or,
 * as Fathom's may say, at the peak. Its lines are contexts.
 *
 * Labels of the names that writers use give process and thread. Inlined functions are frames. A
 * location without a function is its address.
 *
 * Everything is untrusted: what protobuf-c may allocate is bounded by the size of the file, every
 * index and id is checked, and so is how many frames the stacks unfold to.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "record/capture/budget.h"
#include "record/formats/profile.pb-c.h"
#include "record/formats/stacks/pprof.h"
#include "record/formats/stacks/stacks.h"

typedef Perftools__Profiles__Profile Profile;
typedef Perftools__Profiles__ValueType ValueType;
typedef Perftools__Profiles__Sample Sample;
typedef Perftools__Profiles__Label Label;
typedef Perftools__Profiles__Location Location;

struct pprof_frame {
    uint32_t function, line;
};

/* A location: its frames in the list, the innermost first. */
struct pprof_location {
    size_t first, count;
};

struct pprof_reader {
    struct fm_stacks s;
    const Profile *file;
    struct fm_map functions, places; /* by id: number */
    FM_VEC(uint32_t) function_list;  /* in `s` */
    FM_VEC(struct pprof_frame) frames;
    FM_VEC(struct pprof_location) place_list;
    int time, count, calls;      /* which value; -1: none */
    int64_t scale;               /* nanoseconds per unit of the time */
    bool heap;                   /* no time, but memory: */
    int memory[FM_METRIC_COUNT]; /* which value; -1: none */
    bool own;
    size_t frames_left; /* how many more the stacks may unfold to */
    struct fm_error *err;
};

/* ---- protobuf's memory ---- */

/* What a piece of memory takes beside its bytes. */
#define MALLOC_BYTES 16

/* A message in memory takes less than so many times its bytes. */
#define MESSAGE_GROWTH 32

/* A byte of a file holds less than so many frames, packed or not. */
#define FRAMES_PER_BYTE 64

static void *budget_alloc(void *data, size_t bytes)
{
    return fm_budget_take(data, 1, bytes + MALLOC_BYTES) ? malloc(bytes) : NULL;
}

static void budget_free(void *data, void *pointer)
{
    (void)data;
    free(pointer);
}

/* ---- texts ---- */

static bool has_text(const struct pprof_reader *r, int64_t index)
{
    return index >= 0 && (uint64_t)index < r->file->n_string_table;
}

static const char *text_at(const struct pprof_reader *r, int64_t index)
{
    return has_text(r, index) ? r->file->string_table[index] : "";
}

static uint32_t string_at(struct pprof_reader *r, int64_t index)
{
    return fm_profile_string(r->s.p, text_at(r, index));
}

static int no_text(struct pprof_reader *r)
{
    return fm_error_set(r->err, FM_DAMAGED, "a text is not in the list of texts");
}

/* ---- functions and locations ---- */

static int read_functions(struct pprof_reader *r)
{
    for (size_t i = 0; i < r->file->n_function; i++) {
        const Perftools__Profiles__Function *f = r->file->function[i];
        bool is_new;
        if (!has_text(r, f->name) || !has_text(r, f->system_name) || !has_text(r, f->filename))
            return no_text(r);
        fm_map_at(&r->functions, f->id, (uint32_t)i, &is_new);
        if (!f->id || !is_new)
            return fm_error_set(r->err, FM_DAMAGED, "two functions have the id %" PRIu64, f->id);
        bool named = *text_at(r, f->name);
        uint32_t name = string_at(r, named ? f->name : f->system_name);
        uint32_t file = string_at(r, f->filename);
        uint32_t line =
            f->start_line > 0 && f->start_line < INT32_MAX ? (uint32_t)f->start_line : 0;
        uint32_t made = r->own ? fm_stacks_function_new(&r->s, name, file, line)
                               : fm_stacks_function(&r->s, name, file, line);
        fm_vec_push(&r->function_list, made);
    }
    return 0;
}

/* A place in a program whose functions the file does not know. */
static void add_address(struct pprof_reader *r, const Location *location)
{
    char name[32];
    uint32_t file = 0;
    snprintf(name, sizeof name, "0x%" PRIx64, location->address);
    for (size_t i = 0; i < r->file->n_mapping && !file; i++)
        if (r->file->mapping[i]->id == location->mapping_id && location->mapping_id)
            file = string_at(r, r->file->mapping[i]->filename);
    uint32_t string = fm_profile_string(r->s.p, name);
    fm_vec_push(&r->frames,
                ((struct pprof_frame){ fm_stacks_function(&r->s, string, file, 0), 0 }));
}

static int add_lines(struct pprof_reader *r, const Location *location)
{
    for (size_t i = 0; i < location->n_line; i++) {
        const Perftools__Profiles__Line *line = location->line[i];
        const uint32_t *number = fm_map_find(&r->functions, line->function_id);
        struct pprof_frame frame = { 0, 0 };
        if (!number)
            return fm_error_set(r->err, FM_DAMAGED,
                                "location %" PRIu64 " is in a function that is not there",
                                location->id);
        frame.function = r->function_list.data[*number];
        frame.line = line->line > 0 && line->line < INT32_MAX ? (uint32_t)line->line : 0;
        fm_vec_push(&r->frames, frame);
        /* Without a first line, the lowest one seen stands for it. */
        struct fm_stacks_function *f = &r->s.functions.data[frame.function];
        if (!r->own && r->file->function[*number]->start_line <= 0 && frame.line &&
            (!f->line || frame.line < f->line))
            f->line = frame.line;
    }
    return 0;
}

static int read_locations(struct pprof_reader *r)
{
    for (size_t i = 0; i < r->file->n_location; i++) {
        const Location *location = r->file->location[i];
        struct pprof_location place = { .first = r->frames.len };
        bool is_new;
        fm_map_at(&r->places, location->id, (uint32_t)i, &is_new);
        if (!location->id || !is_new)
            return fm_error_set(r->err, FM_DAMAGED, "two locations have the id %" PRIu64,
                                location->id);
        if (!location->n_line)
            add_address(r, location);
        else if (add_lines(r, location) < 0)
            return r->err->status;
        place.count = r->frames.len - place.first;
        fm_vec_push(&r->place_list, place);
    }
    return 0;
}

/* ---- types of values ---- */

static int64_t unit_ns(const char *unit)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {
        { "nanoseconds", 1 },        { "nanosecond", 1 },        { "ns", 1 },
        { "microseconds", 1000 },    { "microsecond", 1000 },    { "us", 1000 },
        { "milliseconds", 1000000 }, { "millisecond", 1000000 }, { "ms", 1000000 },
        { "seconds", 1000000000 },   { "second", 1000000000 },   { "s", 1000000000 },
    };
    for (size_t i = 0; i < FM_COUNT(units); i++)
        if (strcmp(units[i].name, unit) == 0)
            return units[i].ns;
    return 0;
}

static int rank_of_time(const struct pprof_reader *r, const ValueType *type)
{
    if (!unit_ns(text_at(r, type->unit)))
        return 0;
    if (type->type == r->file->default_sample_type && type->type)
        return 3;
    return strcmp(text_at(r, type->type), "wall") == 0 ? 2 : 1;
}

static void choose_other(struct pprof_reader *r)
{
    int last = (int)r->file->n_sample_type - 1;
    r->time = last;
    for (int i = 0; i <= last; i++)
        if (r->file->sample_type[i]->type == r->file->default_sample_type &&
            r->file->default_sample_type)
            r->time = i;
    const ValueType *type = r->file->sample_type[r->time];
    const char *unit = text_at(r, type->unit);
    if (!*unit || strcmp(unit, "count") == 0)
        unit = text_at(r, type->type);
    fm_stacks_unit(&r->s, unit, strlen(unit));
    r->scale = 1;
    /* Objects, contentions and the like are no samples of whatever this is. */
    if (r->count >= 0 && strcmp(text_at(r, r->file->sample_type[r->count]->type), "samples") != 0)
        r->count = -1;
}

/* "inuse_space" in bytes: memory in use now, or at the peak. */
static bool choose_memory(struct pprof_reader *r, int value)
{
    static const struct {
        const char *type, *unit;
        enum fm_metric metric, at_peak;
    } types[] = {
        { FM_PPROF_ALLOC_BLOCKS, "count", FM_METRIC_BLOCKS, FM_METRIC_BLOCKS },
        { FM_PPROF_ALLOC_BYTES, "bytes", FM_METRIC_ALLOCATED, FM_METRIC_ALLOCATED },
        { FM_PPROF_INUSE_BLOCKS, "count", FM_METRIC_LEAKED_BLOCKS, FM_METRIC_PEAK_BLOCKS },
        { FM_PPROF_INUSE_BYTES, "bytes", FM_METRIC_LEAKED, FM_METRIC_PEAK },
    };
    const ValueType *type = r->file->sample_type[value];
    const Profile *file = r->file;
    const char *last = file->n_comment ? text_at(r, file->comment[file->n_comment - 1]) : "";
    bool peak = r->own && strcmp(last, FM_PPROF_AT_PEAK) == 0;
    for (size_t i = 0; i < FM_COUNT(types); i++)
        if (strcmp(text_at(r, type->type), types[i].type) == 0 &&
            strcmp(text_at(r, type->unit), types[i].unit) == 0) {
            r->memory[peak ? types[i].at_peak : types[i].metric] = value;
            return true;
        }
    return false;
}

static int choose_types(struct pprof_reader *r)
{
    int best = 0;
    r->time = r->count = r->calls = -1;
    for (int m = 0; m < FM_METRIC_COUNT; m++)
        r->memory[m] = -1;
    if (!r->file->n_sample_type)
        return fm_error_set(r->err, FM_DAMAGED, "it does not say what its values are");
    if (r->file->n_sample_type > 1000)
        return fm_error_set(r->err, FM_DAMAGED, "it has more kinds of values than there can be");
    for (int i = 0; i < (int)r->file->n_sample_type; i++) {
        const ValueType *type = r->file->sample_type[i];
        if (!has_text(r, type->type) || !has_text(r, type->unit))
            return no_text(r);
        if (choose_memory(r, i)) {
            r->heap = true;
            continue;
        }
        bool is_count = strcmp(text_at(r, type->unit), "count") == 0;
        int rank = rank_of_time(r, type);
        if (rank && rank >= best) {
            best = rank;
            r->time = i;
            r->scale = unit_ns(text_at(r, type->unit));
        }
        if (is_count && strcmp(text_at(r, type->type), "calls") == 0)
            r->calls = i;
        else if (is_count && (r->count < 0 || strcmp(text_at(r, type->type), "samples") == 0))
            r->count = i;
    }
    r->heap = r->heap && r->time < 0;
    r->s.lined = r->heap;
    if (r->heap)
        r->count = r->calls = -1;
    else if (r->time < 0)
        choose_other(r);
    return 0;
}

/* ---- samples ---- */

static bool label_is(const struct pprof_reader *r, const Label *label, const char *const *names)
{
    const char *key = text_at(r, label->key);
    for (; *names; names++)
        if (strcmp(*names, key) == 0)
            return true;
    return false;
}

static uint32_t label_number(const struct pprof_reader *r, const Label *label)
{
    int64_t number = label->num;
    if (label->str) {
        const char *text = text_at(r, label->str);
        number = *text && strlen(text) < 10 && strspn(text, "0123456789") == strlen(text)
                     ? strtol(text, NULL, 10)
                     : 0;
    }
    return number > 0 && number < UINT32_MAX ? (uint32_t)number : 0;
}

/* Who was sampled; also the state, if Fathom wrote one: FM_STATE_COUNT if there is none. */
static int read_labels(struct pprof_reader *r, const Sample *sample, uint32_t *thread, int *state)
{
    static const char *const pids[] = { FM_PPROF_PID, "process_id", "process id", NULL };
    static const char *const tids[] = { FM_PPROF_TID, "thread_id", "thread id", NULL };
    static const char *const names[] = { FM_PPROF_THREAD, "thread_name", "thread name", NULL };
    static const char *const commands[] = { FM_PPROF_COMMAND, "process_name", NULL };
    uint32_t pid = 0, tid = 0, name = 0, command = 0;
    *state = FM_STATE_COUNT;
    for (size_t i = 0; i < sample->n_label; i++) {
        const Label *label = sample->label[i];
        if (!has_text(r, label->key) || !has_text(r, label->str))
            return no_text(r);
        if (label_is(r, label, pids))
            pid = label_number(r, label);
        else if (label_is(r, label, tids))
            tid = label_number(r, label);
        else if (label_is(r, label, names))
            name = string_at(r, label->str);
        else if (label_is(r, label, commands))
            command = string_at(r, label->str);
        else if (r->own && strcmp(text_at(r, label->key), FM_PPROF_STATE) == 0)
            for (*state = 0; *state < FM_STATE_COUNT; ++*state)
                if (strcmp(fm_state_name((enum fm_state) * state), text_at(r, label->str)) == 0)
                    break;
    }
    uint32_t process = fm_stacks_process(&r->s, pid);
    if (command)
        r->s.p->processes.data[process].command = command;
    *thread = fm_stacks_thread(&r->s, process, tid, name);
    return 0;
}

static int64_t value_of(const Sample *sample, int which)
{
    return which < 0 ? 0 : sample->value[which];
}

static int push_stack(struct pprof_reader *r, const Sample *sample)
{
    for (size_t i = sample->n_location_id; i-- > 0;) {
        const uint32_t *number = fm_map_find(&r->places, sample->location_id[i]);
        if (!number)
            return fm_error_set(r->err, FM_DAMAGED, "it has a location that is not there");
        struct pprof_location place = r->place_list.data[*number];
        if (place.count > r->frames_left)
            return fm_error_set(r->err, FM_DAMAGED,
                                "its stacks unfold to more frames than an honest file has");
        r->frames_left -= place.count;
        for (size_t k = place.count; k-- > 0;) {
            const struct pprof_frame *frame = &r->frames.data[place.first + k];
            fm_stacks_push(&r->s, frame->function, frame->line);
        }
    }
    return 0;
}

static int read_sample(struct pprof_reader *r, const Sample *sample)
{
    uint32_t thread = 0;
    int state = FM_STATE_COUNT;
    int64_t ns;
    if (sample->n_value != r->file->n_sample_type)
        return fm_error_set(r->err, FM_DAMAGED, "it has not one value for each type");
    if (read_labels(r, sample, &thread, &state) < 0)
        return r->err->status;
    if (__builtin_mul_overflow(value_of(sample, r->time), r->scale, &ns))
        ns = value_of(sample, r->time) < 0 ? -INT64_MAX : INT64_MAX;
    fm_stacks_begin(&r->s, thread, value_of(sample, r->count), ns);
    if (push_stack(r, sample) < 0)
        return r->err->status;
    uint32_t node = fm_stacks_end(&r->s);
    for (int m = 0; r->heap && m < FM_METRIC_COUNT; m++)
        if (value_of(sample, r->memory[m]) > 0)
            fm_profile_add(r->s.p, (enum fm_metric)m, node, value_of(sample, r->memory[m]));
    fm_profile_add(r->s.p, FM_METRIC_CALLS, node, value_of(sample, r->calls));
    if (state < FM_STATE_COUNT)
        fm_profile_add(r->s.p, fm_metric_of_state((enum fm_state)state), node, ns);
    return 0;
}

/* ---- all of it ---- */

static void settle_processes(struct pprof_reader *r)
{
    const Profile *file = r->file;
    struct fm_profile *p = r->s.p;
    bool samples = p->columns[FM_METRIC_SAMPLES].data, calls = p->columns[FM_METRIC_CALLS].data;
    bool cpu = r->time >= 0 && strcmp(text_at(r, file->sample_type[r->time]->type), "cpu") == 0;
    int64_t period_ns = 0;
    if (file->period_type && file->period > 0 &&
        __builtin_mul_overflow(file->period, unit_ns(text_at(r, file->period_type->unit)),
                               &period_ns))
        period_ns = 0;
    for (size_t i = 0; i < p->processes.len; i++) {
        struct fm_process *process = &p->processes.data[i];
        process->sampled = samples;
        process->calls = calls;
        process->sample_mode = cpu ? FM_SAMPLE_CPU : FM_SAMPLE_WALL;
        process->sample_interval_ns = samples ? (uint64_t)period_ns : 0;
        process->start_real_ns = file->time_nanos > 0 ? (uint64_t)file->time_nanos : 0;
        if (file->duration_nanos > 0) { /* of the machine's clock, only the difference is known */
            process->start_ns = 1;
            process->end_ns = (uint64_t)file->duration_nanos + 1;
        }
        if (file->n_mapping)
            process->exe = string_at(r, file->mapping[0]->filename);
    }
}

static int read_all(struct pprof_reader *r)
{
    const Profile *file = r->file;
    if (!file->n_string_table || *file->string_table[0])
        return fm_error_set(r->err, FM_DAMAGED, "its list of texts does not begin with none");
    for (size_t i = 0; i < file->n_comment; i++)
        if (!has_text(r, file->comment[i]))
            return no_text(r);
    const char *mark = file->n_comment ? text_at(r, file->comment[0]) : "";
    r->own = r->s.first_lines = strncmp(mark, FM_PPROF_MARK, strlen(FM_PPROF_MARK)) == 0;
    if (r->own && file->n_comment > 1)
        fm_profile_fact(r->s.p, "command", text_at(r, file->comment[1]));
    if (choose_types(r) < 0 || read_functions(r) < 0 || read_locations(r) < 0)
        return r->err->status;
    for (size_t i = 0; i < file->n_sample; i++)
        if (read_sample(r, file->sample[i]) < 0)
            return fm_error_context(r->err, "sample %zu", i);
    fm_stacks_settle(&r->s);
    settle_processes(r);
    if (r->heap)
        fm_stacks_of_memory(&r->s);
    return 0;
}

/* ---- recognising ---- */

static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* The fields of a Profile, one after the other, as far as can be seen. */
static bool looks_like_profile(const uint8_t *at, const uint8_t *end, bool cut)
{
    uint64_t tag, value;
    unsigned fields = 0;
    for (; at < end && fields < 1000; fields++) {
        if (!take_varint(&at, end, &tag))
            return cut && fields;
        unsigned field = (unsigned)(tag >> 3), wire = tag & 7;
        bool list = (field >= 1 && field <= 6) || field == 11 || (field == 13 && wire == 2);
        if (tag > 127 || !field || field > 15 || wire != (list ? 2 : 0))
            return false;
        if (!take_varint(&at, end, &value))
            return cut && fields;
        if (list && value > (size_t)(end - at))
            return cut;
        at += list ? value : 0;
    }
    return fields > 0;
}

bool fm_pprof_recognise(const void *bytes, size_t len)
{
    fm_autobuffer begin = FM_BUFFER_INIT;
    struct fm_error ignored = FM_ERROR_INIT;
    if (!fm_gzip_recognise(bytes, len))
        return len && looks_like_profile(bytes, (const uint8_t *)bytes + len, false);
    if (fm_gzip_unpack(bytes, len, 4096, &begin, &ignored) < 0 || !begin.len)
        return false;
    /* Its end may be missing, which the reader will say. */
    return looks_like_profile((uint8_t *)begin.data, (uint8_t *)begin.data + begin.len, true);
}

struct fm_profile *fm_pprof_load(const void *bytes, size_t len, const char *name,
                                 struct fm_error *err)
{
    fm_autobuffer raw = FM_BUFFER_INIT;
    struct pprof_reader r = { .err = err,
                              .frames_left = ((size_t)1 << 20) + len * FRAMES_PER_BYTE };
    struct fm_budget budget = fm_budget_for(len);
    int status = 0;
    if (fm_gzip_recognise(bytes, len)) {
        status = fm_gzip_unpack(bytes, len, 0, &raw, err);
        bytes = raw.data;
        len = raw.len;
    }
    fm_budget_limit(&budget, ((uint64_t)16 << 20) + (uint64_t)len * MESSAGE_GROWTH);
    ProtobufCAllocator memory = { budget_alloc, budget_free, &budget };
    Profile *file = NULL;
    fm_stacks_init(&r.s);
    if (status == 0) {
        r.file = file = perftools__profiles__profile__unpack(&memory, len, bytes);
        status = file           ? read_all(&r)
                 : budget.spent ? fm_budget_fail(&budget, err)
                                : fm_error_set(err, FM_DAMAGED, "it is no pprof profile");
    }
    if (file)
        perftools__profiles__profile__free_unpacked(file, &memory);
    fm_map_release(&r.functions);
    fm_map_release(&r.places);
    fm_vec_release(&r.function_list);
    fm_vec_release(&r.frames);
    fm_vec_release(&r.place_list);
    fm_stacks_release(&r.s);
    if (status == 0)
        return r.s.p;
    fm_error_context(err, "reading %s", name);
    fm_profile_free(r.s.p);
    return NULL;
}
