/*
 * Growing a tree of calling contexts: the child of this parent with this function, made if it is
 * new. Whoever meets stacks or paths one after the other (samples, foreign files, two trees that
 * become one) builds its tree with this.
 *
 *     struct fm_tree tree = { .p = profile };
 *     node = fm_tree_child(&tree, node, func);
 *     fm_tree_release(&tree);
 *
 * Paths that were there before are known to it by fm_tree_know alone.
 */
#ifndef FM_MODEL_TREE_H
#define FM_MODEL_TREE_H

#include "base/map.h"
#include "record/model/profile.h"

struct fm_tree {
    struct fm_profile *p;
    struct fm_map children; /* (parent, function) → node */
};

/* The node known as the child of `parent` for `func`; `fresh`, which the caller makes, if there is
 * none yet. For trees that are no profile's. */
static inline uint32_t fm_tree_at(struct fm_map *children, uint32_t parent, uint32_t func,
                                  uint32_t fresh, bool *is_new)
{
    return *fm_map_at(children, fm_map_pair(parent, func), fresh, is_new);
}

/* Beyond four billion contexts there are no new ones: what is deeper stays with the parent. */
static inline uint32_t fm_tree_child(struct fm_tree *tree, uint32_t parent, uint32_t func)
{
    bool is_new;
    uint32_t fresh = (uint32_t)tree->p->nodes.len;
    if (tree->p->nodes.len >= FM_NONE - 1)
        return parent;
    uint32_t node = fm_tree_at(&tree->children, parent, func, fresh, &is_new);
    return is_new ? fm_profile_node(tree->p, parent, func) : node;
}

/* Let `node`, which is there already, be that child; of several the first. */
static inline void fm_tree_know(struct fm_tree *tree, uint32_t parent, uint32_t func, uint32_t node)
{
    fm_map_at(&tree->children, fm_map_pair(parent, func), node, NULL);
}

static inline void fm_tree_release(struct fm_tree *tree)
{
    fm_map_release(&tree->children);
}

#endif
