/* Pages of another process's memory; see snapshot.h. */
#include "watch/os/remote/snapshot.h"

#include <errno.h>
#include <string.h>

#define PAGE_SHIFT 12
#define MAX_IDLE   16u /* looks for which a page is read on although nobody needed it */
#define MAX_TAIL   8

void fm_snapshot_release(struct fm_snapshot *s)
{
    fm_vec_release(&s->pages);
    fm_vec_release(&s->bytes);
    fm_map_release(&s->map);
}

void fm_snapshot_clear(struct fm_snapshot *s)
{
    s->pages.len = s->fetched = s->last = 0;
    if (s->map.len)
        memset(s->map.slots, 0, s->map.cap * sizeof *s->map.slots);
    s->map.len = 0;
}

bool fm_snapshot_want(struct fm_snapshot *s, fm_addr at)
{
    bool is_new;
    if (s->pages.len >= FM_SNAPSHOT_MAX_PAGES)
        return false;
    fm_map_at(&s->map, at >> PAGE_SHIFT, (uint32_t)s->pages.len, &is_new);
    if (is_new)
        fm_vec_push(&s->pages,
                    ((struct fm_snapshot_page){ .at = at & ~(fm_addr)(FM_SNAPSHOT_PAGE - 1) }));
    return is_new;
}

static uint8_t *bytes_of(struct fm_snapshot *s, size_t page)
{
    return s->bytes.data + page * FM_SNAPSHOT_PAGE;
}

/* The planned pages from `first` on as pieces, neighbours as one. */
static int plan_spans(struct fm_snapshot *s, size_t first, struct fm_span *spans)
{
    int n = 0;
    for (size_t i = first; i < s->pages.len; i++) {
        struct fm_span *last = n ? &spans[n - 1] : NULL;
        if (last && last->at + last->len == s->pages.data[i].at)
            last->len += FM_SNAPSHOT_PAGE;
        else
            spans[n++] = (struct fm_span){ s->pages.data[i].at, bytes_of(s, i), FM_SNAPSHOT_PAGE };
    }
    return n;
}

/* Some page cannot be read: find out which, one by one. */
static void fetch_singly(struct fm_snapshot *s, const struct fm_remote *remote, size_t first)
{
    for (size_t i = first; i < s->pages.len; i++)
        s->pages.data[i].readable =
            fm_remote_read(remote, s->pages.data[i].at, bytes_of(s, i), FM_SNAPSHOT_PAGE) == 0;
}

int fm_snapshot_fetch(struct fm_snapshot *s, const struct fm_remote *remote,
                      const struct fm_span *tail, int n)
{
    size_t first = s->fetched, planned = s->pages.len - first;
    struct fm_span few[64];
    fm_autofree struct fm_span *many = NULL;
    struct fm_span *spans = few;
    if (planned + MAX_TAIL > FM_COUNT(few))
        spans = many = fm_malloc((planned + MAX_TAIL) * sizeof *many);
    fm_vec_reserve(&s->bytes, s->pages.len * FM_SNAPSHOT_PAGE);
    s->fetched = s->pages.len;
    int count = plan_spans(s, first, spans), wanted = count + (n < MAX_TAIL ? n : MAX_TAIL);
    for (int i = count; i < wanted; i++)
        spans[i] = tail[i - count];
    int got = wanted ? fm_remote_read_spans(remote, spans, wanted) : 0;
    if (got == wanted) {
        for (size_t i = first; i < s->pages.len; i++)
            s->pages.data[i].readable = true;
        return 0;
    }
    if (got < 0 && got != -EFAULT)
        return got;
    fetch_singly(s, remote, first);
    return wanted == count ||
                   fm_remote_read_spans(remote, spans + count, wanted - count) == wanted - count
               ? 0
               : -EFAULT;
}

/* What of [at, at + len) lies in one page. */
static enum fm_snapshot_answer read_part(struct fm_snapshot *s, fm_addr at, void *into, size_t len)
{
    if (s->last >= s->fetched || s->pages.data[s->last].at >> PAGE_SHIFT != at >> PAGE_SHIFT) {
        const uint32_t *page = fm_map_find(&s->map, at >> PAGE_SHIFT);
        if (!page)
            return s->pages.len < FM_SNAPSHOT_MAX_PAGES ? FM_SNAPSHOT_MISSING
                                                        : FM_SNAPSHOT_UNREADABLE;
        if (*page >= s->fetched)
            return FM_SNAPSHOT_MISSING;
        s->last = *page;
    }
    if (!s->pages.data[s->last].readable)
        return FM_SNAPSHOT_UNREADABLE;
    s->pages.data[s->last].used = true;
    memcpy(into, bytes_of(s, s->last) + (at & (FM_SNAPSHOT_PAGE - 1)), len);
    return FM_SNAPSHOT_HERE;
}

enum fm_snapshot_answer fm_snapshot_read(struct fm_snapshot *s, fm_addr at, void *into, size_t len,
                                         fm_addr *missing)
{
    size_t done = 0;
    while (done < len) {
        size_t part = FM_SNAPSHOT_PAGE - ((at + done) & (FM_SNAPSHOT_PAGE - 1));
        part = part < len - done ? part : len - done;
        enum fm_snapshot_answer answer = read_part(s, at + done, (uint8_t *)into + done, part);
        *missing = at + done;
        if (answer != FM_SNAPSHOT_HERE)
            return answer;
        done += part;
    }
    return FM_SNAPSHOT_HERE;
}

void fm_snapshot_want_hints(struct fm_snapshot *s, const struct fm_snapshot_hints *hints)
{
    for (size_t i = 0; i < hints->len; i++)
        fm_snapshot_want(s, hints->data[i].at);
}

/* The hints are kept in the order of their addresses, so that neighbours are read as one piece. */
static size_t place_of(const struct fm_snapshot_hints *hints, fm_addr at)
{
    size_t low = 0, high = hints->len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (hints->data[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void learn_page(struct fm_snapshot_hints *hints, fm_addr at)
{
    size_t place = place_of(hints, at);
    if (place == hints->len || hints->data[place].at != at) {
        fm_vec_reserve(hints, hints->len + 1);
        memmove(hints->data + place + 1, hints->data + place,
                (hints->len - place) * sizeof *hints->data);
        hints->data[place].at = at;
        hints->len++;
    }
    hints->data[place].idle = 0;
}

void fm_snapshot_learn(const struct fm_snapshot *s, struct fm_snapshot_hints *hints)
{
    size_t kept = 0;
    for (size_t i = 0; i < hints->len; i++) {
        hints->data[kept] = hints->data[i];
        kept += hints->data[kept].idle++ < MAX_IDLE;
    }
    hints->len = kept;
    for (size_t i = 0; i < s->pages.len; i++) {
        if (s->pages.data[i].used && s->pages.data[i].readable)
            learn_page(hints, s->pages.data[i].at);
    }
}
