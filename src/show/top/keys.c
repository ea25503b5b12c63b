/* The keys of `fathom top`; see keys.h. */
#include "show/top/keys.h"

#include <stddef.h>

#include "base/memory.h"

const struct fm_top_key fm_top_keys[] = {
#define X(name, a, b, shown, word, help) { FM_TOP_##name, { a, b }, shown, word, help },
    FM_TOP_KEY_LIST(X)
#undef X
};
const unsigned fm_top_keys_count = FM_COUNT(fm_top_keys);

enum fm_top_action fm_top_action_of(uint32_t key)
{
    for (unsigned i = 0; key && i < fm_top_keys_count; i++)
        for (size_t k = 0; k < FM_COUNT(fm_top_keys[i].keys); k++)
            if (fm_top_keys[i].keys[k] == key)
                return (enum fm_top_action)fm_top_keys[i].action;
    return FM_TOP_NOTHING;
}
