/*
 * Reads memray's own files (.bin), versions 10 to 13: memray 1.7 to 1.20.
 *
 * A file is a header and records, in the byte order of the machine (little), as they are or in a frame of LZ4:
 *
 *     header      "memray\0", version, [12+: version of Python], native?, aggregated?, times, command line, pid, …
 *     allocation  an address (the difference to the last, or from version 12 on one of the 15 last), bytes
 *     push, pop   what the thread is calling, as far as it changed since its last allocation
 *     thread      all that follows is of that one
 *     memory      what was resident, every 10 ms
 *     definitions of code objects (12+) or frames, names of threads; of native frames, which are passed over
 *
 * With --aggregate the file has the sums instead: contexts, and what each had at the peak and in the end.
 *
 * A file that ends early, of a program that was killed, is read up to there, and so is a damaged one: a note says
 * so. Only a header that cannot be read makes it unreadable.
 *
 * Untrusted: numbers are checked where they are used, and what is kept is paid from a budget.
 */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "record/formats/format.h"
#include "record/formats/memray/memray_bin.h"

#define VERSION_FIRST 10
#define VERSION_LAST  13
#define PATHS_MAX     65536

/* A list of ten million equal objects is forty million bytes of records, and 160 KB of LZ4: what is alive counts
 * by itself, beside what a file of that size may need otherwise. */
#define BLOCKS_SMALL ((uint64_t)4 << 30)

/* ---- the header ---- */

/* Paths that memray maps files to modules with; from version 13 on. */
static bool skip_paths(struct fm_memray_bin *b)
{
    if (!fm_memray_read_text(b, &b->other))
        return false;
    for (int list = 0, n = 0; list < 2; n++) {
        if (n > PATHS_MAX || !fm_memray_read_text(b, &b->other))
            return false;
        list += b->other.len == 0;
    }
    return true;
}

static bool read_header(struct fm_memray_bin *b)
{
    struct fm_memray_header *h = &b->header;
    struct fm_memray_source *s = &b->s;
    fm_memray_next(s);
    h->python = h->version >= 12 ? (uint32_t)fm_memray_fixed(s, 4) : 0;
    h->native = fm_memray_fixed(s, 1) != 0;
    h->aggregated = fm_memray_fixed(s, 1) != 0;
    fm_memray_skip(s, 16); /* how many of what there are, if it was not killed */
    h->start_ms = fm_memray_fixed(s, 8);
    h->end_ms = fm_memray_fixed(s, 8);
    if (!fm_memray_whole(s) || !fm_memray_read_text(b, &b->text))
        return false;
    h->pid = (uint32_t)fm_memray_fixed(s, 4);
    h->main_tid = fm_memray_fixed(s, 8);
    h->skipped = fm_memray_fixed(s, 8);
    fm_memray_skip(s, 1);
    h->python_allocators = h->version >= 11 && fm_memray_fixed(s, 1);
    fm_memray_skip(s, h->version >= 12);
    h->start_ms = h->start_ms < FM_MEMRAY_TIME_MAX_MS ? h->start_ms : 0;
    h->end_ms = h->end_ms < FM_MEMRAY_TIME_MAX_MS ? h->end_ms : 0;
    return fm_memray_whole(s) && (h->version < 13 || skip_paths(b));
}

static int begin(struct fm_memray_bin *b, struct fm_error *err)
{
    struct fm_memray_source *s = &b->s;
    if (s->end - s->at < 11)
        return fm_error_set(err, FM_DAMAGED, "it is cut off in its header");
    if (memcmp(s->at, "memray", 7) != 0)
        return fm_error_set(err, FM_DAMAGED, "%s",
                            s->broken ? s->broken : "it is a frame of LZ4, and not memray's");
    s->at += 7;
    b->header.version = (uint32_t)fm_memray_fixed(s, 4);
    if (b->header.version < VERSION_FIRST || b->header.version > VERSION_LAST)
        return fm_error_set(
            err, FM_UNSUPPORTED,
            "it is memray's file of version %u, and Fathom reads versions %d to %d; "
            "\"memray transform csv\", of the memray that wrote it, makes one that "
            "Fathom reads",
            b->header.version, VERSION_FIRST, VERSION_LAST);
    if (!read_header(b))
        return fm_error_set(err, FM_DAMAGED, "its header is damaged or cut off");
    b->c.lines_are_defined = b->header.version < 12;
    b->c.table_kind = b->header.python >= 0x030b0000   ? FM_TABLE_PEP657
                      : b->header.python >= 0x030a0000 ? FM_TABLE_PEP626
                                                       : FM_TABLE_LNOTAB;
    b->thread = fm_memray_thread(&b->c, b->header.main_tid);
    b->context = b->c.threads.data[b->thread].root;
    return 0;
}

/* ---- the whole ---- */

static void note_ending(struct fm_memray_bin *b, enum fm_memray_ending ending)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    uint64_t at = b->s.unpacked - (uint64_t)(b->s.at < b->s.end ? b->s.end - b->s.at : 0);
    if (ending == FM_MEMRAY_CUT_OFF && !b->s.broken) {
        fm_profile_note(
            b->c.p, FM_NONE, "cut-off", 1,
            b->header.aggregated
                ? "memray's file ends early: some of its sums are missing"
                : "memray's file ends early, as that of a program that was killed: what "
                  "was recorded last may be missing");
        return;
    }
    fm_buffer_addf(&text,
                   "memray's file is damaged: at byte %" PRIu64 " of its records %s; all of "
                   "it that comes before is shown",
                   at,
                   b->s.broken ? b->s.broken
                   : ending == FM_MEMRAY_TOO_MUCH
                       ? "is more than any machine has, or than a file of its size may need"
                       : "is what memray does not write");
    fm_profile_note(b->c.p, FM_NONE, "damaged", 1, fm_buffer_text(&text));
}

static uint32_t add_process(struct fm_memray_bin *b, const char *command)
{
    const struct fm_memray_header *h = &b->header;
    char version[32] = "";
    if (h->python)
        snprintf(version, sizeof version, "%u.%u.%u", h->python >> 24, h->python >> 16 & 255,
                 h->python >> 8 & 255);
    uint64_t end_ms = b->last_ms > h->end_ms ? b->last_ms : h->end_ms;
    struct fm_process process = { .pid = h->pid,
                                  .command = fm_profile_string(b->c.p, command),
                                  .version = fm_profile_string(b->c.p, version),
                                  .start_ns = h->start_ms * 1000000,
                                  .start_real_ns = h->start_ms * 1000000,
                                  .exit_status = -1,
                                  .profiled = true,
                                  .memory = true,
                                  .memory_python = h->python_allocators };
    process.end_ns = end_ms > h->start_ms ? end_ms * 1000000 : 0;
    return fm_profile_process(b->c.p, &process);
}

static void add_numbers(struct fm_memray_bin *b, const uint32_t *nodes)
{
    struct fm_profile *p = b->c.p;
    for (size_t i = 1; i < b->c.all.len; i++) {
        const struct fm_memray_account *a = &b->heap.accounts.data[i];
        fm_profile_add(p, FM_METRIC_PEAK, nodes[i], a->at);
        fm_profile_add(p, FM_METRIC_PEAK_BLOCKS, nodes[i], a->at_blocks);
        fm_profile_add(p, FM_METRIC_LEAKED, nodes[i], a->live);
        fm_profile_add(p, FM_METRIC_LEAKED_BLOCKS, nodes[i], a->live_blocks);
        fm_profile_add(p, FM_METRIC_ALLOCATED, nodes[i], a->allocated);
        fm_profile_add(p, FM_METRIC_BLOCKS, nodes[i], a->blocks);
        fm_profile_add(p, FM_METRIC_TEMPORARY, nodes[i], a->temporary);
        fm_profile_add(p, FM_METRIC_TEMPORARY_BLOCKS, nodes[i], a->temporary_blocks);
    }
}

static void add_count(struct fm_memray_bin *b, uint32_t process, enum fm_heap_table table,
                      uint32_t bucket, uint64_t blocks, int64_t bytes)
{
    struct fm_heap_count counted = { process, table, bucket, (int64_t)blocks, bytes };
    if (blocks)
        fm_vec_push(&b->c.p->memory.counts, counted);
}

static void add_counts(struct fm_memray_bin *b, uint32_t process)
{
    const struct fm_memray_heap *h = &b->heap;
    for (uint32_t i = 0; i < FM_HEAP_SIZE_BUCKETS; i++)
        add_count(b, process, FM_HEAP_SIZES, i, h->sizes[i], 0);
    for (uint32_t i = 0; i < FM_HEAP_LIFE_BUCKETS; i++)
        add_count(b, process, FM_HEAP_LIVES, i, h->lives[i], 0);
    for (uint32_t i = 0; i < FM_HEAP_KINDS; i++)
        add_count(b, process, FM_HEAP_BY_KIND, i, h->kind_blocks[i], h->kind_bytes[i]);
}

static void finish(struct fm_memray_bin *b, const char *command)
{
    uint32_t process = add_process(b, command);
    fm_autofree uint32_t *nodes =
        fm_memray_place(&b->c, process, b->header.main_tid, b->header.skipped);
    if (!b->header.aggregated)
        fm_memray_settle(&b->heap);
    add_numbers(b, nodes);
    add_counts(b, process);
    fm_curve_copy(&b->curve, process, &b->c.p->memory);
    if (*command)
        fm_profile_fact(b->c.p, "command", command);
    fm_profile_fact(b->c.p, "collectors", "memory");
    if (b->header.aggregated)
        fm_profile_note(b->c.p, FM_NONE, "partial", 0,
                        "memray was told to aggregate: what was allocated in all, and what was "
                        "freed at once, it did not keep");
}

static void release(struct fm_memray_bin *b)
{
    fm_memray_source_release(&b->s);
    fm_memray_contexts_release(&b->c);
    fm_memray_heap_release(&b->heap);
    fm_buffer_release(&b->text);
    fm_buffer_release(&b->other);
    fm_buffer_release(&b->table);
    fm_curve_release(&b->curve);
    fm_vec_release(&b->traces);
    fm_vec_release(&b->frame_keys);
    fm_map_release(&b->trace_contexts);
}

static struct fm_profile *read_bin(const void *bytes, int fd, uint64_t len, const char *name,
                                   struct fm_error *err)
{
    uint64_t blocks = BLOCKS_SMALL + len * FM_BUDGET_GROWTH;
    struct fm_memray_bin b = { .budget = fm_budget_for(len),
                               .blocks_budget = { .all_bytes = blocks, .left_bytes = blocks } };
    fm_memray_source_init(&b.s, bytes, fd, len);
    fm_memray_heap_init(&b.heap, &b.blocks_budget);
    fm_memray_contexts_init(&b.c, &b.heap, &b.budget);
    struct fm_profile *p = b.c.p;
    if (begin(&b, err) == 0) {
        fm_autofree char *command = fm_strndup(fm_buffer_text(&b.text), b.text.len);
        enum fm_memray_ending ending =
            b.header.aggregated ? fm_memray_read_sums(&b) : fm_memray_read_events(&b);
        finish(&b, command);
        if (ending != FM_MEMRAY_ENDED)
            note_ending(&b, ending);
    } else {
        fm_error_context(err, "reading %s", name);
        fm_profile_free(p);
        p = NULL;
    }
    release(&b);
    return p;
}

/* ---- the format ---- */

/* Plain, or in a frame of LZ4, which leaves the first bytes as they are. */
static bool recognise(const void *bytes, size_t len)
{
    size_t look = len < 64 ? len : 64;
    return (len >= 7 && memcmp(bytes, "memray", 7) == 0) ||
           (len >= 4 && memcmp(bytes, "\x04\x22\x4d\x18", 4) == 0 &&
            memmem(bytes, look, "memray", 7));
}

static struct fm_profile *load(const void *bytes, size_t len, const char *name,
                               struct fm_error *err)
{
    return read_bin(bytes, -1, len, name, err);
}

static struct fm_profile *load_fd(int fd, uint64_t len, const char *name, struct fm_error *err)
{
    return read_bin(NULL, fd, len, name, err);
}

static const char *const suffixes[] = { NULL };

const struct fm_format fm_format_memray_bin = {
    .name = "memray's .bin",
    .title = "memray's own files",
    .suffixes = suffixes,
    .recognise = recognise,
    .load = load,
    .load_fd = load_fd,
};
