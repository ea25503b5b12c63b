/*
 * Fuzzes the readers of marshal and pstats, and what follows them: a profile that loads must print
 * in every layout, and its own pstats must load again.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/formats/format.h"
#include "record/formats/python/pstats.h"
#include "show/report/report.h"

static void show(const struct fm_profile *p, const struct fm_flat *flat, bool classic)
{
    static FILE *sink;
    static const char *const files[] = { NULL };
    struct fm_query query = { .qualified = true };
    if (!sink)
        sink = fopen("/dev/null", "w");
    struct fm_names *names = fm_names_new(p, flat, classic ? FM_NAMES_LABELS : FM_NAMES_FILES);
    struct fm_report r = { .p = p,
                           .scope = { FM_NONE, FM_NONE },
                           .flat = flat,
                           .names = names,
                           .query = &query,
                           .style = { true, 80 },
                           .out = sink,
                           .files = files,
                           .edges_max = 3,
                           .depth_max = -1 };
    fm_query_sort(&query, classic ? "nfl,time" : "stdname,percall", NULL);
    fm_query_restrict(&query, "[a-z]", NULL);
    fm_query_limit(&query, 50);
    fm_query_run(&query, flat, names, &r.selection);
    if (classic) {
        fm_report_classic(&r);
        fm_report_classic_edges(&r, FM_CALLERS);
        fm_report_classic_edges(&r, FM_CALLEES);
    } else {
        fm_report_header(&r);
        fm_report_functions(&r);
        fm_report_edges(&r, FM_CALLEES);
        fm_report_json(&r, FM_PART_CALLERS);
        fm_report_csv(&r, FM_PART_CALLEES);
    }
    fm_selection_release(&r.selection);
    fm_query_release(&query);
    fm_names_free(names);
}

static void use(struct fm_profile *p)
{
    fm_autobuffer again = FM_BUFFER_INIT;
    struct fm_error err = FM_ERROR_INIT;
    struct fm_flat *combined = fm_pstats_combine(p, p->flat);
    show(p, p->flat, false);
    show(p, combined ? combined : p->flat, true);
    fm_flat_free(combined);
    if (fm_format_pstats.save(p, &again, &err) < 0)
        abort();
    struct fm_profile *q = fm_format_pstats.load(again.data, again.len, "again", &err);
    if (!q)
        abort(); /* what we write we read */
    fm_profile_free(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fm_error err = FM_ERROR_INIT;
    fm_format_pstats.recognise(data, size);
    struct fm_profile *p = fm_format_pstats.load(data, size, "input", &err);
    if (!p && !err.text[0])
        abort(); /* a refusal must say why */
    if (p)
        use(p);
    fm_profile_free(p);
    return 0;
}

#define NUMBERS "g\0\0\0\0\0\0\xe0\x3fg\0\0\0\0\0\0\xf8\x3f"

bool fuzz_seed(unsigned n, struct fm_buffer *out)
{
    /* marshal version 4: references, short texts, small tuples */
    static const char cprofile[] =
        "\xfb\xa9\3\xfa\4a.py\xe9\1\0\0\0\xda\1f)\5\xe9\2\0\0\0i\5\0\0\0" NUMBERS
        "{\xa9\3\xda\1~\xe9\0\0\0\0\xfa\x0c<built-in x>)\4r\5\0\0\0r\5\0\0\0" NUMBERS
        "r\1\0\0\0)\4i\3\0\0\0i\1\0\0\0" NUMBERS "0" /* the key of f itself */
        "r\6\0\0\0)\5r\5\0\0\0l\3\0\0\0\0\0\0\0\1\0" NUMBERS "{00";
    /* version 2, plain counts of the profile module, the sampler's mark, a code object for a name
     */
    static const char others[] =
        "{(\3\0\0\0u\3\0\0\0\xc3\xa9.i\7\0\0\0t\1\0\0\0g(\5\0\0\0i\0\0\0\0i\1\0\0\0" NUMBERS
        "{(\3\0\0\0R\0\0\0\0i\0\0\0\0s\1\0\0\0hi\x09\0\0\0"
        "0"
        "(\3\0\0\0a\1\0\0\0pi\0\0\0\0c\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0s\0\0\0\0(\0\0\0\0"
        "(\0\0\0\0(\0\0\0\0s\0\0\0\0u\1\0\0\0mu\1\0\0\0nu\1\0\0\0q\1\0\0\0s\0\0\0\0s\0\0\0\0"
        "(\5\0\0\0i\1\0\0\0i\1\0\0\0f\3"
        "0.5i\0\0\0\0{0"
        "(\1\0\0\0t\x0b\0\0\0__sampled__T0";
    fm_buffer_clear(out);
    if (n == 0)
        fm_buffer_add(out, cprofile, sizeof cprofile - 1);
    else if (n == 1)
        fm_buffer_add(out, others, sizeof others - 1);
    return n < 2;
}
