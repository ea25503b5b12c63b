/* What is alive in a heap store; see alive.h. */
#include "target/library/alive.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "record/formats/python/marshal.h"
#include "record/model/derive/flat.h"
#include "record/model/derive/shed.h"
#include "record/model/live/live_heap.h"

int fm_alive_read(const char *path, struct fm_buffer *into, struct fm_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int errnum = errno;
        if (fd >= 0)
            close(fd);
        return fm_error_set_errno(err, FM_CANNOT_READ, errnum, "%s", path);
    }
    size_t left = (size_t)st.st_size;
    fm_buffer_reserve(into, left);
    while (left) {
        ssize_t some = read(fd, into->data + into->len, left);
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            break; /* what is missing is noticed by who reads the store */
        into->len += (size_t)some;
        left -= (size_t)some;
    }
    close(fd);
    return 0;
}

/* What does not fit into the folder of the run goes on in another, to which it links, or beside it. */
static void read_more(const char *path, struct fm_buffer *into)
{
    const char *slash = strrchr(path, '/');
    struct fm_error err = FM_ERROR_INIT;
    fm_autobuffer name = FM_BUFFER_INIT;
    fm_buffer_addf(&name, "%.*s/more/%s%s", slash ? (int)(slash - path) : 1, slash ? path : ".",
                   slash ? slash + 1 : path, FM_HEAP_MORE_SUFFIX);
    if (fm_alive_read(name.data, into, &err) == 0)
        return;
    fm_buffer_clear(&name);
    fm_buffer_addf(&name, "%s%s", path, FM_HEAP_MORE_SUFFIX);
    fm_alive_read(name.data, into, &err); /* most have none */
}

static int64_t sum_of(const struct fm_profile *p, enum fm_metric metric)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->nodes.len; i++)
        sum = fm_sum(sum, fm_profile_value(p, metric, i));
    return sum;
}

static void put_totals(const struct fm_profile *p, struct fm_buffer *out)
{
    static const enum fm_metric metrics[] = {
        FM_METRIC_LEAKED,      FM_METRIC_LEAKED_BLOCKS, FM_METRIC_PEAK,
        FM_METRIC_PEAK_BLOCKS, FM_METRIC_ALLOCATED,     FM_METRIC_BLOCKS,
    };
    fm_marshal_put_tuple(out, FM_COUNT(metrics) + 2);
    for (size_t i = 0; i < FM_COUNT(metrics); i++)
        fm_marshal_put_int(out, sum_of(p, metrics[i]));
    fm_marshal_put_int(out, (int64_t)p->processes.data[0].memory_own_bytes);
    fm_marshal_put_int(out, (int64_t)p->processes.data[0].memory_sample_bytes);
}

static void put_text(const struct fm_profile *p, uint32_t string, struct fm_buffer *out)
{
    fm_marshal_put_text(out, fm_strings_get(p->strings, string),
                        fm_strings_len(p->strings, string));
}

static bool is_alive(const struct fm_flat_row *row)
{
    return row->self[FM_METRIC_LEAKED] || row->total[FM_METRIC_LEAKED];
}

static void put_rows(struct fm_profile *p, enum fm_memory_rows rows, struct fm_buffer *out)
{
    free(fm_profile_shed_time(p, rows));
    struct fm_flat *flat = fm_flat_new(p, &(struct fm_flat_scope){ FM_NONE, FM_NONE });
    uint32_t count = 0;
    for (size_t i = 0; i < flat->rows.len; i++)
        count += is_alive(&flat->rows.data[i]);
    fm_marshal_put_tuple(out, count);
    for (size_t i = 0; i < flat->rows.len; i++) {
        const struct fm_flat_row *row = &flat->rows.data[i];
        const struct fm_function *f = &p->functions.data[row->func];
        if (!is_alive(row))
            continue;
        fm_marshal_put_tuple(out, 6);
        put_text(p, f->file, out);
        fm_marshal_put_int(out, f->line);
        put_text(p, f->qualname, out);
        fm_marshal_put_int(out, row->self[FM_METRIC_LEAKED]);
        fm_marshal_put_int(out, row->self[FM_METRIC_LEAKED_BLOCKS]);
        fm_marshal_put_int(out, row->total[FM_METRIC_LEAKED]);
    }
    fm_flat_free(flat);
}

static struct fm_profile *load(const struct fm_heap_files *files, const char *path,
                               struct fm_error *err)
{
    struct fm_live_ending ending = { .exit_status = -1 };
    struct fm_profile *p = fm_profile_new();
    if (fm_live_heap_load(p, files, NULL, &ending, err) == 0)
        return p;
    fm_profile_free(p);
    fm_error_context(err, "%s", path);
    return NULL;
}

struct fm_profile *fm_alive_load(const char *path, struct fm_error *err)
{
    fm_autobuffer store = FM_BUFFER_INIT, more = FM_BUFFER_INIT;
    if (fm_alive_read(path, &store, err) < 0)
        return NULL;
    read_more(path, &more);
    struct fm_heap_files files = { store.data, store.len, more.data, more.len };
    return load(&files, path, err);
}

int fm_alive_save(const char *path, struct fm_buffer *out, struct fm_error *err)
{
    static const enum fm_memory_rows lists[] = { FM_ROWS_LINES, FM_ROWS_FUNCTIONS };
    fm_autobuffer store = FM_BUFFER_INIT, more = FM_BUFFER_INIT;
    if (fm_alive_read(path, &store, err) < 0)
        return err->status;
    read_more(path, &more);
    struct fm_heap_files files = { store.data, store.len, more.data, more.len };
    for (size_t i = 0; i < FM_COUNT(lists); i++) {
        struct fm_profile *p = load(&files, path, err);
        if (!p)
            return err->status;
        if (i == 0)
            put_totals(p, out);
        put_rows(p, lists[i], out);
        fm_profile_free(p);
    }
    return 0;
}
