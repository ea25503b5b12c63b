/* The calling contexts of a heap store; see contexts.h. */
#include "target/library/contexts.h"

#include "base/memory.h"
#include "record/formats/python/marshal.h"
#include "record/model/profile.h"
#include "target/library/alive.h"

static void put_text(const struct fm_profile *p, uint32_t string, struct fm_buffer *out)
{
    fm_marshal_put_text(out, fm_strings_get(p->strings, string),
                        fm_strings_len(p->strings, string));
}

static void put_functions(const struct fm_profile *p, struct fm_buffer *out)
{
    fm_marshal_put_tuple(out, (uint32_t)p->functions.len);
    for (size_t i = 0; i < p->functions.len; i++) {
        fm_marshal_put_tuple(out, 2);
        put_text(p, p->functions.data[i].file, out);
        put_text(p, p->functions.data[i].qualname, out);
    }
}

/* By node: where it goes, from 0 on, or FM_NONE; `*ret_count` of them. Caller frees. */
static uint32_t *places_new(const struct fm_profile *p, uint32_t *ret_count)
{
    uint32_t *place = fm_calloc(p->nodes.len + 1, sizeof *place);
    uint32_t count = 0;
    for (uint32_t i = (uint32_t)p->nodes.len; i-- > 0;) {
        uint32_t parent = p->nodes.data[i].parent;
        place[i] = place[i] || fm_profile_value(p, FM_METRIC_LEAKED, i) ||
                   fm_profile_value(p, FM_METRIC_PEAK, i);
        if (place[i] && parent != FM_NONE)
            place[parent] = 1;
    }
    for (size_t i = 0; i < p->nodes.len; i++)
        place[i] = place[i] ? count++ : FM_NONE;
    *ret_count = count;
    return place;
}

int fm_contexts_save(const char *path, struct fm_buffer *out, struct fm_error *err)
{
    struct fm_profile *p = fm_alive_load(path, err);
    if (!p)
        return err->status;
    uint32_t count;
    fm_autofree uint32_t *place = places_new(p, &count);
    put_functions(p, out);
    fm_marshal_put_tuple(out, count);
    for (uint32_t i = 0; i < p->nodes.len; i++) {
        const struct fm_node *node = &p->nodes.data[i];
        if (place[i] == FM_NONE)
            continue;
        fm_marshal_put_tuple(out, 5);
        fm_marshal_put_int(out, node->parent == FM_NONE ? -1 : (int64_t)place[node->parent]);
        fm_marshal_put_int(out, node->func);
        fm_marshal_put_int(out, node->line);
        fm_marshal_put_int(out, fm_profile_value(p, FM_METRIC_LEAKED, i));
        fm_marshal_put_int(out, fm_profile_value(p, FM_METRIC_PEAK, i));
    }
    fm_profile_free(p);
    return 0;
}
