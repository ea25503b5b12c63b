/*
 * Chrome's trace events: chrome_read.c reads them, chrome_build.c makes a profile of what was read (chrome_marks.c: of
 * what lies beside calls), chrome_write.c writes them.
 *
 * A file is a list of events, each an object: a kind (`ph`), a time in microseconds (`ts`), a process and a thread.
 * X is a call with its duration, B and E are its begin and end, b, e and n belong to something asynchronous, i is an
 * instant, C a counter, M says a name, s, t and f are arrows. Order does not matter but for B and E of one instant.
 */
#ifndef FM_FORMATS_CHROME_H
#define FM_FORMATS_CHROME_H

#include "base/map.h"
#include "base/strings.h"
#include "record/formats/format.h"
#include "record/formats/timeline/json_pull.h"
#include "record/model/profile.h"

/* A call, as read. */
struct fm_chrome_span {
    int64_t begin_ns, end_ns;
    uint32_t thread;
    uint32_t func;
    uint32_t order; /* in the file */
    bool open;      /* it had no end */
};

/* B or E. */
struct fm_chrome_edge {
    int64_t at_ns;
    uint32_t thread;
    uint32_t func; /* FM_NONE: an E without a name, which ends whatever was begun last */
    uint32_t order;
    bool ends;
};

/* Something beside calls. */
struct fm_chrome_mark {
    int64_t begin_ns, end_ns;
    uint64_t value;
    uint32_t process, thread; /* numbers in `numbers` */
    uint32_t name;
    uint32_t
        before; /* of what is asynchronous and has not ended: the one of its key that began before, + 1 */
    uint8_t kind; /* enum fm_mark_kind */
    bool open;
};

/* A thread of the file, which is one of the profile. */
struct fm_chrome_thread {
    uint32_t thread, process;
    int64_t first_ns, last_ns;
    bool seen; /* it has calls */
};

struct fm_chrome {
    struct fm_profile *p;
    struct fm_strings *numbers; /* of processes and threads, which may be any text */
    struct fm_map processes, threads, functions;
    FM_VEC(struct fm_chrome_thread) thread_list;
    FM_VEC(struct fm_chrome_span) spans;
    FM_VEC(struct fm_chrome_edge) edges;
    FM_VEC(struct fm_chrome_mark) marks;
    struct fm_map open_marks; /* what is asynchronous, by its key: the one that began last, + 1 */
    bool viztracer;
    bool overflow;           /* viztracer's ring forgot its beginning */
    uint64_t async, strange; /* events that are no calls; that make no sense */
    int64_t base_real_ns;    /* what 0 is since 1970, if it is said */
    struct fm_error *err;
};

/* The function of a name as tracers write them: "f (file:line)", "file(line): f", or anything. */
uint32_t fm_chrome_function(struct fm_chrome *c, const struct fm_slice *name,
                            const struct fm_slice *category);

/* By their numbers in `numbers`; made if they are new. A thread is a row of `thread_list`. */
uint32_t fm_chrome_process(struct fm_chrome *c, uint32_t number);
uint32_t fm_chrome_thread(struct fm_chrome *c, uint32_t process_number, uint32_t number);

/* Something asynchronous began; the last of this key ended (false: none had begun). */
void fm_chrome_async_begin(struct fm_chrome *c, uint64_t key, const struct fm_chrome_mark *mark);
bool fm_chrome_async_end(struct fm_chrome *c, uint64_t key, int64_t at_ns);

/* The lanes of all processes, while they are made; one for each process, NULL while it has none. */
struct fm_trace_build;
void fm_chrome_give_marks(struct fm_chrome *c, struct fm_trace_build **builds, int64_t start_ns);

/* Everything was read: make trees of it, and lanes. */
void fm_chrome_build(struct fm_chrome *c);

/* chrome_write.c */
int fm_chrome_save(const struct fm_profile *p, const struct fm_save_choice *choice, int fd,
                   struct fm_error *err);

#endif
