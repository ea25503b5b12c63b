/* What the C tests share: cmocka with its prerequisites, and short ways to build a profile. */
#ifndef FM_TESTS_FIXTURE_H
#define FM_TESTS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "record/model/derive/flat.h"
#include "record/model/profile.h"

/* A Python function named `name` in app.py; the line follows from the name's first letter. */
static inline uint32_t fx_function(struct fm_profile *p, const char *name)
{
    uint32_t string = fm_profile_string(p, name);
    struct fm_function f = { .kind = FM_FUNCTION_PYTHON,
                             .line = (uint32_t)(unsigned char)name[0],
                             .name = string,
                             .qualname = string,
                             .file = fm_profile_string(p, "app.py") };
    return fm_profile_function(p, &f);
}

/* A node with its calls and total time. */
static inline uint32_t fx_node(struct fm_profile *p, uint32_t parent, const char *name,
                               int64_t calls, int64_t total_ns)
{
    uint32_t node = fm_profile_node(p, parent, fx_function(p, name));
    fm_profile_add(p, FM_METRIC_CALLS, node, calls);
    fm_profile_add(p, FM_METRIC_TOTAL, node, total_ns);
    return node;
}

/* A process with one thread; gives the thread's root. */
static inline uint32_t fx_thread(struct fm_profile *p, uint32_t pid)
{
    uint32_t process = fm_profile_process(
        p, &(struct fm_process){ .pid = pid, .exit_status = 0, .profiled = true });
    uint32_t thread = fm_profile_thread(p, &(struct fm_thread){ .process = process, .tid = pid });
    return p->threads.data[thread].root;
}

/* The row of a function in a table, or NULL. */
static inline const struct fm_flat_row *fx_row(const struct fm_profile *p,
                                               const struct fm_flat *flat, const char *name)
{
    for (size_t i = 0; i < flat->rows.len; i++) {
        const struct fm_function *f = &p->functions.data[flat->rows.data[i].func];
        if (strcmp(fm_profile_text(p, f->name), name) == 0)
            return &flat->rows.data[i];
    }
    return NULL;
}

static inline const struct fm_flat_edge *fx_edge(const struct fm_profile *p,
                                                 const struct fm_flat *flat, const char *caller,
                                                 const char *callee)
{
    const struct fm_flat_row *a = fx_row(p, flat, caller), *b = fx_row(p, flat, callee);
    for (size_t i = 0; a && b && i < flat->edges.len; i++) {
        const struct fm_flat_edge *e = &flat->edges.data[i];
        if (&flat->rows.data[e->caller] == a && &flat->rows.data[e->callee] == b)
            return e;
    }
    return NULL;
}

static inline void fx_expect_row(const struct fm_profile *p, const struct fm_flat *flat,
                                 const char *name, int64_t calls, int64_t primitive,
                                 int64_t self_ns, int64_t total_ns)
{
    const struct fm_flat_row *row = fx_row(p, flat, name);
    assert_non_null(row);
    assert_int_equal(row->calls, calls);
    assert_int_equal(row->primitive, primitive);
    assert_int_equal(row->self_ns, self_ns);
    assert_int_equal(row->total_ns, total_ns);
}

static inline void fx_expect_edge(const struct fm_profile *p, const struct fm_flat *flat,
                                  const char *caller, const char *callee, int64_t calls,
                                  int64_t primitive, int64_t self_ns, int64_t total_ns)
{
    const struct fm_flat_edge *edge = fx_edge(p, flat, caller, callee);
    assert_non_null(edge);
    assert_int_equal(edge->calls, calls);
    assert_int_equal(edge->primitive, primitive);
    assert_int_equal(edge->self_ns, self_ns);
    assert_int_equal(edge->total_ns, total_ns);
}

/* The child of `parent` for a function, or FM_NONE. */
static inline uint32_t fx_child(const struct fm_profile *p, uint32_t parent, const char *name)
{
    for (uint32_t i = 0; i < p->nodes.len; i++)
        if (p->nodes.data[i].parent == parent &&
            strcmp(fm_profile_text(p, p->functions.data[p->nodes.data[i].func].name), name) == 0)
            return i;
    return FM_NONE;
}

static inline void fx_expect_node(const struct fm_profile *p, uint32_t node, int64_t calls,
                                  int64_t total_ns)
{
    assert_int_not_equal(node, FM_NONE);
    assert_int_equal(fm_profile_value(p, FM_METRIC_CALLS, node), calls);
    assert_int_equal(fm_profile_value(p, FM_METRIC_TOTAL, node), total_ns);
}

/* The count of the first note of a kind; 0 if there is none. */
static inline uint64_t fx_note(const struct fm_profile *p, const char *kind)
{
    for (size_t i = 0; i < p->notes.len; i++)
        if (strcmp(fm_profile_text(p, p->notes.data[i].kind), kind) == 0)
            return p->notes.data[i].count;
    return 0;
}

#endif
