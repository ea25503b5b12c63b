/*
 * Environments with and without Fathom's two variables; see preload.h.
 *
 * The library stands last in LD_PRELOAD: what the user preloads keeps its place in front
 * (sanitizers insist on it). So "LD_PRELOAD=X" becomes "LD_PRELOAD=X:library", and no LD_PRELOAD at all becomes
 * "LD_PRELOAD=library"; cleaning turns each back into what it was, an empty one included. With --memory the
 * heap library stands first: "LD_PRELOAD=heap:X:library". The two come and go together.
 *
 * Only functions that are safe between vfork and exec. `environ` is read, as exec itself reads it, and
 * changed only by the constructor.
 */
#include "target/preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_ENTRIES (1u << 20) /* more is passed on as it is */

static const char preload_name[] = "LD_PRELOAD=";
static const char run_name[] = "FATHOM_RUN=";

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Where a library stands in a list separated by colons or spaces; NULL if it does not. */
static char *find_library(const char *list, const char *library)
{
    size_t len = strlen(library);
    for (const char *at = list; (at = strstr(at, library)); at++) {
        bool begins = at == list || at[-1] == ':' || at[-1] == ' ';
        bool ends = at[len] == '\0' || at[len] == ':' || at[len] == ' ';
        if (begins && ends)
            return (char *)at;
    }
    return NULL;
}

/* May the program that is about to be executed load the library? Its loader says so aloud if not:
 * when this process became another user (su, setpriv) or has another root (chroot), and the library
 * lies where only the user of Fathom may read. Asked for both users, since posix_spawn may go back
 * from the effective one to the real one. */
static bool library_is_readable(void)
{
    int saved_errno = errno;
    bool readable = access(fm_preload.library, R_OK) == 0 &&
                    faccessat(AT_FDCWD, fm_preload.library, R_OK, AT_EACCESS) == 0;
    errno = saved_errno;
    return readable;
}

/* The bytes of an environment with another entry for LD_PRELOAD, at most `more` longer. */
static size_t bytes_needed(const struct fm_environment *plan, size_t more)
{
    size_t list = plan->preload ? strlen(plan->preload) + 1 : 0;
    return (plan->entries + 3) * sizeof(char *) + sizeof preload_name + list + more;
}

void fm_environment_plan(struct fm_environment *plan, char *const *envp)
{
    *plan = (struct fm_environment){ .old = envp };
    if (!fm_preload.active)
        return;
    bool has_run = false;
    for (; envp && envp[plan->entries]; plan->entries++) {
        if (plan->entries == MAX_ENTRIES)
            return;
        const char *entry = envp[plan->entries];
        if (begins_with(entry, run_name))
            has_run = true;
        else if (!plan->preload && begins_with(entry, preload_name))
            plan->preload = entry + strlen(preload_name);
    }
    bool has_library = plan->preload && find_library(plan->preload, fm_preload.library);
    if (!library_is_readable()) {
        plan->remove = has_run || has_library;
        plan->bytes = plan->remove ? bytes_needed(plan, 0) : 0;
        return;
    }
    plan->add_run = !has_run;
    plan->add_preload = !has_library;
    if (plan->add_run || plan->add_preload)
        plan->bytes = bytes_needed(plan, strlen(fm_preload.heap) + strlen(fm_preload.library) + 2);
}

bool fm_environment_differs(void)
{
    struct fm_environment plan;
    fm_environment_plan(&plan, environ);
    return plan.bytes != 0;
}

/* Take a library out of the list, with the separator that came with it. False if nothing is left and
 * there was no separator: then the list is Fathom's alone. */
static bool clean_list(char *list, const char *library)
{
    char *at = find_library(list, library);
    if (!at)
        return true;
    char *rest = at + strlen(library);
    if (at == list && *rest == '\0')
        return false;
    if (at > list)
        at--;
    else
        rest++;
    memmove(at, rest, strlen(rest) + 1);
    return true;
}

/* The same of the entry "LD_PRELOAD=…" and all libraries. */
static bool clean_preload(char *entry)
{
    char *list = entry + strlen(preload_name);
    if (fm_preload.heap[0] && !clean_list(list, fm_preload.heap))
        return false;
    return clean_list(list, fm_preload.library);
}

static bool is_preload_entry(const struct fm_environment *plan, size_t i)
{
    return plan->preload && plan->old[i] + strlen(preload_name) == plan->preload;
}

/* The old entries without both variables. */
static size_t fill_without(const struct fm_environment *plan, char **env, char *text)
{
    size_t n = 0;
    for (size_t i = 0; i < plan->entries; i++) {
        char *entry = plan->old[i];
        if (begins_with(entry, run_name))
            continue;
        if (is_preload_entry(plan, i)) {
            entry = memcpy(text, entry, strlen(entry) + 1);
            if (!clean_preload(entry))
                continue;
        }
        env[n++] = entry;
    }
    return n;
}

/* The old entries and both variables. */
static size_t fill_with(const struct fm_environment *plan, char **env, char *text)
{
    size_t n = 0;
    if (plan->add_preload) {
        char *end = mempcpy(text, preload_name, strlen(preload_name));
        if (fm_preload.heap[0]) {
            end = mempcpy(end, fm_preload.heap, strlen(fm_preload.heap));
            *end++ = ':';
        }
        if (plan->preload) {
            end = mempcpy(end, plan->preload, strlen(plan->preload));
            *end++ = ':';
        }
        memcpy(end, fm_preload.library, strlen(fm_preload.library) + 1);
    }
    for (size_t i = 0; i < plan->entries; i++)
        env[n++] = plan->add_preload && is_preload_entry(plan, i) ? text : plan->old[i];
    if (plan->add_preload && !plan->preload)
        env[n++] = text;
    if (plan->add_run)
        env[n++] = fm_preload.run_entry;
    return n;
}

char **fm_environment_fill(const struct fm_environment *plan, void *memory)
{
    char **env = memory;
    char *text = (char *)(env + plan->entries + 3);
    size_t n = plan->remove ? fill_without(plan, env, text) : fill_with(plan, env, text);
    env[n] = NULL;
    return env;
}

void fm_environment_clean(void)
{
    char **to = environ;
    for (char **from = environ; from && *from; from++) {
        bool keep = !begins_with(*from, run_name);
        if (keep && begins_with(*from, preload_name))
            keep = clean_preload(*from);
        if (keep)
            *to++ = *from;
    }
    if (to)
        *to = NULL;
}

/*
 * Memory for large environments. It cannot be given back after use: in a child of vfork the exec
 * succeeds and nobody comes back, while the memory is the parent's. So each thread keeps one piece
 * and uses it again. A thread is known by pthread_self(), which in a child of vfork is that of the
 * thread waiting for it.
 */
struct piece {
    _Atomic(pthread_t) owner; /* 0: nobody's. A thread that has ended leaves its piece to the next
                                 one with its number */
    void *memory;             /* the owner's */
    size_t bytes;
};
static struct piece pieces[64];

static void *map(size_t bytes)
{
    int saved_errno = errno;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    return memory == MAP_FAILED ? NULL : memory;
}

void *fm_environment_memory(size_t bytes)
{
    pthread_t self = pthread_self();
    size_t i = 0;
    for (; i < sizeof pieces / sizeof *pieces; i++) {
        pthread_t nobody = 0;
        if (pieces[i].owner == self ||
            atomic_compare_exchange_strong(&pieces[i].owner, &nobody, self))
            break;
    }
    if (i == sizeof pieces / sizeof *pieces)
        return map(bytes); /* more threads than pieces: this one is not used again */
    struct piece *piece = &pieces[i];
    if (piece->bytes < bytes) {
        /* Twice as much as needed, and the old one stays: it may be in use below a signal. */
        void *memory = map(bytes * 2);
        if (!memory)
            return NULL;
        piece->memory = memory;
        piece->bytes = bytes * 2;
    }
    return piece->memory;
}
