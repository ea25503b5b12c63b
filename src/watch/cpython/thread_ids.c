/* Which thread of the kernel a Python thread is; see thread_ids.h. */
#include "watch/cpython/thread_ids.h"

#include <string.h>

#include "base/map.h"

enum {
    RECORD_BYTES = 1024, /* of the C library's record: more than any has in front of the number */
    PLACES = RECORD_BYTES / 4,
    MAX_RECORDS = 1000, /* so many decide where it lies */
};

/* Where glibc has it, in words. */
#if defined(__x86_64__)
#define USUAL_PLACE (720 / 4)
#elif defined(__aarch64__)
#define USUAL_PLACE (208 / 4)
#else
#define USUAL_PLACE (-1)
#endif

/* The threads of the process by their own number of them. */
struct index {
    const struct fm_tids *tids;
    struct fm_map by_inner;
};

static const struct fm_tid *tid_of_inner(const struct index *index, uint64_t inner)
{
    const uint32_t *at = inner ? fm_map_find(&index->by_inner, inner) : NULL;
    return at ? &index->tids->list.data[*at] : NULL;
}

/* What Python noted, where that is a thread of this process and nobody else's. */
static bool take_notes(struct fm_thread_id *threads, size_t n, const struct index *index)
{
    struct fm_map idents = { 0 }, taken = { 0 };
    bool whole = true;
    for (size_t i = n; i-- > 0;) { /* the oldest first */
        const struct fm_tid *noted = tid_of_inner(index, threads[i].native);
        bool is_new = false, is_free = false;
        threads[i].tid = 0;
        fm_map_at(&idents, threads[i].ident, 0, &is_new);
        if (is_new && noted)
            fm_map_at(&taken, (uint64_t)noted->outer, 0, &is_free);
        if (is_free)
            threads[i].tid = noted->outer;
        whole = whole && (is_free || !is_new);
    }
    fm_map_release(&idents);
    fm_map_release(&taken);
    return whole;
}

/* How well a place suits. */
struct candidate {
    uint32_t hits;   /* different threads of the process there */
    uint32_t misses; /* other numbers, or one of them once more */
    bool wrong;      /* it contradicts a number that is known */
    bool main;       /* the process's first thread is there */
};

static bool suits_better(const struct candidate *places, int a, int b)
{
    if (places[a].hits != places[b].hits)
        return places[a].hits > places[b].hits;
    if (places[a].misses != places[b].misses)
        return places[a].misses < places[b].misses;
    if (a == USUAL_PLACE || b == USUAL_PLACE)
        return a == USUAL_PLACE;
    return places[a].main > places[b].main;
}

/* Place number `p` has this word in the record of `thread`. */
static void judge(struct candidate *place, uint64_t p, int32_t word,
                  const struct fm_thread_id *thread, const struct index *index, struct fm_map *seen)
{
    const struct fm_tid *tid = word > 0 ? tid_of_inner(index, (uint64_t)word) : NULL;
    bool is_new = false;
    if (tid)
        fm_map_at(seen, fm_map_pair((uint32_t)p, (uint32_t)word), 0, &is_new);
    place->hits += is_new;
    place->misses += !is_new && word != 0;
    place->main |= is_new && tid->outer == index->tids->process;
    place->wrong |= thread->tid && (!tid || tid->outer != thread->tid);
}

/* The word of the records that has the number; −1 if none has. */
static int find_place(const struct fm_remote *remote, const struct fm_thread_id *threads, size_t n,
                      const struct index *index)
{
    struct candidate places[PLACES] = { { 0 } };
    struct fm_map seen = { 0 };
    int best = -1;
    for (size_t i = 0; i < n && i < MAX_RECORDS; i++) {
        int32_t words[PLACES];
        if (fm_remote_read(remote, threads[i].ident, words, sizeof words) < 0)
            continue;
        for (uint64_t p = 0; p < PLACES; p++)
            judge(&places[p], p, words[p], &threads[i], index, &seen);
    }
    for (int p = 0; p < PLACES; p++) {
        if (places[p].hits && !places[p].wrong && (best < 0 || suits_better(places, p, best)))
            best = p;
    }
    fm_map_release(&seen);
    return best;
}

/* What the records have at that place, for those whose number is not known yet. */
static void read_records(const struct fm_remote *remote, struct fm_thread_id *threads, size_t n,
                         int place, const struct index *index)
{
    struct fm_map taken = { 0 };
    for (size_t i = 0; i < n; i++)
        if (threads[i].tid)
            fm_map_at(&taken, (uint64_t)threads[i].tid, 0, NULL);
    for (size_t i = n; i-- > 0;) {
        int32_t word = 0;
        bool is_free = false;
        if (threads[i].tid ||
            fm_remote_read(remote, threads[i].ident + (fm_addr)place * 4, &word, sizeof word) < 0)
            continue;
        const struct fm_tid *tid = word > 0 ? tid_of_inner(index, (uint64_t)word) : NULL;
        if (tid)
            fm_map_at(&taken, (uint64_t)tid->outer, 0, &is_free);
        if (is_free)
            threads[i].tid = tid->outer;
    }
    fm_map_release(&taken);
}

void fm_thread_ids_find(const struct fm_remote *remote, struct fm_thread_id *threads, size_t n,
                        const struct fm_tids *tids)
{
    struct index index = { .tids = tids };
    for (uint32_t i = 0; i < tids->list.len; i++)
        fm_map_at(&index.by_inner, (uint64_t)tids->list.data[i].inner, i, NULL);
    if (!take_notes(threads, n, &index)) {
        int place = find_place(remote, threads, n, &index);
        if (place >= 0)
            read_records(remote, threads, n, place, &index);
    }
    fm_map_release(&index.by_inner);
}
