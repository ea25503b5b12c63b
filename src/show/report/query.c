/*
 * Sorting and restricting rows; see query.h.
 *
 * Sorting is stable, as Python's is: rows that compare equal keep their order.
 */
#include "show/report/query.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <errno.h>
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#include "base/clean.h"
#include "show/report/number.h"

/* A key. `title` is what pstats prints behind "Ordered by:". */
struct sort_key {
    const char *name;
    bool of_pstats;
    const char *title;
    int n;
    enum fm_sort_field fields[3];
};

/* Those that are no metric by its own name; the last ones are not listed to people. */
static const struct sort_key fixed_keys[] = {
    { "calls", true, "call count", 1, { FM_SORT_CALLS } },
    { "ncalls", true, "call count", 1, { FM_SORT_CALLS } },
    { "cumtime", true, "cumulative time", 1, { FM_SORT_TOTAL } },
    { "cumulative", true, "cumulative time", 1, { FM_SORT_TOTAL } },
    { "filename", true, "file name", 1, { FM_SORT_FILE } },
    { "line", true, "line number", 1, { FM_SORT_LINE } },
    { "module", true, "file name", 1, { FM_SORT_FILE } },
    { "name", true, "function name", 1, { FM_SORT_NAME } },
    { "nfl", true, "name/file/line", 3, { FM_SORT_NAME, FM_SORT_FILE, FM_SORT_LINE } },
    { "pcalls", true, "primitive call count", 1, { FM_SORT_PRIMITIVE } },
    { "stdname", true, "standard name", 1, { FM_SORT_STDNAME } },
    { "time", true, "internal time", 1, { FM_SORT_TIME } },
    { "tottime", true, "internal time", 1, { FM_SORT_TIME } },
    { "samples", false, "sample count", 1, { FM_SORT_CALLS } },
    { "nsamples", false, "sample count", 1, { FM_SORT_CALLS } },
    { "psamples", false, "primitive call count", 1, { FM_SORT_PRIMITIVE } },
    { "self", false, "internal time", 1, { FM_SORT_SELF } },
    { "total", false, "cumulative time", 1, { FM_SORT_TOTAL } },
    { "percall", false, "cumulative time per call", 1, { FM_SORT_PERCALL } },
    { "perhit", false, "cumulative time per call", 1, { FM_SORT_PERCALL } },
    { "hits", false, "call count", 1, { FM_SORT_CALLS } },
    { "-1", false, "standard name", 1, { FM_SORT_STDNAME } },
    { "0", false, "call count", 1, { FM_SORT_CALLS } },
    { "1", false, "internal time", 1, { FM_SORT_TIME } },
    { "2", false, "cumulative time", 1, { FM_SORT_TOTAL } },
};
#define UNLISTED 4

typedef FM_VEC(struct sort_key) key_list;

static bool has_key(const key_list *all, const char *name)
{
    for (size_t i = 0; i < all->len; i++)
        if (strcmp(all->data[i].name, name) == 0)
            return true;
    return false;
}

/* The fixed ones, then the metrics. Caller releases. */
static key_list keys_new(void)
{
    key_list all = { 0 };
    for (size_t i = 0; i < FM_COUNT(fixed_keys); i++)
        fm_vec_push(&all, fixed_keys[i]);
    for (int m = 0; m < FM_METRIC_COUNT; m++) {
        const struct fm_metric_info *info = fm_metric_info((enum fm_metric)m);
        enum fm_sort_field own = (enum fm_sort_field)(FM_SORT_METRICS + 2 * m);
        struct sort_key key = { info->name, false, info->title, 1, { own } };
        struct sort_key total = {
            info->total_name, false, info->total_title, 1, { (enum fm_sort_field)(own + 1) }
        };
        if (!has_key(&all, key.name))
            fm_vec_push(&all, key);
        if (fm_metric_has_total_key((enum fm_metric)m))
            fm_vec_push(&all, total);
    }
    return all;
}

void fm_query_add_keys(struct fm_buffer *out)
{
    key_list all = keys_new();
    for (size_t i = 0; i < all.len; i++) {
        bool listed = i < FM_COUNT(fixed_keys) - UNLISTED || i >= FM_COUNT(fixed_keys);
        if (listed)
            fm_buffer_addf(out, "%s%s", i ? ", " : "", all.data[i].name);
    }
    fm_vec_release(&all);
}

void fm_query_release(struct fm_query *q)
{
    for (size_t i = 0; i < q->restrictions.len; i++) {
        free(q->restrictions.data[i].text);
        pcre2_code_free(q->restrictions.data[i].pattern);
    }
    fm_vec_release(&q->restrictions);
    fm_vec_release(&q->sorts);
    fm_buffer_release(&q->title);
}

/* Look `word` up among pstats' keys or among all; on several meanings their names are gathered. */
static const struct sort_key *look_up(const key_list *keys, const char *word, bool pstats_only,
                                      struct fm_buffer *several)
{
    const struct sort_key *found = NULL;
    size_t len = strlen(word);
    bool ambiguous = false;
    for (size_t i = 0; i < keys->len; i++) {
        const struct sort_key *k = &keys->data[i];
        if ((pstats_only && !k->of_pstats) || strncmp(k->name, word, len) != 0)
            continue;
        if (len < strlen("total_") && strncmp(k->name, "total_", strlen("total_")) == 0)
            continue; /* a beginning of "total" means that */
        if (!k->name[len])
            return k; /* spelled out */
        fm_buffer_addf(several, "%s%s", several->len ? ", " : "", k->name);
        if (found && strcmp(found->title, k->title) != 0)
            ambiguous = true;
        else if (!found)
            found = k;
    }
    return ambiguous ? NULL : found;
}

static const struct sort_key *key_of(const key_list *keys, const char *word, struct fm_error *err)
{
    fm_autobuffer own = FM_BUFFER_INIT, all = FM_BUFFER_INIT, names = FM_BUFFER_INIT;
    const struct sort_key *exact = look_up(keys, word, false, &all);
    const struct sort_key *k = *word ? look_up(keys, word, true, &own) : NULL;
    if (exact && strcmp(exact->name, word) == 0)
        return exact;
    if (!k && !own.len)
        k = *word ? exact : NULL;
    if (k)
        return k;
    if (*word && all.len) {
        fm_error_set(err, FM_BAD_QUERY, "the sort key \"%s\" is ambiguous: %s", word,
                     own.len ? own.data : all.data);
        return NULL;
    }
    fm_query_add_keys(&names);
    fm_error_set(err, FM_BAD_QUERY, "there is no sort key \"%s\"; there are %s", word, names.data);
    return NULL;
}

int fm_query_sort(struct fm_query *q, const char *words, struct fm_error *err)
{
    key_list keys = keys_new();
    int status = 0;
    for (;;) {
        size_t len = strcspn(words, ",");
        fm_autofree char *word = fm_strndup(words, len);
        const struct sort_key *k = key_of(&keys, word, err);
        if (!k) {
            status = err->status;
            break;
        }
        for (int i = 0; i < k->n; i++)
            fm_vec_push(&q->sorts, k->fields[i]);
        fm_buffer_addf(&q->title, "%s%s", q->title.len ? ", " : "", k->title);
        if (!words[len])
            break;
        words += len + 1;
    }
    fm_vec_release(&keys);
    return status;
}

void fm_query_settle_time(struct fm_query *q)
{
    for (size_t i = 0; i < q->sorts.len; i++) {
        if (q->sorts.data[i] == FM_SORT_TIME)
            q->sorts.data[i] = FM_SORT_TOTAL;
    }
}

void fm_query_settle_metrics(struct fm_query *q, enum fm_metric time, enum fm_metric calls)
{
    for (size_t i = 0; i < q->sorts.len; i++) {
        enum fm_sort_field *field = &q->sorts.data[i];
        if (*field == FM_SORT_TIME || *field == FM_SORT_SELF)
            *field = (enum fm_sort_field)(FM_SORT_METRICS + 2 * (int)time);
        else if (*field == FM_SORT_TOTAL)
            *field = (enum fm_sort_field)(FM_SORT_METRICS + 2 * (int)time + 1);
        else if (*field == FM_SORT_CALLS || *field == FM_SORT_PRIMITIVE)
            *field = (enum fm_sort_field)(FM_SORT_METRICS + 2 * (int)calls);
    }
}

enum fm_metric fm_query_metric(const struct fm_query *q)
{
    if (!q->sorts.len || q->sorts.data[0] < FM_SORT_METRICS)
        return FM_METRIC_COUNT;
    return (enum fm_metric)((q->sorts.data[0] - FM_SORT_METRICS) / 2);
}

void fm_query_limit(struct fm_query *q, int64_t count)
{
    fm_vec_push(&q->restrictions, ((struct fm_restriction){ FM_RESTRICT_COUNT, .count = count }));
}

static int restrict_pattern(struct fm_query *q, const char *text, struct fm_error *err)
{
    int code;
    PCRE2_SIZE at;
    pcre2_code *pattern =
        pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &code, &at, NULL);
    if (!pattern) {
        char why[160];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
        return fm_error_set(err, FM_BAD_QUERY, "the pattern \"%s\" is wrong at position %zu: %s",
                            text, (size_t)at, why);
    }
    pcre2_jit_compile(pattern, PCRE2_JIT_COMPLETE);
    struct fm_restriction r = { FM_RESTRICT_PATTERN, .text = fm_strdup(text), .pattern = pattern };
    fm_vec_push(&q->restrictions, r);
    return 0;
}

int fm_query_restrict(struct fm_query *q, const char *text, struct fm_error *err)
{
    char *end;
    errno = 0;
    long long count = strtoll(text, &end, 10);
    bool number_like = isdigit((unsigned char)text[0]) || strchr("+-.", text[0]);
    if (!*text)
        return fm_error_set(err, FM_BAD_QUERY, "a restriction is empty");
    if (number_like && end != text && !*end) {
        if (errno || count < 0)
            return fm_error_set(err, FM_BAD_QUERY, "a restriction to %s rows makes no sense", text);
        fm_query_limit(q, count);
        return 0;
    }
    double fraction = number_like ? strtod(text, &end) : 0;
    if (!number_like || end == text || *end)
        return restrict_pattern(q, text, err);
    if (!(fraction >= 0 && fraction <= 1))
        return fm_error_set(err, FM_BAD_QUERY, "the fraction %s is not between 0 and 1", text);
    struct fm_restriction r = { FM_RESTRICT_FRACTION, .fraction = fraction };
    fm_vec_push(&q->restrictions, r);
    return 0;
}

/* ---- sorting ---- */

static int compare_numbers(double a, double b)
{
    return a < b ? 1 : a > b ? -1 : 0; /* larger first */
}

static int compare_ints(int64_t a, int64_t b)
{
    return a < b ? 1 : a > b ? -1 : 0;
}

/* Calls, or samples where no calls were recorded: both say how often it was seen. */
static int64_t count_of(const struct fm_flat_row *r, int64_t calls)
{
    return calls ? calls : r->samples;
}

static int64_t metric_of(enum fm_sort_field field, const struct fm_flat_row *r)
{
    int metric = (field - FM_SORT_METRICS) / 2;
    return (field - FM_SORT_METRICS) % 2 ? r->total[metric] : r->self[metric];
}

static int compare_field(enum fm_sort_field field, struct fm_names *names,
                         const struct fm_flat_row *a, const struct fm_flat_row *b, uint32_t x,
                         uint32_t y)
{
    switch (field) {
    case FM_SORT_CALLS:
        return compare_ints(count_of(a, a->calls), count_of(b, b->calls));
    case FM_SORT_PRIMITIVE:
        return compare_ints(count_of(a, a->primitive), count_of(b, b->primitive));
    case FM_SORT_TIME:
    case FM_SORT_SELF:
        return compare_ints(a->self_ns, b->self_ns);
    case FM_SORT_TOTAL:
        return compare_ints(a->total_ns, b->total_ns);
    case FM_SORT_PERCALL:
        return compare_numbers(fm_flat_per_call_ns(a), fm_flat_per_call_ns(b));
    case FM_SORT_LINE:
        return compare_ints(fm_names_line(names, y), fm_names_line(names, x));
    /* UTF-8 compares like the characters it stands for. */
    case FM_SORT_FILE:
        return strcmp(fm_names_file(names, x), fm_names_file(names, y));
    case FM_SORT_NAME:
        return strcmp(fm_names_name(names, x), fm_names_name(names, y));
    case FM_SORT_STDNAME:
        return strcmp(fm_names_std(names, x), fm_names_std(names, y));
    default:
        return compare_ints(metric_of(field, a), metric_of(field, b));
    }
}

struct context {
    const struct fm_query *q;
    const struct fm_flat *flat;
    struct fm_names *names;
    bool by_caller;
};

/* A row and its first sort key, if that is a number: most comparisons need nothing else. */
struct sorted {
    int64_t number;
    uint32_t row;
};

static int compare_rows(const void *a, const void *b, void *data)
{
    const struct sorted *left = a, *right = b;
    const struct context *c = data;
    if (left->number != right->number)
        return left->number < right->number ? 1 : -1; /* larger first */
    uint32_t x = left->row, y = right->row;
    for (size_t i = 0; i < c->q->sorts.len; i++) {
        int order = compare_field(c->q->sorts.data[i], c->names, &c->flat->rows.data[x],
                                  &c->flat->rows.data[y], x, y);
        if (order)
            return order;
    }
    return x < y ? -1 : x > y;
}

static int64_t first_number(enum fm_sort_field field, const struct fm_flat_row *r)
{
    switch (field) {
    case FM_SORT_CALLS:
        return count_of(r, r->calls);
    case FM_SORT_TIME:
    case FM_SORT_SELF:
        return r->self_ns;
    case FM_SORT_TOTAL:
        return r->total_ns;
    default:
        return field >= FM_SORT_METRICS ? metric_of(field, r) : 0;
    }
}

/* How many of the sorted rows are looked at: only the first few if there is a limit. */
static size_t wanted_rows(const struct fm_query *q, size_t n)
{
    const struct fm_restriction *r = q->restrictions.data;
    bool limited = q->restrictions.len && r->kind == FM_RESTRICT_COUNT && !q->reverse;
    return limited && r->count <= 64 ? (size_t)r->count : n;
}

/* Put the first `wanted` rows in order at the front; returns how many are in order. */
static size_t sort_first(struct sorted *all, size_t n, size_t wanted, struct context *c)
{
    size_t kept = 0;
    if (wanted >= n) {
        qsort_r(all, n, sizeof *all, compare_rows, c);
        return n;
    }
    for (size_t i = 0; i < n && wanted; i++) {
        struct sorted row = all[i];
        size_t at = kept < wanted ? kept++ : kept - 1;
        if (at < i && compare_rows(&all[at], &row, c) < 0)
            continue;
        for (; at > 0 && compare_rows(&all[at - 1], &row, c) > 0; at--)
            all[at] = all[at - 1];
        all[at] = row;
    }
    return kept;
}

static void sort_rows(const struct fm_query *q, const struct fm_flat *flat, struct fm_names *names,
                      struct fm_selection *s)
{
    struct context c = { q, flat, names, false };
    size_t n = s->rows.len;
    fm_autofree struct sorted *all = fm_calloc(n, sizeof *all);
    for (size_t i = 0; i < n; i++) {
        uint32_t row = s->rows.data[i];
        all[i] = (struct sorted){ first_number(q->sorts.data[0], &flat->rows.data[row]), row };
    }
    n = sort_first(all, n, wanted_rows(q, n), &c);
    for (size_t i = 0; i < n; i++)
        s->rows.data[i] = all[i].row;
}

static struct fm_flat_row row_of_edge(const struct fm_flat_edge *e)
{
    struct fm_flat_row row = { .primitive = e->primitive };
    memcpy(row.self, e->self, sizeof e->self);
    memcpy(row.total, e->total, sizeof e->total);
    row.samples = e->total_samples;
    return row;
}

static int compare_edges(const void *a, const void *b, void *data)
{
    const struct fm_flat_edge *e = a, *f = b;
    const struct context *c = data;
    struct fm_flat_row r = row_of_edge(e), s = row_of_edge(f);
    uint32_t x = c->by_caller ? e->caller : e->callee, y = c->by_caller ? f->caller : f->callee;
    for (size_t i = 0; i < c->q->sorts.len; i++) {
        int order = compare_field(c->q->sorts.data[i], c->names, &r, &s, x, y);
        if (order)
            return order;
    }
    return x < y ? -1 : x > y;
}

static void reverse(void *data, size_t n, size_t bytes)
{
    char *low = data, *high = low + (n ? n - 1 : 0) * bytes, spare[sizeof(struct fm_flat_edge)];
    for (; low < high; low += bytes, high -= bytes) {
        memcpy(spare, low, bytes);
        memcpy(low, high, bytes);
        memcpy(high, spare, bytes);
    }
}

void fm_query_sort_edges(const struct fm_query *q, struct fm_names *names,
                         struct fm_flat_edge *edges, size_t n, bool by_caller)
{
    struct context c = { q, NULL, names, by_caller };
    qsort_r(edges, n, sizeof *edges, compare_edges, &c);
    if (q->reverse)
        reverse(edges, n, sizeof *edges);
}

/* ---- restricting ---- */

/* Python's repr of a str. */
static void add_repr(struct fm_buffer *out, const char *text)
{
    char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';
    fm_buffer_add_char(out, quote);
    while (*text) {
        char marks[] = { '\\', quote, '\0' };
        size_t plain = strcspn(text, marks);
        fm_clean_add(out, text, plain);
        text += plain;
        if (*text)
            fm_buffer_addf(out, "\\%c", *text++);
    }
    fm_buffer_add_char(out, quote);
}

static bool matches(pcre2_code *pattern, pcre2_match_data *data, const char *text)
{
    return pcre2_match(pattern, (PCRE2_SPTR)text, strlen(text), 0, 0, data, NULL) >= 0;
}

static void keep_matching(const struct fm_query *q, pcre2_code *pattern, struct fm_names *names,
                          struct fm_selection *s)
{
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(pattern, NULL);
    size_t kept = 0;
    for (size_t i = 0; i < s->rows.len; i++) {
        uint32_t row = s->rows.data[i];
        if (matches(pattern, data, fm_names_std(names, row)) ||
            (q->qualified && matches(pattern, data, fm_names_function(names, row))))
            s->rows.data[kept++] = row;
    }
    s->rows.len = kept;
    pcre2_match_data_free(data);
}

static void apply(const struct fm_query *q, const struct fm_restriction *r, struct fm_names *names,
                  struct fm_selection *s)
{
    size_t before = s->rows.len;
    if (r->kind == FM_RESTRICT_COUNT && (uint64_t)r->count < before)
        s->rows.len = (size_t)r->count;
    else if (r->kind == FM_RESTRICT_FRACTION && r->fraction < 1)
        s->rows.len = (size_t)((double)before * r->fraction + .5);
    else if (r->kind == FM_RESTRICT_PATTERN)
        keep_matching(q, r->pattern, names, s);
    if (s->rows.len == before)
        return;
    char number[FM_NUMBER_BYTES];
    fm_buffer_addf(&s->message, "   List reduced from %zu to %zu due to restriction <", before,
                   s->rows.len);
    if (r->kind == FM_RESTRICT_PATTERN)
        add_repr(&s->message, r->text);
    else if (r->kind == FM_RESTRICT_FRACTION)
        fm_buffer_add_text(&s->message, fm_number_repr(number, r->fraction));
    else
        fm_buffer_addf(&s->message, "%lld", (long long)r->count);
    fm_buffer_add_text(&s->message, ">\n");
}

void fm_query_run(const struct fm_query *q, const struct fm_flat *flat, struct fm_names *names,
                  struct fm_selection *out)
{
    memset(out, 0, sizeof *out);
    fm_vec_reserve(&out->rows, flat->rows.len);
    for (uint32_t i = 0; i < flat->rows.len; i++) {
        if (!q->only || q->only(&flat->rows.data[i], q->only_data))
            out->rows.data[out->rows.len++] = i;
    }
    if (q->sorts.len && out->rows.len) {
        sort_rows(q, flat, names, out);
        if (q->reverse)
            reverse(out->rows.data, out->rows.len, sizeof(uint32_t));
        fm_buffer_addf(&out->message, "   Ordered by: %s\n", fm_buffer_text(&q->title));
    } else {
        fm_buffer_add_text(&out->message, "   Random listing order was used\n");
    }
    for (size_t i = 0; i < q->restrictions.len; i++)
        apply(q, &q->restrictions.data[i], names, out);
}

void fm_selection_release(struct fm_selection *s)
{
    fm_vec_release(&s->rows);
    fm_buffer_release(&s->message);
}
