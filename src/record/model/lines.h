/*
 * Lines of functions: what the lines collector recorded, beside the trees.
 *
 * A row is one line of one function in one process, over all its threads. A statement that spans
 * several lines is one row, that of its first line. Times are in nanoseconds:
 *   hits          times the line was begun
 *   total_ns      time on the line, callees included; of nested activations only the outermost
 *                 counts
 *   self_ns       without recorded callees (with --calls: without any callee)
 *   min, max      of one visit, callees included; 0 if none ended
 *   suspended_ns  a generator or coroutine waited here to be resumed
 * and a histogram of visits by inclusive time for quantiles: bucket 2n counts
 * [2^n, 1.5 * 2^n) ns, bucket 2n + 1 counts [1.5 * 2^n, 2^(n+1)) ns.
 *
 * Of a sampled process there are no hits and no visits; total_ns and self_ns are the time of
 * samples, and samples and state_ns say how many ended on the line and what the thread did then.
 *
 * A profile read from .lprof has rows with hits and total_ns only, and function rows (kind PYTHON)
 * without any node.
 */
#ifndef FM_MODEL_LINES_H
#define FM_MODEL_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "record/model/states.h"

#define FM_LINE_BUCKETS 90 /* up to 2^45 ns, about ten hours */

struct fm_line {
    uint32_t process; /* index, or FM_NONE if it came without processes */
    uint32_t func;
    uint32_t line;
    int64_t hits;
    int64_t total_ns, self_ns;
    int64_t min_ns, max_ns;
    int64_t suspended_ns;
    int64_t samples;                  /* of a sampled process: that ended on this line */
    int64_t state_ns[FM_STATE_COUNT]; /* … and their time by state; see model/samples.h */
    /* What the line did to the heap (`memory`: it was recorded): bytes, callees included, of nested
     * activations only the outermost; the heap after the last visit and the highest after any; the
     * most that it stood, during a visit, above where that found it. */
    bool memory;
    int64_t allocated, freed, heap_after, heap_most, above_most;
    uint32_t histogram; /* index into fm_lines.histograms, or FM_NONE */
};

struct fm_line_histogram {
    uint32_t buckets[FM_LINE_BUCKETS];
};

struct fm_lines {
    FM_VEC(struct fm_line) rows; /* by process, then function, then line; see fm_lines_sort */
    FM_VEC(struct fm_line_histogram) histograms;
    FM_VEC(uint32_t) marked; /* functions asked for by decorator or name, in order of function */
    double unit_s;           /* of an imported .lprof: its timer unit, else 0 */
};

struct fm_profile;

/* A new row, to be filled in; with room for a histogram if asked. Valid until the next call. */
struct fm_line *fm_lines_add(struct fm_lines *lines, uint32_t process, uint32_t func, uint32_t line,
                             bool histogram);

/* The row's histogram, made if it has none. Valid until the next call. */
struct fm_line_histogram *fm_lines_histogram(struct fm_lines *lines, struct fm_line *row);

/* Remember that `func` was asked for. */
void fm_lines_mark(struct fm_lines *lines, uint32_t func);

/* Add `extra` (a row of the same function and line) into `row`, histograms included. */
void fm_lines_combine(struct fm_lines *lines, struct fm_line *row, const struct fm_lines *from,
                      const struct fm_line *extra);

/* Put the rows, and what is marked, in order and combine equal ones: to be called after every series
 * of fm_lines_add and fm_lines_mark. */
void fm_lines_sort(struct fm_lines *lines);

/* The table over all processes (FM_NONE) or of one: rows of equal function and line combined; their
 * process is the one asked for. Caller releases. */
struct fm_lines fm_lines_combined(const struct fm_profile *p, uint32_t process);
void fm_lines_release(struct fm_lines *lines);

/* The time that `fraction` (0.5, 0.99) of the visits did not exceed, from the histogram, or 0. */
int64_t fm_lines_quantile_ns(const struct fm_lines *lines, const struct fm_line *row,
                             double fraction);

unsigned fm_line_bucket(int64_t ns);

#endif
