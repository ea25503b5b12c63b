/*
 * What reports of samples share: how many there are, how far shares may be off, and the states of
 * threads as text.
 *
 * The error of a share. If n samples fell at random and k of them into a function, the share k/n is
 * right within a Wilson score interval; its confidence here is 95 %. What is shown is the distance
 * from the share to the farther end of that interval, so it is never too small, also not for a
 * share of 0 or 100 %. Over all shares it is largest at one half: the error of the whole report.
 *
 * n counts what was seen whole. A partial sample says where a thread was only in part: it is no
 * evidence for shares. How many are partial is known of processes; parts of them (a thread, some
 * states) are taken to have as large a share.
 */
#ifndef FM_REPORT_SAMPLING_H
#define FM_REPORT_SAMPLING_H

#include "base/buffer.h"
#include "record/model/derive/flat.h"
#include "show/report/number.h"
#include "show/report/table.h"

/* The samples of the processes and threads in scope. */
struct fm_sampling {
    bool any;                         /* some process in scope was sampled */
    int64_t samples;                  /* in the trees shown */
    int64_t whole;                    /* of these: seen whole */
    int64_t partial, lost;            /* of the processes; 0 if only one thread is shown */
    double partial_share, lost_share; /* of the processes, fractions; also for one thread */
    bool of_thread;                   /* only one is shown */
    int64_t rounds;
    double asked_hz;   /* 0: as fast as it goes */
    double reached_hz; /* rounds by time; 0 if unknown */
    bool mixed;        /* processes were sampled in different ways */
    enum fm_sample_mode mode;
    int64_t cpu_ns, span_ns; /* processor time of the sampler; wall time of what was sampled */
};

struct fm_sampling fm_sampling_of(const struct fm_profile *p, const struct fm_flat_scope *scope);
/* From the first start to the last end of the processes in scope, or of those that were sampled. Each run
 * counts for itself: between merged recordings, and on the clocks of several machines, lies nothing. */
int64_t fm_runs_wall_ns(const struct fm_profile *p, const struct fm_flat_scope *scope,
                        bool sampled);
const char *fm_sample_mode_name(enum fm_sample_mode mode); /* "wall", "CPU", "GIL" */

/* The error of the share part/whole, and of any share, as fractions; 1 if there is no sample. */
double fm_sampling_error(int64_t part, int64_t whole);
double fm_sampling_error_max(int64_t whole);
/* The same of part/all of the samples, some of which were not seen whole. */
double fm_sampling_error_of(const struct fm_sampling *s, int64_t part, int64_t all);
/* In percent: "0.4". */
char *fm_sampling_write_error(char *out, const struct fm_sampling *s, int64_t part, int64_t all);

/* The header's sentences: "12,345 samples at 1,000 Hz (wall), 123 partial (1.0 %), 0 lost", "shares
 * of the 12,222 seen whole are right within ± 0.9 % (95 %)", and what watching cost. */
void fm_sampling_describe(const struct fm_sampling *s, struct fm_buffer *out);
void fm_sampling_describe_error(const struct fm_sampling *s, const char *what,
                                struct fm_buffer *out); /* "shares"; "states" beside exact times */
void fm_sampling_describe_cost(const struct fm_sampling *s, struct fm_buffer *out);

/* ---- states ---- */

void fm_states_add(int64_t to[FM_STATE_COUNT], const int64_t state_ns[FM_STATE_COUNT]);
int64_t fm_states_sum(const int64_t state_ns[FM_STATE_COUNT]);

/* "py 62 · C 20 · gil 18": percent of the sum, the largest first, three at most. */
char *fm_states_write(char *out, const int64_t state_ns[FM_STATE_COUNT]);

/* "pppppCCg": eight cells, each the letter of a state. */
#define FM_STATES_CELLS 8
char *fm_states_write_bar(char *out, const int64_t state_ns[FM_STATE_COUNT]);
/* A line that says what the letters stand for, those that occur in `state_ns`; nothing on a page
 * that has words. */
void fm_states_print_legend(const struct fm_style *style, FILE *out,
                            const int64_t state_ns[FM_STATE_COUNT]);

/* Is a page too narrow for words? */
static inline bool fm_states_as_bar(const struct fm_style *style)
{
    return style->width > 0 && style->width < 116;
}

/* A cell with the states, in words or as a bar, as the page allows. */
void fm_states_cell(struct fm_table *t, const int64_t state_ns[FM_STATE_COUNT]);

/* The states of a node itself. */
void fm_states_of_node(const struct fm_profile *p, uint32_t node, int64_t state_ns[FM_STATE_COUNT]);

/* Per thread: its samples, and the time of its states. Caller frees. */
struct fm_thread_states {
    int64_t samples;
    int64_t state_ns[FM_STATE_COUNT];
};
struct fm_thread_states *fm_thread_states_new(const struct fm_profile *p);

#endif
