/* What resident memory is made of; see residence.h. */
#include "watch/memory/residence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "record/capture/live_heap.h"
#include "record/model/profile.h"
#include "watch/memory/pages.h"
#include "watch/os/path.h"
#include "watch/os/remote/image.h"
#include "watch/os/remote/maps.h"
#include "watch/os/run/folder.h"

#define RANGES_MAX    (1u << 20)
#define ADDRESSES     ((uint64_t)1 << 56)
#define LIBRARIES_MAX 64
#define STACK_MAX     ((uint64_t)1 << 30) /* of a thread; more are several mappings in one */
#define TID_MAX       ((uint64_t)1 << 22) /* of Linux; addresses of code are above */

/* Whose addresses these are. */
struct owned_span {
    uint64_t start, end, by;
    uint32_t kind; /* enum fm_heap_range_kind; SPAN_OWN */
};

enum { SPAN_OWN = 100 };

struct residence_reading {
    struct fm_residence *r;
    pid_t pid;
    struct fm_heap_header h;
    FM_VEC(struct owned_span) spans;  /* in order, apart */
    FM_VEC(struct owned_span) blocks; /* large ones */
    struct fm_maps maps;
    struct fm_pages pages;
    int64_t arenas, malloc, untouched_python, untouched_c;
};

/* ---- what the library tells ---- */

static bool read_whole(int fd, void *bytes, size_t len, uint64_t at)
{
    return fd >= 0 && pread(fd, bytes, len, (off_t)at) == (ssize_t)len;
}

static void add_range(struct residence_reading *g, const struct fm_heap_range *range)
{
    struct owned_span span = { range->start, range->start + range->bytes, range->by, range->kind };
    if (!range->start || range->start >= ADDRESSES || range->bytes >= ADDRESSES)
        return;
    if (range->kind == FM_HEAP_RANGE_PYTHON_BLOCK || range->kind == FM_HEAP_RANGE_C_BLOCK)
        fm_vec_push(&g->blocks, span);
    else if (range->kind != FM_HEAP_RANGE_NONE)
        fm_vec_push(&g->spans, span);
}

static void read_piece(struct residence_reading *g, int fd, const struct fm_heap_piece *piece)
{
    uint64_t size = sizeof(struct fm_heap_range), used = g->h.used[FM_HEAP_RANGES];
    uint64_t first = piece->offset / size, count = piece->bytes / size;
    if (used > RANGES_MAX || first >= used)
        return;
    count = count < used - first ? count : used - first;
    fm_autofree struct fm_heap_range *ranges = fm_malloc((count + 1) * size);
    if (!read_whole(fd, ranges, count * size, piece->at))
        return;
    for (uint64_t i = 0; i < count; i++)
        add_range(g, &ranges[i]);
}

static int compare_spans(const void *a, const void *b)
{
    const struct owned_span *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* In order, and where two are at the same place, the second only where the first is not. */
static void sort_spans(struct residence_reading *g)
{
    size_t kept = 0;
    uint64_t end = 0;
    if (g->spans.len)
        qsort(g->spans.data, g->spans.len, sizeof *g->spans.data, compare_spans);
    for (size_t i = 0; i < g->spans.len; i++) {
        struct owned_span span = g->spans.data[i];
        span.start = span.start < end ? end : span.start;
        if (span.start >= span.end)
            continue;
        g->spans.data[kept++] = span;
        end = span.end;
    }
    g->spans.len = kept;
}

/* Not before a child of fork has told what it was born with, which would all seem to be free; nor once
 * the process may be another program, of which nothing is told there. */
static bool is_told(const struct fm_heap_header *h)
{
    return h->flags & FM_HEAP_READY && h->left != FM_HEAP_EXECUTES;
}

/* False: there is no such store, it tells nothing of what is there now, or it has estimates only. */
static bool read_store(struct residence_reading *g, const int stores[2])
{
    if (!read_whole(stores[0], &g->h, sizeof g->h, 0) &&
        !read_whole(stores[1], &g->h, sizeof g->h, 0))
        return false;
    if (memcmp(g->h.magic, FM_HEAP_MAGIC, sizeof g->h.magic) != 0 ||
        g->h.version != FM_HEAP_VERSION || g->h.sample_bytes || !is_told(&g->h))
        return false;
    for (uint32_t i = 0; i < g->h.piece_count && i < FM_HEAP_PIECES; i++)
        if (g->h.pieces[i].array == FM_HEAP_RANGES && g->h.pieces[i].file < 2)
            read_piece(g, stores[g->h.pieces[i].file], &g->h.pieces[i]);
    for (size_t i = 0; i < FM_HEAP_OWN_RANGES; i++) {
        struct owned_span own = { g->h.own[i].start, g->h.own[i].end, 0, SPAN_OWN };
        if (own.start && own.end > own.start)
            fm_vec_push(&g->spans, own);
    }
    return true;
}

/* Of the stack of a thread the library tells one page: it is all of the mapping around it. */
static void widen_stacks(struct residence_reading *g)
{
    for (size_t i = 0; i < g->spans.len; i++) {
        struct owned_span *span = &g->spans.data[i];
        const struct fm_mapping *m = fm_maps_at(&g->maps, span->start);
        if (span->kind != FM_HEAP_RANGE_STACK || span->by >= TID_MAX || !m || m->inode ||
            m->end - m->start > STACK_MAX)
            continue;
        span->start = m->start;
        span->end = m->end;
    }
    sort_spans(g);
}

/* ---- who it is ---- */

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_own(const char *path)
{
    return strstr(path, "/" FM_FOLDER_PREFIX) || begins_with(fm_path_base(path), "libfathom");
}

/* Memory that has no file but its name. */
static bool is_memory_file(const struct fm_mapping *m)
{
    return begins_with(m->path, "/dev/shm/") || begins_with(m->path, "/memfd:") ||
           begins_with(m->path, "/SYSV") || begins_with(m->path, "/dev/zero");
}

static bool is_unnamed(const struct fm_mapping *m)
{
    return !m->inode && !m->path[0];
}

/* The part that a mapping is of; FM_RESIDENT_MALLOC: anonymous memory, of which there is more to know. */
static enum fm_resident_part part_of(const struct fm_mapping *m, const struct fm_mapping *before)
{
    bool anonymous = !m->inode && m->path[0] != '/';
    if (is_own(m->path))
        return FM_RESIDENT_OWN;
    if (begins_with(m->path, "[stack"))
        return FM_RESIDENT_STACKS;
    if (is_memory_file(m) || (anonymous && m->shared))
        return FM_RESIDENT_SHARED;
    if (!anonymous)
        return FM_RESIDENT_FILES;
    /* Data of a library that begins as zeros is anonymous memory behind the rest of its data. */
    if (is_unnamed(m) && before && before->end == m->start && before->inode && before->writable &&
        !before->shared)
        return FM_RESIDENT_FILES;
    return FM_RESIDENT_MALLOC;
}

static bool is_special(const struct fm_mapping *m)
{
    return begins_with(m->path, "[v"); /* vdso, vvar, vsyscall: the kernel's, and in no count */
}

static bool has_ended(const struct residence_reading *g, uint64_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%llu", (int)g->pid, (unsigned long long)tid);
    return tid && tid < TID_MAX && access(path, F_OK) != 0;
}

static void add_library(struct residence_reading *g, const struct owned_span *span, int64_t bytes,
                        int64_t resident)
{
    const struct fm_mapping *m = fm_maps_at(&g->maps, span->by);
    const char *path = m && m->inode ? m->path : "";
    struct fm_residence_library *found = NULL;
    for (size_t i = 0; i < g->r->libraries.len && !found; i++)
        if (strcmp(g->r->libraries.data[i].path, path) == 0)
            found = &g->r->libraries.data[i];
    if (!found && g->r->libraries.len < LIBRARIES_MAX) {
        fm_vec_push(&g->r->libraries, ((struct fm_residence_library){ fm_strdup(path), 0, 0 }));
        found = &g->r->libraries.data[g->r->libraries.len - 1];
    }
    if (found) {
        found->reserved += bytes;
        found->resident += resident;
    }
}

/* ---- counting ---- */

/* What no range tells of. */
static void count_plain(struct residence_reading *g, enum fm_resident_part part, uint64_t start,
                        uint64_t end)
{
    int64_t resident = fm_pages_resident(&g->pages, start, end);
    if (resident <= 0)
        return;
    if (part == FM_RESIDENT_MALLOC)
        g->malloc += resident;
    else
        g->r->account.parts[part] += resident;
}

static void count_span(struct residence_reading *g, const struct owned_span *span, uint64_t start,
                       uint64_t end)
{
    int64_t resident = fm_pages_resident(&g->pages, start, end);
    int64_t *parts = g->r->account.parts;
    resident = resident < 0 ? 0 : resident;
    switch (span->kind) {
    case FM_HEAP_RANGE_ARENA:
        g->arenas += resident;
        break;
    case FM_HEAP_RANGE_MAPPING:
        parts[FM_RESIDENT_MAPPINGS] += resident;
        g->r->account.untouched += (int64_t)(end - start) - resident;
        break;
    case FM_HEAP_RANGE_STACK:
        if (has_ended(g, span->by))
            g->malloc += resident;
        else
            parts[FM_RESIDENT_STACKS] += resident;
        break;
    case FM_HEAP_RANGE_RESERVED:
        parts[FM_RESIDENT_RESERVED] += resident;
        add_library(g, span, (int64_t)(end - start), resident);
        break;
    case SPAN_OWN:
        parts[FM_RESIDENT_OWN] += resident;
        break;
    default:
        g->malloc += resident;
    }
}

/* The first span that ends behind an address. */
static size_t find_span(const struct residence_reading *g, uint64_t address)
{
    size_t low = 0, high = g->spans.len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (g->spans.data[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The addresses of a mapping, or of a part of it. */
static void count_addresses(struct residence_reading *g, const struct fm_mapping *m,
                            enum fm_resident_part part, uint64_t at, uint64_t last)
{
    bool anonymous = !m->inode && !m->shared;
    for (size_t i = find_span(g, at); anonymous && i < g->spans.len; i++) {
        const struct owned_span *span = &g->spans.data[i];
        if (span->start >= last)
            break;
        uint64_t start = span->start > at ? span->start : at;
        uint64_t end = span->end < last ? span->end : last;
        count_plain(g, part, at, start);
        count_span(g, span, start, end);
        at = end;
    }
    count_plain(g, part, at, last);
}

/* What the library whose last mapping is at `i` needs; as far as its headers can be read. */
static uint64_t end_of_image(const struct residence_reading *g, size_t i)
{
    const struct fm_mapping *last = &g->maps.list.data[i], *m = last;
    struct fm_remote remote;
    struct fm_image image;
    while (m->offset && m > g->maps.list.data && fm_mapping_same_file(m - 1, last))
        m--;
    fm_remote_live(&remote, g->pid);
    if (m->offset || fm_image_read(&image, &remote, m->start) != FM_IMAGE_OK)
        return last->end; /* a file that is no library has no zeros behind it */
    return image.end;
}

/*
 * Where the zeros of a library end. The kernel makes one mapping of them and of the anonymous memory
 * right behind, and there malloc's large blocks are where a library was loaded below them. The zeros
 * come first: nothing at or behind the first address known to be another's is of the library.
 */
static uint64_t end_of_zeros(const struct residence_reading *g, size_t i)
{
    const struct fm_mapping *m = &g->maps.list.data[i];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end = end_of_image(g, i - 1);
    size_t span = find_span(g, m->start);
    end = end < m->end ? (end + page - 1) / page * page : m->end;
    if (span < g->spans.len && g->spans.data[span].start < end)
        end = g->spans.data[span].start;
    for (size_t k = 0; k < g->blocks.len; k++)
        if (g->blocks.data[k].end > m->start && g->blocks.data[k].start < end)
            end = g->blocks.data[k].start;
    end = end / page * page; /* malloc's own words are before a block */
    return end > m->start ? end : m->start;
}

static void count_mapping(struct residence_reading *g, size_t i)
{
    const struct fm_mapping *m = &g->maps.list.data[i];
    enum fm_resident_part part = part_of(m, i ? m - 1 : NULL);
    uint64_t at = m->start;
    if (is_special(m))
        return;
    if (part == FM_RESIDENT_FILES && is_unnamed(m)) {
        at = end_of_zeros(g, i);
        count_addresses(g, m, FM_RESIDENT_FILES, m->start, at);
        part = FM_RESIDENT_MALLOC;
    }
    count_addresses(g, m, part, at, m->end);
}

/* What of large blocks is not in memory. */
static void count_blocks(struct residence_reading *g)
{
    for (size_t i = 0; i < g->blocks.len; i++) {
        const struct owned_span *block = &g->blocks.data[i];
        int64_t resident = fm_pages_resident(&g->pages, block->start, block->end);
        int64_t untouched = resident < 0 ? 0 : (int64_t)(block->end - block->start) - resident;
        if (block->kind == FM_HEAP_RANGE_PYTHON_BLOCK)
            g->untouched_python += untouched;
        else
            g->untouched_c += untouched;
    }
}

static int64_t above_zero(int64_t bytes)
{
    return bytes > 0 ? bytes : 0;
}

/* What is alive, and what the allocators need beside it. */
static void divide(struct residence_reading *g)
{
    struct fm_resident *account = &g->r->account;
    int64_t python = g->h.worlds[FM_HEAP_WORLD_PYTHON].live, large = g->h.python_large;
    int64_t c = fm_sum(g->h.worlds[FM_HEAP_WORLD_C].live, -above_zero(g->h.mapped));
    account->parts[FM_RESIDENT_PYTHON] = above_zero(fm_sum(python, -g->untouched_python));
    account->parts[FM_RESIDENT_C] = above_zero(fm_sum(c, -g->untouched_c));
    account->parts[FM_RESIDENT_PYMALLOC] =
        above_zero(fm_sum(g->arenas, -above_zero(fm_sum(python, -above_zero(large)))));
    int64_t given =
        fm_sum(above_zero(fm_sum(large, -g->untouched_python)), account->parts[FM_RESIDENT_C]);
    account->parts[FM_RESIDENT_MALLOC] = above_zero(fm_sum(g->malloc, -given));
    account->untouched = fm_sum(account->untouched, fm_sum(g->untouched_python, g->untouched_c));
    int64_t known = 0;
    for (int i = 0; i < FM_RESIDENT_REST; i++)
        known = fm_sum(known, account->parts[i]);
    account->parts[FM_RESIDENT_REST] = fm_sum(account->rss, -known);
}

static void forget(struct fm_residence *r)
{
    for (size_t i = 0; i < r->libraries.len; i++)
        free(r->libraries.data[i].path);
    r->libraries.len = 0;
    r->account = (struct fm_resident){ 0 };
}

bool fm_residence_read(struct fm_residence *r, pid_t pid, const int stores[2], int64_t rss,
                       uint64_t now_ns)
{
    struct fm_error err = FM_ERROR_INIT;
    struct residence_reading g = { .r = r, .pid = pid };
    fm_pages_open(&g.pages, pid);
    bool ok = g.pages.fd >= 0 && read_store(&g, stores) &&
              fm_maps_read(&g.maps, pid, NULL, &err) == 0 && g.maps.list.len > 0;
    if (ok) {
        widen_stacks(&g);
        forget(r);
        r->account.rss = rss;
        r->account.at_ns = now_ns;
        for (size_t i = 0; i < g.maps.list.len; i++)
            count_mapping(&g, i);
        count_blocks(&g);
        divide(&g);
    }
    fm_pages_close(&g.pages);
    fm_maps_release(&g.maps);
    fm_vec_release(&g.spans);
    fm_vec_release(&g.blocks);
    return ok;
}

void fm_residence_copy(struct fm_residence *to, const struct fm_residence *from)
{
    forget(to);
    to->account = from->account;
    for (size_t i = 0; i < from->libraries.len; i++) {
        struct fm_residence_library library = from->libraries.data[i];
        library.path = fm_strdup(library.path);
        fm_vec_push(&to->libraries, library);
    }
}

void fm_residence_release(struct fm_residence *r)
{
    forget(r);
    fm_vec_release(&r->libraries);
}
