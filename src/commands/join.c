/*
 * Joining the stores of a run; see join.h.
 *
 * A store is read, not mapped: it lies on a memory file system that may be full, where touching a
 * hole through a mapping needs a page that is not to be had and would kill us.
 */
#include "commands/join.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/vec.h"
#include "commands/run/samples.h"
#include "record/capture/live.h"
#include "record/capture/live_events.h"
#include "record/capture/live_heap.h"
#include "record/capture/live_slices.h"
#include "record/formats/format.h"
#include "record/formats/sources.h"
#include "record/model/derive/join_samples.h"
#include "record/model/live/live.h"
#include "record/model/live/live_heap.h"
#include "record/model/live/live_trace.h"
#include "watch/os/path.h"

#define UNPROFILED_MAX_BYTES 65536

enum store_kind { STORE_LIVE, STORE_UNPROFILED, STORE_HEAP, STORE_KINDS };

struct store {
    uint32_t pid, number;
    enum store_kind kind;
    uint64_t start_ns; /* when it was begun; 0 if unknown */
    char name[NAME_MAX + 1];
};

struct bytes {
    void *data; /* NULL if there are none */
    size_t len;
};

/* "123.0.live" → 123, 0, true. */
static bool parse_name(const char *name, struct store *s)
{
    int end = 0;
    if (sscanf(name, "%u.%u%n", &s->pid, &s->number, &end) != 2 || !end)
        return false;
    static const char *const suffixes[STORE_KINDS] = {
        [STORE_LIVE] = FM_LIVE_SUFFIX,
        [STORE_UNPROFILED] = FM_LIVE_UNPROFILED_SUFFIX,
        [STORE_HEAP] = FM_HEAP_SUFFIX,
    };
    snprintf(s->name, sizeof s->name, "%s", name);
    for (int kind = 0; kind < STORE_KINDS; kind++) {
        s->kind = (enum store_kind)kind;
        if (strcmp(name + end, suffixes[kind]) == 0)
            return true;
    }
    return false;
}

/* What processes wrote of their memory comes last, when all processes are known. */
static int compare_stores(const void *a, const void *b)
{
    const struct store *x = a, *y = b;
    if ((x->kind == STORE_HEAP) != (y->kind == STORE_HEAP))
        return x->kind == STORE_HEAP ? 1 : -1;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

/* Read what there is of a sparse file; its holes stay untouched zero pages. */
static int read_sparse(int fd, struct bytes *b)
{
    off_t at = 0, len = (off_t)b->len;
    while (at < len) {
        off_t data = lseek(fd, at, SEEK_DATA);
        if (data < 0)
            return errno == ENXIO ? 0 : -1; /* only a hole is left */
        off_t hole = lseek(fd, data, SEEK_HOLE);
        hole = hole < 0 || hole > len ? len : hole;
        for (at = data; at < hole;) {
            ssize_t n = pread(fd, (char *)b->data + at, (size_t)(hole - at), at);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                return n < 0 ? -1 : 0;
            at += n;
        }
    }
    return 0;
}

static int bytes_read(int folder, const char *name, struct bytes *b)
{
    struct stat st;
    *b = (struct bytes){ 0 };
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    int status = fstat(fd, &st);
    if (status == 0 && !S_ISREG(st.st_mode)) {
        errno = EINVAL;
        status = -1;
    }
    if (status == 0 && st.st_size > 0) {
        b->len = (size_t)st.st_size;
        b->data = mmap(NULL, b->len, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (b->data == MAP_FAILED)
            b->data = NULL;
        status = b->data ? read_sparse(fd, b) : -1;
    }
    int saved = errno;
    close(fd);
    errno = saved;
    return status;
}

/* When a store was begun (CLOCK_MONOTONIC); 0 if it does not say. */
static uint64_t read_start(int folder, const char *name)
{
    struct fm_live_header header = { 0 };
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    bool whole = pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header;
    close(fd);
    return whole ? header.start_ns : 0;
}

static void bytes_release(struct bytes *b)
{
    if (b->data)
        munmap(b->data, b->len);
    *b = (struct bytes){ 0 };
}

static void note_lost(struct fm_profile *into, const struct store *s, const char *reason)
{
    char text[512];
    snprintf(text, sizeof text, "the recording of process %u could not be read: %s", s->pid,
             reason);
    fm_profile_note(into, FM_NONE, "lost", 1, text);
}

/* The ".more" file of a store, if it has one; false: it cannot be read. "more" is a link to the folder
 * where stores go on when this one's file system is full; a run without one puts them beside. */
static bool read_more(int folder, const struct store *s, struct bytes *b)
{
    char name[NAME_MAX + sizeof "more/" FM_LIVE_MORE_SUFFIX];
    snprintf(name, sizeof name, "more/%s%s", s->name, FM_LIVE_MORE_SUFFIX);
    const char *beside = name + strlen("more/");
    if (bytes_read(folder, name, b) < 0 && errno != ENOENT && errno != ENOTDIR)
        return false;
    return b->data || bytes_read(folder, beside, b) == 0 || errno == ENOENT;
}

/* Was the process killed before it had written the first word of its store? */
static bool is_unwritten(const struct bytes *live)
{
    static const char nothing[sizeof((struct fm_live_header *)NULL)->magic];
    return !live->data ||
           (live->len >= sizeof nothing && memcmp(live->data, nothing, sizeof nothing) == 0);
}

static void note_unwritten(struct fm_profile *into, const struct store *s)
{
    char text[128];
    snprintf(text, sizeof text, "process %u ended before anything of it was recorded", s->pid);
    fm_profile_note(into, FM_NONE, "unprofiled", 1, text);
}

static void join_live(struct fm_profile *into, int folder, const struct store *s,
                      const struct fm_live_ending *ending)
{
    struct bytes live, more = { 0 };
    struct fm_error err = FM_ERROR_INIT;
    if (bytes_read(folder, s->name, &live) < 0) {
        note_lost(into, s, strerror(errno));
    } else if (is_unwritten(&live)) {
        note_unwritten(into, s);
    } else {
        if (!read_more(folder, s, &more))
            note_lost(into, s, strerror(errno));
        if (fm_live_load(into, live.data, live.len, more.data, more.len, ending, &err) < 0)
            note_lost(into, s, err.text);
    }
    bytes_release(&live);
    bytes_release(&more);
}

/* What of a trace is not there. Its process is the last of the profile. */
static void note_trace(struct fm_profile *into, const struct fm_trace_log_facts *facts,
                       const struct fm_trace_pack *pack, const struct fm_live_ending *ending)
{
    uint32_t process = (uint32_t)into->processes.len - 1;
    char text[256];
    if (facts->failed) {
        snprintf(text, sizeof text, "the trace ends early, it could not be written: %s",
                 strerror(facts->failed));
        fm_profile_note(into, process, "lost", 1, text);
    }
    if (facts->lost)
        fm_profile_note(
            into, process, "lost", facts->lost,
            facts->failed || !ending->end_ns
                ? "events that are missing in the trace: nobody wrote them down any more"
                : "events that are missing in the trace: there was no room for them");
    uint64_t waited_ns = fm_trace_pack_length_ns(pack, facts->waited_ticks);
    if (waited_ns >= 1000000)
        fm_profile_note(
            into, process, "waited", waited_ns / 1000000,
            "ms that threads stood still, all in all, until there was room in the trace");
    if (facts->missing)
        fm_profile_note(into, process, "damaged", facts->missing,
                        "pieces of the trace that are missing or make no sense");
}

/* A process with its trace, if it has one: that which was packed meanwhile, or what can be read now. */
static void join_traced(struct fm_profile *into, const char *path, int folder,
                        const struct store *s, struct fm_live_ending *ending,
                        const struct fm_trace_watch *traces)
{
    size_t before = into->processes.len;
    struct fm_trace_log *own = NULL, *log = fm_trace_watch_find(traces, (pid_t)s->pid, s->number);
    bool cut = log && fm_trace_log_window_ns(log) && fm_trace_watch_goes_on(traces);
    if (!log || cut || !fm_trace_log_facts(log).ended)
        log = own =
            fm_trace_log_recover(path, (pid_t)s->pid, s->number, log ? FM_TRACE_LOG_NOW : 0);
    struct fm_trace_log_facts facts = { 0 };
    struct fm_live_trace trace = { 0 };
    if (log && fm_trace_log_pack(log)) {
        facts = fm_trace_log_facts(log);
        trace = (struct fm_live_trace){ fm_trace_log_pack(log), fm_trace_log_open_packed(log),
                                        fm_trace_log_path(log), fm_trace_log_window_ns(log),
                                        own != NULL };
        ending->trace = &trace;
    }
    join_live(into, folder, s, ending);
    if (ending->trace && into->processes.len > before)
        note_trace(into, &facts, trace.pack, ending);
    if (ending->trace && trace.packed >= 0)
        close(trace.packed);
    fm_trace_log_free(own);
}

/* What all processes of the run had together; false: nobody counted. */
static bool read_together(int folder, struct fm_heap_run *run)
{
    int fd = openat(folder, FM_HEAP_RUN_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool whole = pread(fd, run, sizeof *run, 0) == (ssize_t)sizeof *run;
    close(fd);
    return whole && memcmp(run->magic, FM_HEAP_RUN_MAGIC, sizeof run->magic) == 0 &&
           run->version == FM_HEAP_RUN_VERSION;
}

/* What the launcher saw of it meanwhile; nothing, if it was too short for that. */
static void read_slices(int folder, const struct store *s, struct bytes *b)
{
    char name[64];
    snprintf(name, sizeof name, "more/%u.%u" FM_SLICES_SUFFIX, s->pid, s->number);
    if (bytes_read(folder, name, b) == 0 && b->data)
        return;
    bytes_release(b);
    if (bytes_read(folder, name + strlen("more/"), b) < 0)
        bytes_release(b);
}

/* Events that the process could tell nobody. */
static uint64_t read_lost_events(int folder, const struct store *s)
{
    char name[64];
    struct fm_events_header h = { 0 };
    snprintf(name, sizeof name, "%u.%u" FM_EVENTS_SUFFIX, s->pid, s->number);
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool whole = fd >= 0 && pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h &&
                 memcmp(h.magic, FM_EVENTS_MAGIC, sizeof h.magic) == 0;
    if (fd >= 0)
        close(fd);
    return whole ? h.lost : 0;
}

static void join_heap(struct fm_profile *into, int folder, const struct store *s,
                      const struct fm_live_ending *ending)
{
    struct bytes b, more = { 0 }, slices;
    struct fm_heap_run run;
    bool together = read_together(folder, &run);
    struct fm_error err = FM_ERROR_INIT;
    if (bytes_read(folder, s->name, &b) < 0 || !read_more(folder, s, &more))
        note_lost(into, s, strerror(errno));
    read_slices(folder, s, &slices);
    struct fm_heap_files files = { .bytes = b.data,
                                   .len = b.len,
                                   .more = more.data,
                                   .more_len = more.len,
                                   .slices = slices.data,
                                   .slices_len = slices.len,
                                   .events_lost = read_lost_events(folder, s) };
    if (!b.data && !more.data)
        note_lost(into, s, "there was no room for its memory in the folder of the run");
    else if (fm_live_heap_load(into, &files, together ? &run : NULL, ending, &err) < 0)
        note_lost(into, s, err.text);
    bytes_release(&b);
    bytes_release(&more);
    bytes_release(&slices);
}

/* The value of "key=" at the start of a line, as a string id; 0 if it is not there. */
static uint32_t value_of(struct fm_profile *into, const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0 && line[n] == '=')
            return fm_strings_add(into->strings, line + n + 1, strcspn(line + n + 1, "\n"));
    }
    return 0;
}

static void join_unprofiled(struct fm_profile *into, int folder, const struct store *s,
                            const struct fm_live_ending *ending)
{
    char text[UNPROFILED_MAX_BYTES];
    struct bytes b;
    if (bytes_read(folder, s->name, &b) < 0) {
        note_lost(into, s, strerror(errno));
        return;
    }
    size_t len = b.len < sizeof text ? b.len : sizeof text - 1;
    if (b.data)
        memcpy(text, b.data, len);
    text[len] = '\0';
    bytes_release(&b);
    struct fm_process process = {
        .pid = s->pid,
        .exe = value_of(into, text, "exe"),
        .version = value_of(into, text, "version"),
        .command = value_of(into, text, "command"),
        .end_ns = ending->end_ns,
        .exit_status = ending->exit_status,
    };
    uint32_t parent = value_of(into, text, "parent"), reason = value_of(into, text, "reason");
    process.parent_pid = (uint32_t)strtoul(fm_profile_text(into, parent), NULL, 10);
    uint32_t index = fm_profile_process(into, &process);
    fm_profile_note(into, index, "unprofiled", 1,
                    reason ? fm_profile_text(into, reason)
                    : len  ? "no agent for this Python"
                           : "there was no room in the folder of the run, not even for the reason");
}

/* How the process ended that had the number `pid` at `start_ns`: of several processes of one number
 * the first that ended after that, or the one of which no end is known. 0: the last of them. */
static const struct fm_join_ending *ending_of(uint32_t pid, uint64_t start_ns,
                                              const struct fm_join_ending *endings, size_t n)
{
    const struct fm_join_ending *found = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct fm_join_ending *e = &endings[i];
        if (e->pid != pid || (e->end_ns && e->end_ns < start_ns))
            continue;
        if (!found || !start_ns || (e->end_ns && (!found->end_ns || e->end_ns < found->end_ns)))
            found = e;
    }
    return found;
}

/* What the sampler wrote into the folder; NULL if there is nothing. */
static struct fm_profile *open_samples(struct fm_profile *into, const char *folder)
{
    struct fm_error err = FM_ERROR_INIT;
    fm_autofree char *path = fm_path_join(folder, FM_RUN_SAMPLES_FILE);
    if (access(path, F_OK) != 0)
        return NULL;
    struct fm_profile *sampled = fm_profile_open(path, &err);
    if (!sampled)
        fm_profile_note(into, FM_NONE, "lost", 1, err.text);
    return sampled;
}

/* Does another of the same number, of those sampled, begin after this one and before that end? It is
 * the same process, with another program. */
static bool executes(const struct fm_profile *sampled, size_t i, const struct fm_join_ending *known)
{
    const struct fm_process *process = &sampled->processes.data[i];
    for (size_t k = i + 1; k < sampled->processes.len; k++) {
        const struct fm_process *later = &sampled->processes.data[k];
        if (later->pid == process->pid && later->start_ns >= process->start_ns &&
            later->start_ns <= known->end_ns)
            return true;
    }
    return false;
}

/* What was sampled from outside meanwhile, combined with what the processes recorded themselves. */
static void join_samples(struct fm_profile *into, struct fm_profile *sampled,
                         const struct fm_join_ending *endings, size_t n_endings)
{
    for (size_t i = 0; i < sampled->processes.len; i++) {
        struct fm_process *process = &sampled->processes.data[i];
        const struct fm_join_ending *known =
            ending_of(process->pid, process->start_ns, endings, n_endings);
        if (known && known->end_ns >= process->start_ns && !executes(sampled, i, known)) {
            if (known->exit_status >= 0) /* the sampler may know what the launcher does not */
                process->exit_status = known->exit_status;
            process->end_ns = known->end_ns;
        }
    }
    fm_profile_join_samples(into, sampled);
}

int fm_join_folder(struct fm_profile *into, const char *folder, struct fm_profile *sampled,
                   const struct fm_trace_watch *traces, const struct fm_join_ending *endings,
                   size_t n_endings, struct fm_error *err)
{
    FM_VEC(struct store) stores = { 0 };
    struct dirent *entry;
    DIR *dir = opendir(folder);
    if (!dir)
        return fm_error_set_errno(err, errno == ENOENT ? FM_NOT_FOUND : FM_CANNOT_READ, errno,
                                  "reading the folder %s", folder);
    while ((entry = readdir(dir))) {
        struct store s;
        if (parse_name(entry->d_name, &s)) {
            s.start_ns = s.kind == STORE_LIVE ? read_start(dirfd(dir), s.name) : 0;
            fm_vec_push(&stores, s);
        }
    }
    if (stores.len)
        qsort(stores.data, stores.len, sizeof *stores.data, compare_stores);
    for (size_t i = 0; i < stores.len; i++) {
        const struct store *s = &stores.data[i];
        const struct fm_join_ending *known = ending_of(s->pid, s->start_ns, endings, n_endings);
        const struct store *next = i + 1 < stores.len ? s + 1 : NULL;
        if (next && next->pid == s->pid &&
            next->kind != STORE_HEAP && /* the same process, with another program */
            ending_of(next->pid, next->start_ns, endings, n_endings) == known)
            known = NULL;
        struct fm_live_ending ending = { fm_clock_pair_now(), known ? known->end_ns : 0,
                                         known ? known->exit_status : -1 };
        if (s->kind == STORE_LIVE)
            join_traced(into, folder, dirfd(dir), s, &ending, traces);
        else if (s->kind == STORE_HEAP)
            join_heap(into, dirfd(dir), s, &ending);
        else
            join_unprofiled(into, dirfd(dir), s, &ending);
    }
    fm_vec_release(&stores);
    closedir(dir);
    struct fm_profile *opened = sampled ? NULL : open_samples(into, folder);
    if (sampled || opened)
        join_samples(into, sampled ? sampled : opened, endings, n_endings);
    fm_profile_free(opened);
    fm_sources_embed_used(into);
    return 0;
}
