/* Heap stores; see live_heap.h. */
#include "record/model/live/live_heap.h"

#include <string.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/positions.h"
#include "base/varint.h"
#include "record/capture/live.h"
#include "record/capture/live_heap.h"
#include "record/model/live/live_slices.h"

#define NODES_MAX   (1u << 23)
#define THREADS_MAX 65536u

/* A code object of the store: the function it is, and its table of positions. */
struct heap_code {
    uint32_t func; /* FM_NONE: not defined */
    bool own;      /* the agent's */
    uint32_t first_line;
    const uint8_t *table;
    uint32_t table_len;
};

struct heap_load {
    struct fm_profile *p;
    struct {
        const uint8_t *bytes;
        size_t len;
    } files[2];
    struct fm_heap_header h; /* copied: the process may still run */
    struct fm_heap_node *nodes;
    struct fm_heap_account *accounts;
    struct fm_heap_thread *threads;
    struct fm_heap_share *shares;
    struct fm_heap_error *errors;
    const struct fm_heap_run *run; /* NULL: the process was alone */
    uint8_t *defs;
    uint64_t counts[FM_HEAP_ARRAYS];
    FM_VEC(struct heap_code) codes;
    uint32_t process;
    uint32_t *thread_of; /* by thread of the store: of the profile */
    uint32_t *place;     /* by node of the store: of the profile; FM_NONE: not there */
    struct fm_map children;
    size_t first_count; /* of the profile's counts: this process's */
    uint64_t bad;
};

/* ---- arrays ---- */

static size_t record_bytes(int array)
{
    static const size_t bytes[FM_HEAP_ARRAYS] = {
        [FM_HEAP_NODES] = sizeof(struct fm_heap_node),
        [FM_HEAP_ACCOUNTS] = sizeof(struct fm_heap_account),
        [FM_HEAP_DEFS] = 1,
        [FM_HEAP_THREADS] = sizeof(struct fm_heap_thread),
        [FM_HEAP_SHARES] = sizeof(struct fm_heap_share),
        [FM_HEAP_ERRORS] = sizeof(struct fm_heap_error),
    };
    return bytes[array];
}

/* The bytes of a piece, if it is of the array and its file has all of it; else NULL. */
static const uint8_t *piece_bytes(const struct heap_load *l, const struct fm_heap_piece *piece,
                                  int array)
{
    if (piece->array != (uint32_t)array || piece->file >= FM_COUNT(l->files))
        return NULL;
    size_t len = l->files[piece->file].len;
    if (piece->at > len || piece->bytes > len - piece->at)
        return NULL;
    return l->files[piece->file].bytes + piece->at;
}

/* Put the pieces of an array together. What no piece has is zero: a child's accounts begin where its
 * parent's end. */
static void *array_new(struct heap_load *l, int array)
{
    uint64_t size = record_bytes(array), end = 0;
    uint32_t pieces = l->h.piece_count < FM_HEAP_PIECES ? l->h.piece_count : FM_HEAP_PIECES;
    for (uint32_t i = 0; i < pieces; i++) {
        const struct fm_heap_piece *piece = &l->h.pieces[i];
        if (piece_bytes(l, piece, array) && piece->offset <= (uint64_t)NODES_MAX * size &&
            piece->offset + piece->bytes > end)
            end = piece->offset + piece->bytes;
    }
    uint64_t count = end / size < l->h.used[array] ? end / size : l->h.used[array];
    char *all = fm_calloc(count + 1, size);
    for (uint32_t i = 0; i < pieces; i++) {
        const struct fm_heap_piece *piece = &l->h.pieces[i];
        const uint8_t *from = piece_bytes(l, piece, array);
        if (!from || piece->offset >= count * size)
            continue;
        uint64_t left = count * size - piece->offset;
        memcpy(all + piece->offset, from, piece->bytes < left ? piece->bytes : left);
    }
    l->counts[array] = count;
    return all;
}

/* ---- definitions ---- */

static uint32_t read_string(struct heap_load *l, struct fm_cursor *c)
{
    uint64_t len = fm_cursor_varint(c);
    const uint8_t *text = fm_cursor_bytes(c, len);
    return text ? fm_strings_add(l->p->strings, (const char *)text, len) : 0;
}

static uint8_t flags_of(uint64_t co_flags)
{
    return (uint8_t)((co_flags & 0x20 ? FM_FUNCTION_GENERATOR : 0) |
                     (co_flags & 0x80 ? FM_FUNCTION_COROUTINE : 0) |
                     (co_flags & 0x200 ? FM_FUNCTION_ASYNC_GENERATOR : 0));
}

static void read_code(struct heap_load *l, struct fm_cursor *c, bool is_type)
{
    uint64_t number = fm_cursor_varint(c), flags = fm_cursor_varint(c);
    uint64_t first_line = fm_cursor_varint(c);
    struct fm_function f = { .kind = FM_FUNCTION_PYTHON,
                             .flags = flags_of(flags),
                             .line = (uint32_t)first_line };
    f.name = read_string(l, c);
    f.qualname = read_string(l, c);
    f.file = read_string(l, c);
    uint64_t table_len = fm_cursor_varint(c);
    const uint8_t *table = fm_cursor_bytes(c, table_len);
    if (c->failed || number != l->codes.len) {
        l->bad++;
        return;
    }
    if (!*fm_profile_text(l->p, f.qualname))
        f.qualname = f.name;
    if (is_type) {
        f.kind = FM_FUNCTION_REGION;
        f.flags = FM_FUNCTION_TYPE;
    }
    bool own = strcmp(fm_profile_text(l->p, f.file), FM_LIVE_OWN_FILE) == 0;
    fm_vec_push(&l->codes,
                ((struct heap_code){ own ? FM_NONE : fm_profile_function(l->p, &f), own,
                                     (uint32_t)first_line, table, (uint32_t)table_len }));
}

static void read_definitions(struct heap_load *l)
{
    struct fm_cursor c = fm_cursor_over(l->defs, l->counts[FM_HEAP_DEFS]);
    fm_vec_push(&l->codes, ((struct heap_code){ .func = FM_NONE })); /* they count from 1 */
    while (!c.failed && fm_cursor_left(&c) > 0) {
        uint64_t len = fm_cursor_varint(&c);
        const uint8_t *body = fm_cursor_bytes(&c, len);
        if (!body || !len)
            break;
        struct fm_cursor inner = fm_cursor_over(body, len);
        uint64_t kind = fm_cursor_varint(&inner);
        if (kind == FM_HEAP_DEF_CODE || kind == FM_HEAP_DEF_TYPE)
            read_code(l, &inner, kind == FM_HEAP_DEF_TYPE);
    }
}

static uint32_t line_of(const struct heap_code *code, uint32_t offset)
{
    struct fm_linetable_cursor table;
    struct fm_linetable_entry entry;
    fm_linetable_init(&table, FM_TABLE_PEP657, code->table, code->table_len, code->first_line, 0);
    while (fm_linetable_next(&table, &entry))
        if (offset >= entry.start && offset < entry.end)
            return entry.position.line ? entry.position.line : code->first_line;
    return code->first_line;
}

/* ---- the process and its threads ---- */

/* Does the store belong to it? A recording that began while the process ran has its store after it. */
static bool is_of(const struct heap_load *l, const struct fm_process *process)
{
    return process->pid == l->h.pid &&
           (process->start_ns >= l->h.start_ns || l->h.flags & FM_HEAP_LATE);
}

/* The program that a child of fork was born in: of those that its parent executed, one after the other,
 * the last that had begun by then. NULL: not known. */
static const struct fm_process *find_parent(const struct heap_load *l)
{
    const struct fm_process *parent = NULL;
    for (uint32_t i = 0; i < l->p->processes.len && l->h.flags & FM_HEAP_FORKED; i++) {
        const struct fm_process *process = &l->p->processes.data[i];
        if (process->pid == l->h.parent_pid &&
            (!parent ||
             (process->start_ns <= l->h.start_ns &&
              (process->start_ns >= parent->start_ns || parent->start_ns > l->h.start_ns))))
            parent = process;
    }
    return parent;
}

/* The process whose own store begins first after this one: it is a later program of the same number
 * that began after that. */
static uint32_t find_process(struct heap_load *l, const struct fm_live_ending *ending)
{
    struct fm_profile *p = l->p;
    uint32_t found = FM_NONE;
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct fm_process *process = &p->processes.data[i];
        if (is_of(l, process) &&
            (found == FM_NONE || process->start_ns < p->processes.data[found].start_ns))
            found = i;
    }
    if (found != FM_NONE)
        return found;
    const struct fm_process *parent = find_parent(l);
    struct fm_process process = {
        .exe = parent ? parent->exe : 0, /* a child that executed nothing is what its parent is */
        .command = parent ? parent->command : 0,
        .cwd = parent ? parent->cwd : 0,
        .version = parent ? parent->version : 0,
        .pid = l->h.pid,
        .parent_pid = l->h.parent_pid,
        .start_ns = l->h.start_ns,
        .start_real_ns = l->h.start_real_ns,
        .end_ns = ending->end_ns ? ending->end_ns : l->h.end_ns,
        .exit_status = ending->exit_status,
        .forked = l->h.flags & FM_HEAP_FORKED,
        .profiled = true,
    };
    return fm_profile_process(p, &process);
}

static uint32_t find_thread(struct heap_load *l, uint32_t tid)
{
    struct fm_profile *p = l->p;
    for (uint32_t i = 0; i < p->threads.len; i++)
        if (p->threads.data[i].process == l->process && p->threads.data[i].tid == tid)
            return i;
    return FM_NONE;
}

/* What the system called a thread before it called itself something is the program's name. */
static uint32_t name_of_thread(struct heap_load *l, const struct fm_heap_thread *t)
{
    if (t->tid == l->h.pid)
        return fm_profile_string(l->p, "MainThread");
    if (!(t->flags & (FM_HEAP_THREAD_CALLED | FM_HEAP_THREAD_NAMED)))
        return 0;
    return fm_strings_add(l->p->strings, t->name, strnlen(t->name, sizeof t->name));
}

static void find_threads(struct heap_load *l)
{
    struct fm_profile *p = l->p;
    const struct fm_process *process = &p->processes.data[l->process];
    uint64_t count = l->counts[FM_HEAP_THREADS];
    l->thread_of = fm_malloc((count + 1) * sizeof *l->thread_of);
    for (uint64_t i = 0; i < count; i++) {
        const struct fm_heap_thread *t = &l->threads[i];
        uint32_t thread = find_thread(l, t->tid);
        if (thread != FM_NONE && !p->threads.data[thread].name)
            p->threads.data[thread].name = name_of_thread(l, t);
        if (thread == FM_NONE) {
            struct fm_thread fresh = { .process = l->process,
                                       .tid = t->tid,
                                       .start_ns = t->start_ns,
                                       .end_ns = process->end_ns };
            fresh.name = name_of_thread(l, t);
            thread = fm_profile_thread(p, &fresh);
        }
        l->thread_of[i] = thread;
    }
}

/* What belongs to no function stands below the first thread. */
static uint32_t special_root(struct heap_load *l)
{
    struct fm_profile *p = l->p;
    uint32_t thread = l->counts[FM_HEAP_THREADS] ? l->thread_of[0] : find_thread(l, l->h.pid);
    if (thread == FM_NONE)
        thread =
            fm_profile_thread(p, &(struct fm_thread){ .process = l->process,
                                                      .tid = l->h.pid,
                                                      .name = fm_profile_string(p, "MainThread") });
    uint32_t name =
        fm_profile_string(p, l->h.flags & FM_HEAP_FORKED ? FM_HEAP_INHERITED : FM_HEAP_BEFORE);
    struct fm_function f = { .kind = FM_FUNCTION_REGION, .name = name, .qualname = name };
    return fm_profile_node(p, p->threads.data[thread].root, fm_profile_function(p, &f));
}

/* ---- contexts ---- */

static uint32_t place_root(struct heap_load *l, uint64_t i)
{
    for (uint64_t t = 0; t < l->counts[FM_HEAP_THREADS]; t++)
        if (l->threads[t].root == i)
            return l->p->threads.data[l->thread_of[t]].root;
    return special_root(l);
}

/* Instructions of one line are one context. */
static uint32_t place_node(struct heap_load *l, const struct fm_heap_node *node)
{
    uint32_t parent = l->place[node->parent];
    if (parent == FM_NONE || node->code >= l->codes.len)
        return FM_NONE;
    const struct heap_code *code = &l->codes.data[node->code];
    if (code->own) /* what the agent runs is none of the program's functions */
        return parent;
    uint32_t line = line_of(code, node->offset);
    /* The map's key has no room for three numbers: the line goes with the function, mixed. */
    uint64_t what = ((uint64_t)code->func << 32 | line) * 0x9e3779b97f4a7c15u;
    bool is_new;
    uint32_t fresh = (uint32_t)l->p->nodes.len;
    uint32_t *found = fm_map_at(&l->children, what ^ parent, fresh, &is_new);
    const struct fm_node *known = is_new ? NULL : &l->p->nodes.data[*found];
    if (known && known->parent == parent && known->func == code->func && known->line == line)
        return *found;
    return fm_profile_node_at(l->p, parent, code->func, line);
}

static void place_nodes(struct heap_load *l)
{
    uint64_t count = l->counts[FM_HEAP_NODES];
    l->place = fm_malloc((count + 1) * sizeof *l->place);
    l->place[0] = FM_NONE;
    for (uint64_t i = 1; i < count; i++) {
        const struct fm_heap_node *node = &l->nodes[i];
        if (!node->code && !node->parent)
            l->place[i] = place_root(l, i);
        else
            l->place[i] =
                node->parent && node->parent < i && node->code ? place_node(l, node) : FM_NONE;
        l->bad += l->place[i] == FM_NONE;
    }
}

/* ---- accounts ---- */

/* Is the account of what a child of fork was born with? That is its parent's. */
static bool is_inherited(const struct heap_load *l, const struct fm_heap_account *a)
{
    const struct fm_heap_node *node = &l->nodes[a->node];
    return l->h.flags & FM_HEAP_FORKED && !node->parent && !node->code &&
           node->thread == UINT32_MAX;
}

/* What of the account was alive when all processes together had most. */
static void add_share(struct heap_load *l, uint64_t number, uint32_t node, bool at_peak)
{
    const struct fm_heap_run *run = l->run;
    const struct fm_heap_account *a = &l->accounts[number];
    struct fm_heap_share share = { 0 };
    if (number < l->counts[FM_HEAP_SHARES])
        share = l->shares[number];
    if (is_inherited(l, a))
        return;
    bool touched = share.epoch == run->epoch && !run->rising;
    if (run->peak == run->alone_peak) { /* as long as there was but one */
        if (l->h.member != 1)
            return;
        touched = !at_peak;
        share = (struct fm_heap_share){ a->at, a->at_blocks, 0 };
    } else if (l->h.left && l->h.left_peak < run->peak) {
        return; /* it was no more */
    }
    fm_profile_add(l->p, FM_METRIC_TOGETHER, node, touched ? share.at : a->live);
    fm_profile_add(l->p, FM_METRIC_TOGETHER_BLOCKS, node,
                   touched ? share.at_blocks : a->live_blocks);
}

/* Sampled blocks: estimates, how far they may be off, and a peak that two halves found. */
static void add_sampled(struct heap_load *l, uint64_t number, uint32_t node)
{
    const struct fm_heap_account *a = &l->accounts[number];
    const struct fm_heap_error *e = &l->errors[number < l->counts[FM_HEAP_ERRORS] ? number : 0];
    int half = l->nodes[a->node].account[1] == number;
    struct fm_heap_sampled_peak peak = fm_heap_sampled_peak(&l->h, half, a, e);
    fm_profile_add(l->p, FM_METRIC_PEAK, node, peak.bytes);
    fm_profile_add(l->p, FM_METRIC_PEAK_BLOCKS, node, peak.blocks);
    fm_profile_add(l->p, FM_METRIC_PEAK_ERROR, node, peak.square);
    fm_profile_add(l->p, FM_METRIC_LEAKED_ERROR, node, fm_heap_square(e->live));
    fm_profile_add(l->p, FM_METRIC_ALLOCATED_ERROR, node, fm_heap_square(e->allocated));
    fm_profile_add(l->p, FM_METRIC_TEMPORARY_ERROR, node, fm_heap_square(e->temporary));
}

static void add_peak(struct heap_load *l, uint64_t number, uint32_t node)
{
    const struct fm_heap_account *a = &l->accounts[number];
    bool at_peak = a->epoch != l->h.epoch || l->h.rising;
    fm_profile_add(l->p, FM_METRIC_PEAK, node, at_peak ? a->live : a->at);
    fm_profile_add(l->p, FM_METRIC_PEAK_BLOCKS, node, at_peak ? a->live_blocks : a->at_blocks);
    if (l->run)
        add_share(l, number, node, at_peak);
}

static void add_account(struct heap_load *l, uint64_t number)
{
    const struct fm_heap_account *a = &l->accounts[number];
    uint32_t node = a->node < l->counts[FM_HEAP_NODES] ? l->place[a->node] : FM_NONE;
    if (node == FM_NONE) {
        l->bad++;
        return;
    }
    if (l->h.sample_bytes)
        add_sampled(l, number, node);
    else
        add_peak(l, number, node);
    fm_profile_add(l->p, FM_METRIC_LEAKED, node, a->live);
    fm_profile_add(l->p, FM_METRIC_LEAKED_BLOCKS, node, a->live_blocks);
    fm_profile_add(l->p, FM_METRIC_ALLOCATED, node, (int64_t)a->allocated);
    fm_profile_add(l->p, FM_METRIC_BLOCKS, node, (int64_t)a->blocks);
    fm_profile_add(l->p, FM_METRIC_TEMPORARY, node, (int64_t)a->temporary);
    fm_profile_add(l->p, FM_METRIC_TEMPORARY_BLOCKS, node, a->temporary_blocks);
}

static void add_count(struct heap_load *l, enum fm_heap_table table, uint32_t bucket,
                      uint64_t blocks, uint64_t bytes)
{
    if (!blocks && !bytes) /* of sampled ones a world may have half a block: bytes of none */
        return;
    /* Both worlds count in the same buckets. */
    for (size_t i = l->first_count; i < l->p->memory.counts.len; i++) {
        struct fm_heap_count *known = &l->p->memory.counts.data[i];
        if (known->table == (uint32_t)table && known->bucket == bucket) {
            known->blocks = fm_sum(known->blocks, (int64_t)blocks);
            known->bytes = fm_sum(known->bytes, (int64_t)bytes);
            return;
        }
    }
    fm_vec_push(&l->p->memory.counts, ((struct fm_heap_count){ l->process, table, bucket,
                                                               (int64_t)blocks, (int64_t)bytes }));
}

/* How large blocks were, how long they lived, and who was asked for them. */
static void add_counts(struct heap_load *l)
{
    for (int w = 0; w < FM_HEAP_WORLDS; w++) {
        const struct fm_heap_counters *c = &l->h.worlds[w];
        for (uint32_t i = 0; i < FM_HEAP_SIZE_BUCKETS; i++)
            add_count(l, FM_HEAP_SIZES, i, c->sizes[i], 0);
        for (uint32_t i = 0; i < FM_HEAP_LIFE_BUCKETS; i++)
            add_count(l, FM_HEAP_LIVES, i, c->lives[i], 0);
        for (uint32_t i = 0; i < FM_HEAP_KINDS; i++)
            add_count(l, FM_HEAP_BY_KIND, i, c->kind_blocks[i], c->kind_bytes[i]);
    }
}

/* "an allocation of 8000000033 bytes was refused, in load, app.py:12": the largest of them. */
static void note_refused(struct heap_load *l)
{
    struct fm_profile *p = l->p;
    uint32_t node =
        l->h.refused_node < l->counts[FM_HEAP_NODES] ? l->place[l->h.refused_node] : FM_NONE;
    fm_autobuffer text = FM_BUFFER_INIT;
    fm_buffer_addf(&text, "allocations were refused; the largest asked for %llu bytes",
                   (unsigned long long)l->h.refused_bytes);
    if (node != FM_NONE && p->nodes.data[node].parent != FM_NONE) {
        const struct fm_function *f = &p->functions.data[p->nodes.data[node].func];
        fm_buffer_addf(&text, ", in %s, %s:%u", fm_profile_text(p, f->qualname),
                       fm_profile_text(p, f->file), p->nodes.data[node].line);
    }
    fm_profile_note(p, l->process, "memory", l->h.refused, text.data);
}

static void note_lost(struct heap_load *l)
{
    static const char *const meanings[] = {
#define X(name, meaning) meaning,
        FM_HEAP_LOST_LIST(X)
#undef X
    };
    for (int i = 0; i < FM_HEAP_LOST_COUNT; i++)
        if (l->h.lost[i])
            fm_profile_note(l->p, l->process, "lost", l->h.lost[i], meanings[i]);
    if (l->h.refused)
        note_refused(l);
    if (l->h.earlier_peak > l->h.peak)
        fm_profile_note(
            l->p, l->process, "memory", (uint64_t)l->h.earlier_peak,
            "bytes were the peak before the stretch that the process ended in, such as a test; "
            "what is shown is the peak of that one");
    if (l->h.flags & FM_HEAP_LATE)
        fm_profile_note(l->p, l->process, "late",
                        l->h.worlds[0].unknown_frees + l->h.worlds[1].unknown_frees,
                        "blocks from before were freed: the recording began while the program ran, "
                        "and what it had then is not in it");
    if (l->h.flags & FM_HEAP_NO_TYPES)
        fm_profile_note(
            l->p, l->process, "absent", 1,
            "no types of objects: this Python does not tell them (3.13 and later do), or "
            "the program listens itself");
    if (l->h.flags & FM_HEAP_TYPES_END)
        fm_profile_note(l->p, l->process, "absent", 1,
                        "types of objects from some time on: the program took the place of the "
                        "listener, as tracemalloc.start() does; what was made then has none");
    if (l->bad)
        fm_profile_note(l->p, l->process, "damaged", l->bad,
                        "contexts of memory were left out: its store is damaged");
}

static void release(struct heap_load *l)
{
    free(l->nodes);
    free(l->accounts);
    free(l->threads);
    free(l->shares);
    free(l->errors);
    free(l->defs);
    free(l->thread_of);
    free(l->place);
    fm_vec_release(&l->codes);
    fm_map_release(&l->children);
}

/* What was alive over time, if somebody looked. */
static void add_history(struct heap_load *l, const struct fm_heap_files *files)
{
    const struct fm_process *process = &l->p->processes.data[l->process];
    struct fm_sliced of = {
        .accounts = l->accounts,
        .place = l->place,
        .account_count = l->counts[FM_HEAP_ACCOUNTS],
        .node_count = l->counts[FM_HEAP_NODES],
        .process = l->process,
        .begin_ns = l->h.start_ns,
        .inherited = FM_NONE,
        .end_ns = process->end_ns ? process->end_ns : l->h.end_ns,
    };
    for (uint64_t i = 1; i < of.node_count && l->h.flags & FM_HEAP_FORKED; i++)
        if (!l->nodes[i].parent && !l->nodes[i].code && l->nodes[i].thread == UINT32_MAX)
            of.inherited = l->place[i];
    if (files->events_lost)
        fm_profile_note(l->p, l->process, "lost", files->events_lost,
                        "events of memory were not kept: they could not be written, or nobody read "
                        "them any more");
    if (files->slices)
        fm_live_slices_load(l->p, &of, files->slices, files->slices_len);
}

/* A process of which no end is known ran at least until it was last seen. */
static void extend_process(struct heap_load *l, const struct fm_live_ending *ending)
{
    struct fm_process *process = &l->p->processes.data[l->process];
    if (ending->end_ns || l->h.end_ns)
        return;
    for (size_t i = 0; i < l->p->memory.histories.len; i++) {
        const struct fm_history *history = &l->p->memory.histories.data[i];
        if (history->process == l->process && history->end_ns > process->end_ns)
            process->end_ns = history->end_ns;
    }
}

int fm_live_heap_load(struct fm_profile *p, const struct fm_heap_files *files,
                      const struct fm_heap_run *run, const struct fm_live_ending *ending,
                      struct fm_error *err)
{
    struct heap_load l = {
        .p = p, .files = { { files->bytes, files->len }, { files->more, files->more_len } }
    };
    l.run = run && run->members > 1 ? run : NULL;
    int first = files->len ? 0 : 1;
    if (l.files[first].len < FM_HEAP_HEADER_BYTES)
        return fm_error_set(err, FM_CANNOT_READ, "it is too short");
    memcpy(&l.h, l.files[first].bytes, sizeof l.h);
    if (memcmp(l.h.magic, FM_HEAP_MAGIC, sizeof l.h.magic) != 0 || l.h.version != FM_HEAP_VERSION)
        return fm_error_set(err, FM_CANNOT_READ, "it is no heap store of this version");
    l.nodes = array_new(&l, FM_HEAP_NODES);
    l.accounts = array_new(&l, FM_HEAP_ACCOUNTS);
    l.threads = array_new(&l, FM_HEAP_THREADS);
    l.shares = array_new(&l, FM_HEAP_SHARES);
    l.errors = array_new(&l, FM_HEAP_ERRORS);
    l.defs = array_new(&l, FM_HEAP_DEFS);
    if (l.counts[FM_HEAP_THREADS] > THREADS_MAX)
        l.counts[FM_HEAP_THREADS] = THREADS_MAX;
    l.process = find_process(&l, ending);
    read_definitions(&l);
    find_threads(&l);
    place_nodes(&l);
    for (uint64_t i = 1; i < l.counts[FM_HEAP_ACCOUNTS]; i++)
        if (l.accounts[i].node)
            add_account(&l, i);
    l.first_count = p->memory.counts.len;
    add_counts(&l);
    add_history(&l, files);
    extend_process(&l, ending);
    p->processes.data[l.process].memory = true;
    p->processes.data[l.process].memory_python = l.h.flags & FM_HEAP_PYTHON;
    p->processes.data[l.process].memory_own_bytes = l.h.own_bytes;
    p->processes.data[l.process].memory_sample_bytes = l.h.sample_bytes;
    note_lost(&l);
    release(&l);
    return 0;
}
