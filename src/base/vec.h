/*
 * A growable array of any type, for the tool.
 *
 *     FM_VEC(struct fm_edge) edges = {0};
 *     fm_vec_push(&edges, edge);
 *     for (size_t i = 0; i < edges.len; i++) use(edges.data[i]);
 *     fm_vec_release(&edges);
 *
 * Invariant: data[0..len) is initialised; cap >= len; a zeroed vector is empty and valid.
 */
#ifndef FM_BASE_VEC_H
#define FM_BASE_VEC_H

#include "base/memory.h"

#define FM_VEC(type)                                                                               \
    struct {                                                                                       \
        type *data;                                                                                \
        size_t len, cap;                                                                           \
    }

/* Make room for at least `n` elements in all. */
#define fm_vec_reserve(v, n)                                                                       \
    do {                                                                                           \
        size_t fm_need_ = (n);                                                                     \
        if (fm_need_ > (v)->cap) {                                                                 \
            size_t fm_cap_ = (v)->cap ? (v)->cap * 2 : 16;                                         \
            if (fm_cap_ < fm_need_)                                                                \
                fm_cap_ = fm_need_;                                                                \
            (v)->data = fm_realloc((v)->data, fm_cap_, sizeof *(v)->data);                         \
            (v)->cap = fm_cap_;                                                                    \
        }                                                                                          \
    } while (0)

#define fm_vec_push(v, value)                                                                      \
    do {                                                                                           \
        fm_vec_reserve((v), (v)->len + 1);                                                         \
        (v)->data[(v)->len++] = (value);                                                           \
    } while (0)

#define fm_vec_release(v)                                                                          \
    do {                                                                                           \
        free((v)->data);                                                                           \
        (v)->data = NULL;                                                                          \
        (v)->len = (v)->cap = 0;                                                                   \
    } while (0)

#endif
