/* The traces of a profile, and where their blocks are; see traces.h. */
#include "record/model/trace/traces.h"

#include <stdlib.h>
#include <string.h>

#ifndef __wasm__
#include <fcntl.h>
#include <unistd.h>
#endif

#include "base/memory.h"
#include "record/model/profile.h"

void fm_trace_release(struct fm_trace *trace)
{
    fm_trace_source_drop(trace->source);
    fm_vec_release(&trace->functions);
    fm_vec_release(&trace->names);
    fm_vec_release(&trace->regions);
    fm_vec_release(&trace->streams);
    fm_vec_release(&trace->blocks);
    trace->source = NULL;
}

void fm_traces_release(struct fm_traces *traces)
{
    for (size_t i = 0; i < traces->list.len; i++)
        fm_trace_release(&traces->list.data[i]);
    fm_vec_release(&traces->list);
}

uint32_t fm_trace_region_function(struct fm_profile *p, uint32_t name)
{
    struct fm_function f = { .kind = FM_FUNCTION_REGION, .name = name, .qualname = name };
    return fm_profile_function(p, &f);
}

void fm_trace_add_regions(struct fm_profile *p, struct fm_trace *trace, const uint8_t *is_region,
                          size_t count)
{
    trace->regions.len = 0;
    for (size_t id = 0; id < count; id++) {
        uint32_t name = id && id < trace->names.len ? trace->names.data[id] : FM_NONE;
        if (!id)
            name = fm_profile_string(p, "garbage collection");
        fm_vec_push(&trace->regions,
                    is_region[id] && name != FM_NONE ? fm_trace_region_function(p, name) : FM_NONE);
    }
}

void fm_trace_source_drop(struct fm_trace_source *source)
{
    if (!source || --source->users)
        return;
    source->release(source->context);
    free(source);
}

static struct fm_trace_source *new_source(bool (*read)(void *, uint64_t, void *, size_t),
                                          void (*release)(void *), void *context)
{
    struct fm_trace_source *source = fm_calloc(1, sizeof *source);
    *source = (struct fm_trace_source){ read, release, context, 1 };
    return source;
}

/* ---- bytes ---- */

struct source_bytes {
    const uint8_t *data;
    size_t len;
};

static bool read_bytes(void *context, uint64_t at, void *into, size_t bytes)
{
    const struct source_bytes *of = context;
    if (at > of->len || bytes > of->len - at)
        return false;
    memcpy(into, of->data + at, bytes);
    return true;
}

struct fm_trace_source *fm_trace_source_bytes(const void *bytes, size_t len)
{
    struct source_bytes *of = fm_calloc(1, sizeof *of);
    *of = (struct source_bytes){ bytes, len };
    return new_source(read_bytes, free, of);
}

/* ---- a file ---- */

#ifdef __wasm__ /* there are no files */
struct fm_trace_source *fm_trace_source_file(int fd)
{
    (void)fd;
    return NULL;
}

struct fm_trace_source *fm_trace_source_path(const char *path)
{
    (void)path;
    return NULL;
}
#else
struct source_file {
    int fd;
};

static bool read_at(int fd, uint64_t at, uint8_t *to, size_t bytes)
{
    while (bytes) {
        ssize_t got = pread(fd, to, bytes, (off_t)at);
        if (got <= 0)
            return false;
        to += got;
        at += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return true;
}

static bool read_file(void *context, uint64_t at, void *into, size_t bytes)
{
    const struct source_file *of = context;
    return read_at(of->fd, at, into, bytes);
}

static void release_file(void *context)
{
    struct source_file *of = context;
    close(of->fd);
    free(of);
}

struct fm_trace_source *fm_trace_source_file(int fd)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return NULL;
    struct source_file *of = fm_calloc(1, sizeof *of);
    of->fd = own;
    return new_source(read_file, release_file, of);
}

static bool read_path(void *context, uint64_t at, void *into, size_t bytes)
{
    int fd = open(context, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool whole = read_at(fd, at, into, bytes);
    close(fd);
    return whole;
}

struct fm_trace_source *fm_trace_source_path(const char *path)
{
    return new_source(read_path, free, fm_strdup(path));
}
#endif
