/* The names of threads; see thread_names.h. */
#include "watch/cpython/thread_names.h"

#define MAX_THREADS 65536

void fm_thread_names_read(struct fm_thread_names *names, const struct fm_heap *heap, fm_addr interp)
{
    fm_addr module = fm_module_find(heap, interp, "threading");
    fm_addr active = module ? fm_module_attribute(heap, module, "_active") : 0;
    struct fm_items items = { 0 };
    if (active)
        fm_dict_items(heap, active, MAX_THREADS, &items);
    for (size_t i = 0; i < items.len; i++) {
        struct fm_thread_name name = { 0 };
        int64_t ident;
        fm_addr text = fm_object_attribute(heap, items.data[i].value, "_name");
        if (!fm_object_int(heap, items.data[i].key, &ident) || !text ||
            !fm_object_text(heap, text, name.text, sizeof name.text))
            continue;
        name.ident = (uint64_t)ident;
        fm_vec_push(&names->list, name);
    }
    fm_vec_release(&items);
}

void fm_thread_names_release(struct fm_thread_names *names)
{
    fm_vec_release(&names->list);
}
