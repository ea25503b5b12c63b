/*
 * A timeline on its way into a foreign format, piece by piece: which part of it was asked for, and in which order a
 * writer (perfetto.c, chrome_write.c) gets it.
 *
 * Lane after lane, a writer is told of begins and ends, always nested, times never going back; then of the marks of the
 * lane. What is shorter or deeper than asked for is not told: its time stays with its caller. Spans that reach over an
 * end of the range are cut there. Nothing is kept but what is open, the values of a lane and those of all regions with
 * tokens, which may be on other lanes than their marks (of both the first 64 MiB of their text), so the memory does not
 * grow with the trace.
 */
#ifndef FM_FORMATS_EXPORT_H
#define FM_FORMATS_EXPORT_H

#include "base/buffer.h"
#include "record/formats/format.h"
#include "record/model/profile.h"
#include "record/model/trace/lanes/timeline.h"

/* Where the timeline comes from: fm_export_timeline, or a test. Functions as those of timeline.h. */
struct fm_export_from {
    void *context;
    uint64_t start_ns, length_ns; /* of the clock of the machine */
    size_t lanes;
    const struct fm_lane *(*lane)(void *context, size_t lane);
    int (*events)(void *context, size_t lane, uint64_t from_ns, uint64_t to_ns,
                  fm_lane_event_fn *each, void *each_context, struct fm_error *err);
    int (*marks)(void *context, uint32_t lane, uint64_t from_ns, uint64_t to_ns, fm_mark_fn *each,
                 void *each_context, struct fm_error *err);
};

/* Bytes on their way to a file. */
struct fm_export_file {
    int fd;
    struct fm_buffer bytes; /* not yet written */
    struct fm_error *err;
    int status; /* of the first failure: nothing more is written */
};
void fm_export_flush(struct fm_export_file *file);
static inline void fm_export_flush_often(struct fm_export_file *file)
{
    if (file->bytes.len > ((size_t)256 << 10))
        fm_export_flush(file);
}

/* Some values in a row; `list` is NULL if there are none. */
struct fm_export_value {
    uint64_t at_ns; /* of tokens: token_key() of export.c */
    uint64_t depth; /* of its span, + 1; 0: it is of a mark */
    uint32_t name;  /* string id */
    uint32_t text_len;
    size_t text_at;
};
struct fm_export_values {
    const struct fm_export_value *list;
    size_t count;
    uint64_t depth;    /* others are not of it */
    const char *texts; /* of all */
};

/* The next value from `*at` on, or NULL. */
const struct fm_export_value *fm_export_value_next(const struct fm_export_values *values,
                                                   size_t *at);

struct fm_export_writer {
    void *context;
    void (*start)(void *context);
    void (*lane)(void *context, size_t lane); /* what follows is of this one */
    /* With values of what begins and of what ends here. */
    void (*begin)(void *context, const struct fm_time_span *span, uint64_t at_ns,
                  const struct fm_export_values *values);
    void (*end)(void *context, const struct fm_time_span *span, uint64_t at_ns,
                const struct fm_export_values *values);
    /* With values of an instant or a region that does not nest. */
    void (*mark)(void *context, const struct fm_mark *mark, const struct fm_export_values *values);
    void (*finish)(void *context);
};

/* How many spans the choice leaves. */
int fm_export_count(const struct fm_export_from *from, const struct fm_save_choice *choice,
                    uint64_t *spans, struct fm_error *err);

/* Tell the writer everything. It ends early if the file cannot be written. */
int fm_export_run(const struct fm_export_from *from, const struct fm_save_choice *choice,
                  const struct fm_export_writer *writer, const struct fm_export_file *file,
                  struct fm_error *err);

/* Open the timeline of a profile, say how many spans there will be, and have `write` do the rest. */
typedef int fm_export_fn(const struct fm_profile *p, const struct fm_export_from *from,
                         const struct fm_save_choice *choice, int fd, struct fm_error *err);
int fm_export_save(const struct fm_profile *p, const struct fm_save_choice *choice, int fd,
                   fm_export_fn *write, struct fm_error *err);

/* Those of both formats. */
fm_export_fn fm_perfetto_write, fm_chrome_write;

/* A word for a span that is not whole, or left by an exception; NULL: there is nothing to say. Both are true of
 * the part of the timeline that is told. */
const char *fm_export_begin_word(const struct fm_time_span *span);
const char *fm_export_end_word(const struct fm_time_span *span);

/* How spans are called: by what they are. */
const char *fm_export_category(const struct fm_profile *p, const struct fm_time_span *span);

#endif
