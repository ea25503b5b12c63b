/* One look at one thread; see look.h. */
#include "watch/sampler/look.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "watch/os/procfs.h"
#include "watch/sampler/look_keep.h"

#define MAX_STEPS  8192u /* of one look: pages and code objects that had to be fetched */
#define MAX_CLIMBS 4u    /* of one look: each but the first because a code object was replaced */
#define AHEAD      8u    /* pages, when a stack goes down page by page */
#define CPU_FIELD  39    /* of /proc/PID/stat, as proc(5) counts them */

/* What is read last, in the same step as all else: the other end of the proof. */
struct tail {
    struct fm_span spans[3];
    int n;
    int32_t cpu;
    fm_addr newest, in_cframe;
    uint8_t gil[FM_LOOK_GIL_BYTES];
    bool stale; /* something was read since */
};

void fm_looker_release(struct fm_looker *k)
{
    fm_snapshot_release(&k->snapshot);
    fm_climb_release(&k->climb);
}

/* --- the proof -------------------------------------------------------------------------------- */

static int cpu_by_stat(const struct fm_looked *who)
{
    char text[1024];
    ssize_t n = who->stat_fd < 0 ? -1 : pread(who->stat_fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    const char *cpu = fm_procfs_stat_field(text, CPU_FIELD);
    return cpu ? (int)strtol(cpu, NULL, 10) : -1;
}

static void add_span(struct tail *tail, fm_addr at, void *into, size_t len)
{
    tail->spans[tail->n++] = (struct fm_span){ at, into, len };
}

static void plan_tail(struct tail *tail, const struct fm_looker *k, const struct fm_looked *who,
                      enum fm_proof proof, const struct fm_look_gil *gil)
{
    *tail = (struct tail){ .cpu = -1 };
    if (proof == FM_PROOF_DISPLACED && who->cpu_word)
        add_span(tail, who->cpu_word, &tail->cpu, sizeof tail->cpu);
    if (proof == FM_PROOF_GIL)
        add_span(tail, gil->at, tail->gil, sizeof tail->gil);
    if (proof == FM_PROOF_PLAIN) {
        if (who->cframe)
            add_span(tail, who->cframe + k->layout->cframe_frame, &tail->in_cframe, 8);
        add_span(tail, who->thread + k->layout->thread_frame, &tail->newest, 8);
    }
}

static bool is_same_field(const uint8_t *a, const uint8_t *b, uint32_t offset, size_t len)
{
    return memcmp(a + offset, b + offset, len) == 0;
}

static bool gil_stayed(const struct fm_layout *l, const uint8_t *before, const uint8_t *after)
{
    return is_same_field(before, after, l->gil_locked, 4) &&
           is_same_field(before, after, l->gil_holder, 8) &&
           is_same_field(before, after, l->gil_switches, 8);
}

static bool word_in(struct fm_looker *k, fm_addr at, uint64_t *ret)
{
    fm_addr missing;
    return fm_snapshot_read(&k->snapshot, at, ret, sizeof *ret, &missing) == FM_SNAPSHOT_HERE;
}

/* Does the thread state name the same newest frame at both ends? */
static bool stayed(struct fm_looker *k, struct fm_looked *who, struct tail *tail)
{
    uint64_t newest, in_cframe;
    if (!word_in(k, who->thread + k->layout->thread_frame, &newest) || newest != tail->newest)
        return false;
    if (k->layout->frames != FM_FRAMES_CFRAME || !newest)
        return true;
    if (newest != who->cframe) /* not the one expected: that end of the proof is still to be read */
        tail->in_cframe = fm_remote_pointer(k->remote, newest + k->layout->cframe_frame);
    who->cframe = newest;
    return word_in(k, newest + k->layout->cframe_frame, &in_cframe) && in_cframe == tail->in_cframe;
}

static bool holds(struct fm_looker *k, struct fm_looked *who, enum fm_proof proof,
                  const struct fm_look_gil *gil, const struct fm_seat_mark *mark, struct tail *tail)
{
    switch (proof) {
    case FM_PROOF_DISPLACED:
        k->cpu = who->cpu_word ? tail->cpu : cpu_by_stat(who);
        return k->cpu == k->seat->cpu && fm_seat_kept(mark);
    case FM_PROOF_GIL:
        return gil_stayed(k->layout, gil->before, tail->gil);
    case FM_PROOF_PLAIN:
        return stayed(k, who, tail);
    default:
        return true;
    }
}

/* --- the copy and the climb ------------------------------------------------------------------- */

static enum fm_climb_memory memory(void *data, fm_addr at, void *into, size_t len, fm_addr *want)
{
    struct fm_looker *k = data;
    static const enum fm_climb_memory answers[] = { [FM_SNAPSHOT_HERE] = FM_MEMORY_HERE,
                                                    [FM_SNAPSHOT_MISSING] = FM_MEMORY_MISSING,
                                                    [FM_SNAPSHOT_UNREADABLE] = FM_MEMORY_NONE };
    return answers[fm_snapshot_read(&k->snapshot, at, into, len, want)];
}

static enum fm_climb_code code(void *data, fm_addr at, uint64_t instr, struct fm_raw_frame *ret)
{
    return fm_codes_fit(((struct fm_looker *)data)->codes, at, instr, ret);
}

static int fetch(struct fm_looker *k, struct tail *tail)
{
    tail->stale = false;
    return fm_snapshot_fetch(&k->snapshot, k->remote, tail->spans, tail->n);
}

/* The page that the climb wants; and more in its direction, if it comes from the next one. */
static int fetch_wanted(struct fm_looker *k, struct tail *tail)
{
    fm_addr page = k->climb.want & ~(fm_addr)(FM_SNAPSHOT_PAGE - 1);
    const struct fm_snapshot *s = &k->snapshot;
    bool downwards = s->pages.len && s->pages.data[s->pages.len - 1].at == page + FM_SNAPSHOT_PAGE;
    for (fm_addr i = downwards && page > AHEAD * FM_SNAPSHOT_PAGE ? AHEAD - 1 : 0; i > 0; i--)
        fm_snapshot_want(&k->snapshot, page - i * FM_SNAPSHOT_PAGE);
    fm_snapshot_want(&k->snapshot, page);
    return fetch(k, tail);
}

static enum fm_look_result climb(struct fm_looker *k, const struct fm_looked *who,
                                 struct tail *tail)
{
    struct fm_climb_ground ground = { k->layout, who->thread, memory, code, k };
    uint32_t climbs = 1;
    fm_climb_begin(&k->climb);
    for (uint32_t step = 0; step < MAX_STEPS; step++) {
        enum fm_climb_result result = fm_climb_go(&k->climb, &ground);
        switch (result) {
        case FM_CLIMB_WANTS:
            if (fetch_wanted(k, tail) < 0)
                return FM_LOOK_GONE;
            break;
        case FM_CLIMB_WANTS_CODE:
            fm_codes_read(k->codes, k->climb.want);
            tail->stale = true;
            break;
        case FM_CLIMB_NO:
            return FM_LOOK_NO;
        case FM_CLIMB_WHOLE:
        case FM_CLIMB_CUT:
            if (fm_codes_confirm(k->codes, k->climb.frames.data, k->climb.frames.len)) {
                tail->stale |= k->codes->due.len > 0;
                return result == FM_CLIMB_WHOLE ? FM_LOOK_WHOLE : FM_LOOK_CUT;
            }
            if (climbs++ == MAX_CLIMBS)
                return FM_LOOK_NO;
            tail->stale = true;
            fm_climb_begin(&k->climb);
            break;
        }
    }
    return FM_LOOK_NO;
}

/* --- looks ------------------------------------------------------------------------------------ */

/* A look from its first to its last step. */
struct looking {
    struct fm_looker *k;
    struct fm_looked *who;
    enum fm_proof proof;
    const struct fm_look_gil *gil;
    struct fm_seat_mark mark;
    struct tail tail;
};

/* The proof begins. False if the proof is known already not to hold. */
static bool begin(struct looking *look)
{
    struct fm_looker *k = look->k;
    plan_tail(&look->tail, k, look->who, look->proof, look->gil);
    fm_snapshot_clear(&k->snapshot);
    k->cpu = -1;
    if (look->proof != FM_PROOF_DISPLACED)
        return true;
    look->mark = fm_seat_mark();
    return look->who->cpu_word || (k->cpu = cpu_by_stat(look->who)) == k->seat->cpu;
}

/* … and ends: did it hold all the time? */
static enum fm_look_result end(struct looking *look, enum fm_look_result result)
{
    if (look->tail.stale && look->tail.n && fetch(look->k, &look->tail) < 0)
        return FM_LOOK_GONE;
    return holds(look->k, look->who, look->proof, look->gil, &look->mark, &look->tail)
               ? result
               : FM_LOOK_MOVED;
}

/* The first step: what the last looks needed. False if the thread state is gone. */
static bool copy(struct fm_looker *k, const struct fm_looked *who, struct tail *tail)
{
    uint64_t interp, deaths;
    fm_addr deaths_at = k->counts_deaths ? who->interp + k->layout->interp_code_generation : 0;
    fm_snapshot_want(&k->snapshot, who->thread + k->layout->thread_frame);
    fm_snapshot_want(&k->snapshot, who->thread + k->layout->thread_interp);
    if (deaths_at)
        fm_snapshot_want(&k->snapshot, deaths_at);
    fm_snapshot_want_hints(&k->snapshot, &who->hints);
    if (fetch(k, tail) < 0 || !word_in(k, who->thread + k->layout->thread_interp, &interp) ||
        interp != who->interp)
        return false;
    if (deaths_at && word_in(k, deaths_at, &deaths))
        fm_codes_deaths(k->codes, deaths);
    return true;
}

enum fm_look_result fm_look(struct fm_looker *k, struct fm_looked *who, enum fm_proof proof,
                            const struct fm_look_gil *gil, uint64_t now_ns)
{
    struct looking look = { .k = k, .who = who, .proof = proof, .gil = gil };
    fm_codes_begin(k->codes, now_ns);
    if (!begin(&look))
        return FM_LOOK_MOVED;
    k->read_ns = fm_clock_ns();
    if (!k->regions || !fm_open_regions_read(k->regions, &who->regions, &k->open))
        k->open.n = 0;
    if (!copy(k, who, &look.tail))
        return FM_LOOK_GONE;
    enum fm_look_result result = end(&look, climb(k, who, &look.tail));
    fm_snapshot_learn(&k->snapshot, &who->hints);
    fm_look_keep(k, who, result);
    return result;
}

/* --- anything else ---------------------------------------------------------------------------- */

static bool read_span(struct looking *look, const struct fm_span *span)
{
    fm_addr missing;
    for (;;) {
        switch (fm_snapshot_read(&look->k->snapshot, span->at, span->into, span->len, &missing)) {
        case FM_SNAPSHOT_HERE:
            return true;
        case FM_SNAPSHOT_UNREADABLE:
            return false;
        case FM_SNAPSHOT_MISSING:
            if (!fm_snapshot_want(&look->k->snapshot, missing) || fetch(look->k, &look->tail) < 0)
                return false;
        }
    }
}

/* The memory of the process, through the pages of a look. */
static int read_spans(const struct fm_remote *remote, const struct fm_span *spans, int n)
{
    for (int i = 0; i < n; i++) {
        if (!read_span(remote->data, &spans[i]))
            return i ? i : -EFAULT;
    }
    return n;
}

enum fm_look_result fm_look_beside(struct fm_looker *k, struct fm_looked *who, enum fm_proof proof,
                                   const struct fm_look_gil *gil, struct fm_snapshot_hints *hints,
                                   void (*read)(void *data, const struct fm_remote *remote),
                                   void *data)
{
    static const struct fm_remote_source source = { read_spans };
    struct looking look = { .k = k, .who = who, .proof = proof, .gil = gil };
    struct fm_remote remote = { &source, k->remote->pid, &look };
    if (!begin(&look))
        return FM_LOOK_MOVED;
    fm_snapshot_want_hints(&k->snapshot, hints);
    if (fetch(k, &look.tail) < 0)
        return FM_LOOK_GONE;
    read(data, &remote);
    enum fm_look_result result = end(&look, FM_LOOK_WHOLE);
    fm_snapshot_learn(&k->snapshot, hints);
    return result;
}
