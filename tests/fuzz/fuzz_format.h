/*
 * What the targets of foreign formats that hold stacks have in common: what loads is consistent, is
 * written, and is read again; a refusal says why.
 */
#ifndef FM_TESTS_FUZZ_FORMAT_H
#define FM_TESTS_FUZZ_FORMAT_H

#include <stdlib.h>

#include "record/formats/format.h"
#include "record/model/derive/flat.h"

static inline void fuzz_check_profile(const struct fm_profile *p)
{
    for (size_t i = 0; i < p->nodes.len; i++)
        if (p->nodes.data[i].func >= p->functions.len ||
            (p->nodes.data[i].parent != FM_NONE && p->nodes.data[i].parent >= i))
            abort();
    for (size_t i = 0; i < p->lines.rows.len; i++)
        if (p->lines.rows.data[i].func >= p->functions.len)
            abort();
    fm_flat_free(fm_flat_new(p, NULL));
}

static inline void fuzz_format(const struct fm_format *format, const uint8_t *data, size_t size)
{
    struct fm_error err = FM_ERROR_INIT;
    fm_autobuffer again = FM_BUFFER_INIT;
    format->recognise(data, size);
    struct fm_profile *p = format->load(data, size, "input", &err), *q = NULL;
    if (!p && !err.text[0])
        abort(); /* a refusal must say why */
    if (!p)
        return;
    fuzz_check_profile(p);
    int status = format->save ? format->save(p, &again, &err) : FM_UNSUPPORTED;
    if (status == 0 && !(q = format->load(again.data, again.len, "again", &err)))
        abort(); /* what we write we read */
    if (status < 0 && status != FM_UNSUPPORTED)
        abort();
    if (q)
        fuzz_check_profile(q);
    fm_profile_free(q);
    fm_profile_free(p);
}

#endif
