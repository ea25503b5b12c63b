/* Source text for a recording; see sources.h. */
#include "record/formats/sources.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/utf8.h"

#define MAX_FILE_BYTES ((off_t)4 << 20)
#define MAX_ALL_BYTES  ((size_t)256 << 20)
#define COPIES         6  /* of the text, about: read, in the profile, in the recorder, in blocks */
#define HARDLY         33 /* one in so many bytes, blocks, samples … */

/* Read a whole regular file of reasonable size; false otherwise. */
static bool read_file(const char *path, struct fm_buffer *text, struct stat *st)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool ok = fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_size <= MAX_FILE_BYTES;
    if (ok) {
        fm_buffer_clear(text);
        fm_buffer_reserve(text, (size_t)st->st_size);
        ssize_t got = 0;
        while (ok && text->len < (size_t)st->st_size) {
            got = read(fd, text->data + text->len, (size_t)st->st_size - text->len);
            ok = got > 0;
            text->len += ok ? (size_t)got : 0;
        }
    }
    close(fd);
    return ok;
}

/* The file as the process saw it: a relative name counts from where the process was started. */
static const char *resolve(const struct fm_profile *p, const char *file, struct fm_buffer *path)
{
    fm_buffer_clear(path);
    if (file[0] != '/' && p->processes.len)
        fm_buffer_addf(path, "%s/", fm_profile_text(p, p->processes.data[0].cwd));
    fm_utf8_add_file_name(path, file, strlen(file));
    return fm_buffer_text(path);
}

static void embed_file(struct fm_profile *p, struct fm_source *source, size_t *all_bytes)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    fm_autobuffer path = FM_BUFFER_INIT;
    struct stat st;
    const char *file = resolve(p, fm_profile_text(p, source->file), &path);
    if (!read_file(file, &text, &st))
        return;
    uint64_t mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    bool known = source->mtime_ns || source->size_bytes;
    if (known && (source->mtime_ns != mtime_ns || source->size_bytes != (uint64_t)st.st_size)) {
        source->state = FM_SOURCE_CHANGED;
        return;
    }
    if (memchr(fm_buffer_text(&text), '\0', text.len) || *all_bytes + text.len > MAX_ALL_BYTES)
        return; /* no text, or more than a recording should carry */
    *all_bytes += text.len;
    source->text = fm_strings_add(p->strings, fm_buffer_text(&text), text.len);
}

/* ---- files that hardly matter ---- */

static bool is_library(const char *file)
{
    return strstr(file, "/lib/python3.") || strstr(file, "-packages/");
}

/* Add the files that have their part of a metric. */
static void add_used(const struct fm_profile *p, enum fm_metric metric, struct fm_map *ret_used)
{
    int64_t *selves = fm_profile_selves_new(p, metric), sum = 0;
    int64_t *by_file = fm_calloc(p->functions.len + 1, sizeof *by_file);
    struct fm_map files = { 0 }; /* the first function of each */
    for (size_t i = 0; i < p->nodes.len; i++) {
        uint32_t func = p->nodes.data[i].func;
        uint32_t first = *fm_map_at(&files, p->functions.data[func].file, func, NULL);
        by_file[first] = fm_sum(by_file[first], selves[i]);
        sum = fm_sum(sum, selves[i] > 0 ? selves[i] : 0);
    }
    for (size_t i = 0; i < p->functions.len; i++)
        if (by_file[i] > sum / HARDLY)
            fm_map_at(ret_used, p->functions.data[i].file, 0, NULL);
    fm_map_release(&files);
    free(by_file);
    free(selves);
}

/* The files of libraries that have hardly anything, and no lines that were asked for. */
static void find_unused(const struct fm_profile *p, struct fm_map *ret_unused)
{
    static const enum fm_metric metrics[] = {
        FM_METRIC_TOTAL, FM_METRIC_CALLS,  FM_METRIC_SAMPLES,
        FM_METRIC_PEAK,  FM_METRIC_LEAKED, FM_METRIC_ALLOCATED
    };
    struct fm_map used = { 0 };
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        if (p->columns[metrics[i]].data)
            add_used(p, metrics[i], &used);
    for (size_t i = 0; i < p->lines.rows.len; i++)
        if (p->lines.rows.data[i].hits) /* else it was only sampled */
            fm_map_at(&used, p->functions.data[p->lines.rows.data[i].func].file, 0, NULL);
    for (size_t i = 0; i < p->functions.len; i++) {
        uint32_t file = p->functions.data[i].file;
        if (is_library(fm_profile_text(p, file)) && !fm_map_find(&used, file))
            fm_map_at(ret_unused, file, 0, NULL);
    }
    fm_map_release(&used);
}

/* The text is most of what a recording of a short run is made of. */
static void expect(const struct fm_profile *p, const struct fm_map *but)
{
    size_t bytes = 0;
    for (size_t i = 0; i < p->sources.len && bytes < MAX_ALL_BYTES; i++) {
        const struct fm_source *source = &p->sources.data[i];
        if (source->state == FM_SOURCE_FILE && source->size_bytes <= (uint64_t)MAX_FILE_BYTES &&
            !fm_map_find(but, source->file))
            bytes += source->size_bytes;
    }
    fm_memory_expect(bytes * COPIES);
}

static void embed_but(struct fm_profile *p, const struct fm_map *but)
{
    struct fm_map have = { 0 };
    size_t all_bytes = 0;
    for (size_t i = 0; i < p->sources.len; i++) {
        struct fm_source *source = &p->sources.data[i];
        fm_map_at(&have, source->file, 0, NULL);
        if (source->state == FM_SOURCE_FILE && !source->text && !fm_map_find(but, source->file))
            embed_file(p, source, &all_bytes);
    }
    for (size_t i = 0; i < p->functions.len; i++) {
        const struct fm_function *f = &p->functions.data[i];
        const char *file = fm_profile_text(p, f->file);
        bool is_new = false;
        if (f->kind == FM_FUNCTION_PYTHON && file[0] && file[0] != '<' &&
            !fm_map_find(but, f->file))
            fm_map_at(&have, f->file, 0, &is_new);
        if (!is_new)
            continue;
        struct fm_source source = { .file = f->file };
        embed_file(p, &source, &all_bytes);
        if (source.text)
            fm_vec_push(&p->sources, source);
    }
    fm_map_release(&have);
}

void fm_sources_embed(struct fm_profile *p)
{
    embed_but(p, &(struct fm_map){ 0 });
}

void fm_sources_embed_used(struct fm_profile *p)
{
    struct fm_map unused = { 0 };
    bool memory = false;
    for (size_t i = 0; i < p->processes.len; i++)
        memory |= p->processes.data[i].memory;
    if (memory)
        find_unused(p, &unused);
    expect(p, &unused);
    embed_but(p, &unused);
    fm_map_release(&unused);
}
