/* Lines of two recordings; see diff_lines.h. */
#include "show/report/diff/diff_lines.h"

#include <stdlib.h>
#include <string.h>

#include "show/report/text.h"

#define PAIRS_MAX 4000000u /* comparisons in one function; above it, distances count */

/* The lines of one function, on one side. */
struct line_group {
    struct fm_diff_line *lines;
    size_t len;
    uint32_t first_line;
    const struct fm_text *text; /* NULL: the recording does not hold it */
};

static int compare(const void *a, const void *b)
{
    const struct fm_diff_line *x = a, *y = b;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Without the blanks around it. */
static const char *text_of(const struct line_group *g, size_t i, size_t *len)
{
    uint32_t line = g->lines[i].line;
    if (!g->text || !line || line > fm_text_count(g->text))
        return NULL;
    const char *text = fm_text_line(g->text, line, len);
    while (*len && (text[*len - 1] == ' ' || text[*len - 1] == '\t' || text[*len - 1] == '\r'))
        --*len;
    while (*len && (*text == ' ' || *text == '\t')) {
        text++;
        --*len;
    }
    return *len ? text : NULL;
}

/* How much of two lines is the same, at their beginning and end: 0 to 1, and 1 for equal ones alone. */
static double likeness(const struct line_group g[FM_SIDES], size_t before, size_t now)
{
    size_t a_len, b_len, same = 0, end = 0;
    const char *a = text_of(&g[FM_BEFORE], before, &a_len);
    const char *b = text_of(&g[FM_NOW], now, &b_len);
    if (!a || !b)
        return 0;
    size_t less = a_len < b_len ? a_len : b_len, more = a_len < b_len ? b_len : a_len;
    while (same < less && a[same] == b[same])
        same++;
    while (end < less - same && a[a_len - 1 - end] == b[b_len - 1 - end])
        end++;
    return (double)(same + end) / (double)more;
}

/* For the time being, the place of its partner. */
static void join(struct line_group g[FM_SIDES], size_t before, size_t now)
{
    g[FM_NOW].lines[now].number = (uint32_t)before;
    g[FM_BEFORE].lines[before].number = (uint32_t)now;
}

/* Each finds the one that is most alike of those that are not found yet, of equal ones the first. */
static void match_texts(struct line_group g[FM_SIDES], double least)
{
    for (size_t now = 0; now < g[FM_NOW].len; now++) {
        double most = 0;
        size_t found = 0;
        for (size_t before = 0; before < g[FM_BEFORE].len; before++) {
            bool is_free = g[FM_BEFORE].lines[before].number == FM_NONE &&
                           g[FM_NOW].lines[now].number == FM_NONE;
            double alike = is_free ? likeness(g, before, now) : 0;
            if (alike > most) {
                most = alike;
                found = before;
            }
        }
        if (most > 0 && most >= least)
            join(g, found, now);
    }
}

/* Neither is found yet, and their texts say nothing: one of both has none. */
static bool is_open(const struct line_group g[FM_SIDES], size_t before, size_t now)
{
    size_t len;
    return g[FM_BEFORE].lines[before].number == FM_NONE && g[FM_NOW].lines[now].number == FM_NONE &&
           !(text_of(&g[FM_BEFORE], before, &len) && text_of(&g[FM_NOW], now, &len));
}

/* Lines that are as far from these two; both sides are in the order of their lines. How many are. */
static size_t match_distances(struct line_group g[FM_SIDES], uint32_t before, uint32_t now,
                              bool joins)
{
    size_t i = 0, k = 0, found = 0;
    while (i < g[FM_BEFORE].len && k < g[FM_NOW].len) {
        int64_t was = (int64_t)g[FM_BEFORE].lines[i].line - before;
        int64_t is = (int64_t)g[FM_NOW].lines[k].line - now;
        bool pair = was == is && is_open(g, i, k);
        found += pair;
        if (pair && joins)
            join(g, i, k);
        i += was <= is;
        k += is <= was;
    }
    return found;
}

/* By how far they are from where the function begins, unless their numbers themselves fit better: not every file
 * knows where functions begin. */
static void match_numbers(struct line_group g[FM_SIDES])
{
    uint32_t before = g[FM_BEFORE].first_line, now = g[FM_NOW].first_line;
    if (match_distances(g, 0, 0, false) > match_distances(g, before, now, false))
        before = now = 0;
    match_distances(g, before, now, true);
}

/* Sources that were made while the program ran share a file's name, "<string>", and one of them is its text: lines
 * behind its end have none, and go by their numbers as those of a file that is not there. */
static void match_group(struct line_group g[FM_SIDES])
{
    bool few = g[FM_BEFORE].len * g[FM_NOW].len <= PAIRS_MAX;
    if (g[FM_BEFORE].text && g[FM_NOW].text && few) {
        match_texts(g, 1);
        match_texts(g, 1.0 / 3);
    }
    if (!few)
        g[FM_BEFORE].text = g[FM_NOW].text = NULL;
    match_numbers(g);
}

/* Partners get one number, the others one each. */
static uint32_t number_group(struct line_group g[FM_SIDES], uint32_t next)
{
    for (size_t i = 0; i < g[FM_NOW].len; i++) {
        uint32_t partner = g[FM_NOW].lines[i].number;
        if (partner != FM_NONE)
            g[FM_BEFORE].lines[partner].number = next;
        g[FM_NOW].lines[i].number = next++;
    }
    for (size_t i = 0; i < g[FM_BEFORE].len; i++)
        if (g[FM_BEFORE].lines[i].number == FM_NONE)
            g[FM_BEFORE].lines[i].number = next++;
    return next;
}

static struct line_group take_group(const struct fm_diff *d, int side, fm_diff_lines *lines,
                                    size_t from, uint32_t name, struct fm_texts *texts)
{
    struct line_group g = { .lines = lines->data + from };
    const char *why;
    while (from + g.len < lines->len && lines->data[from + g.len].name == name)
        g.len++;
    if (!g.len)
        return g;
    uint32_t func = g.lines[0].func;
    g.first_line = d->side[side].p->functions.data[func].line;
    g.text = fm_texts_find(texts, func, &why);
    return g;
}

uint32_t fm_diff_match_lines(const struct fm_diff *d, fm_diff_lines lines[FM_SIDES])
{
    struct fm_texts *texts[FM_SIDES];
    size_t at[FM_SIDES] = { 0 };
    uint32_t next = 0;
    for (int side = 0; side < FM_SIDES; side++) {
        texts[side] = fm_texts_new(d->side[side].p);
        for (size_t i = 0; i < lines[side].len; i++)
            lines[side].data[i].number = FM_NONE;
        if (lines[side].len)
            qsort(lines[side].data, lines[side].len, sizeof *lines[side].data, compare);
    }
    while (at[FM_BEFORE] < lines[FM_BEFORE].len || at[FM_NOW] < lines[FM_NOW].len) {
        struct line_group g[FM_SIDES];
        uint32_t name = FM_NONE;
        for (int side = 0; side < FM_SIDES; side++)
            if (at[side] < lines[side].len && lines[side].data[at[side]].name < name)
                name = lines[side].data[at[side]].name;
        for (int side = 0; side < FM_SIDES; side++)
            g[side] = take_group(d, side, &lines[side], at[side], name, texts[side]);
        match_group(g);
        next = number_group(g, next);
        for (int side = 0; side < FM_SIDES; side++)
            at[side] += g[side].len;
    }
    fm_texts_free(texts[FM_BEFORE]);
    fm_texts_free(texts[FM_NOW]);
    return next;
}
