/* Opening recordings; see inputs.h. */
#include "commands/inputs.h"

#include <string.h>
#include <sys/stat.h>

#include "base/clean.h"
#include "base/memory.h"
#include "record/formats/format.h"
#include "record/model/derive/edit.h"

/* A file and what is made of it take about this many times its size. */
#define MEMORY_PER_BYTE 4

bool fm_inputs_unfinished(const struct fm_profile *p)
{
    return p->processes.len == 0 && !p->flat && fm_profile_fact_get(p, "live");
}

static struct fm_profile *open_one(const char *path, unsigned parts, struct fm_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        fm_memory_expect((size_t)st.st_size * MEMORY_PER_BYTE);
    struct fm_profile *p = fm_profile_open_parts(path, parts, err);
    if (p && fm_inputs_unfinished(p)) {
        fm_error_set(
            err, FM_UNSUPPORTED,
            "%s is of a run that was cut off; type `fathom merge %s -o OUT` to gather what "
            "its processes left",
            path, path);
        fm_profile_free(p);
        p = NULL;
    }
    if (p && p->processes.len == 0 && fm_profile_fact_get(p, "attached")) {
        fm_error_set(err, FM_UNSUPPORTED,
                     "%s holds nothing: fathom attach was cut off before it first saved, which is "
                     "after a second",
                     path);
        fm_profile_free(p);
        p = NULL;
    }
    return p;
}

struct fm_profile *fm_inputs_open(char *const *files, bool as_pstats, unsigned parts,
                                  struct fm_error *err)
{
    struct fm_profile *sum = open_one(files[0], parts, err);
    size_t n = 0;
    while (files[n])
        n++;
    for (size_t i = 1; sum && i < n; i++) {
        struct fm_profile *p = open_one(files[as_pstats ? n - i : i], parts, err);
        if (p) {
            fm_profile_merge(sum, p);
        } else {
            fm_profile_free(sum);
            sum = NULL;
        }
        fm_profile_free(p);
    }
    return sum;
}

static bool is_lack(const struct fm_profile *p, const struct fm_note *note)
{
    const char *kind = fm_profile_text(p, note->kind);
    return strcmp(kind, "cut-off") == 0 || strcmp(kind, "damaged") == 0;
}

const char *fm_inputs_lack(const struct fm_profile *p)
{
    for (size_t i = 0; i < p->notes.len; i++)
        if (is_lack(p, &p->notes.data[i]))
            return fm_profile_text(p, p->notes.data[i].text);
    return NULL;
}

void fm_inputs_warn(const char *verb, const struct fm_profile *p)
{
    for (size_t i = 0; i < p->notes.len; i++) {
        const struct fm_note *note = &p->notes.data[i];
        if (!is_lack(p, note))
            continue;
        if (note->count > 1)
            fm_clean_say(stderr, "fathom %s: %llu %s", verb, (unsigned long long)note->count,
                         fm_profile_text(p, note->text));
        else
            fm_clean_say(stderr, "fathom %s: %s", verb, fm_profile_text(p, note->text));
    }
}
