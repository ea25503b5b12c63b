/* When `--lines` chose nothing; see run_lines.h. */
#include "commands/run/lines.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

#define NEAREST 3
#define MAX_LEN 64

/* How many letters must be changed, added or removed to make one name the other. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[MAX_LEN + 1];
    size_t a_len = strnlen(a, MAX_LEN), b_len = strnlen(b, MAX_LEN);
    for (size_t j = 0; j <= b_len; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            unsigned change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            unsigned least = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = change < least ? change : least;
        }
    }
    return row[b_len];
}

static unsigned nearness(const struct fm_profile *p, const struct fm_function *f,
                         const char *pattern)
{
    unsigned by_name = distance(pattern, fm_profile_text(p, f->name));
    unsigned by_qualname = distance(pattern, fm_profile_text(p, f->qualname));
    return by_name < by_qualname ? by_name : by_qualname;
}

/* The functions nearest to the first pattern, best first. */
static size_t find_nearest(const struct fm_profile *p, const char *pattern, uint32_t *ret)
{
    unsigned far[NEAREST];
    size_t count = 0;
    for (uint32_t i = 0; i < p->functions.len; i++) {
        const struct fm_function *f = &p->functions.data[i];
        if (f->kind != FM_FUNCTION_PYTHON || fm_profile_text(p, f->name)[0] == '<')
            continue;
        unsigned d = nearness(p, f, pattern);
        size_t at = count < NEAREST ? count++ : NEAREST;
        while (at > 0 && d < far[at - 1]) {
            if (at < NEAREST) {
                far[at] = far[at - 1];
                ret[at] = ret[at - 1];
            }
            at--;
        }
        if (at < NEAREST) {
            far[at] = d;
            ret[at] = i;
        }
    }
    return count;
}

void fm_run_lines_note(struct fm_profile *p, const char *patterns)
{
    fm_autobuffer text = FM_BUFFER_INIT;
    fm_autofree char *first = fm_strndup(patterns, strcspn(patterns, ","));
    uint32_t nearest[NEAREST];
    if (p->lines.rows.len)
        return;
    size_t count = find_nearest(p, first, nearest);
    fm_buffer_addf(&text, "no function that ran matches %s", patterns);
    for (size_t i = 0; i < count; i++)
        fm_buffer_addf(&text, "%s%s", i ? ", " : "; the nearest: ",
                       fm_profile_text(p, p->functions.data[nearest[i]].qualname));
    fm_profile_note(p, FM_NONE, "lines", 0, fm_buffer_text(&text));
}
