/*
 * Environments with and without Fathom's two variables; see preload.h.
 *
 * The library stands last in LD_PRELOAD: what the user preloads keeps its place in front
 * (sanitizers insist on it). So "LD_PRELOAD=X" becomes "LD_PRELOAD=X:library", and no LD_PRELOAD at all becomes
 * "LD_PRELOAD=library"; cleaning turns each back into what it was, an empty one included.
 *
 * Only functions that are safe between vfork and exec.
 */
#include "target/preload/preload.h"

#include <errno.h>
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

/* Where the library stands in a list separated by colons or spaces; NULL if it does not. */
static char *find_library(const char *list)
{
    size_t len = strlen(fm_preload.library);
    for (const char *at = list; (at = strstr(at, fm_preload.library)); at++) {
        bool begins = at == list || at[-1] == ':' || at[-1] == ' ';
        bool ends = at[len] == '\0' || at[len] == ':' || at[len] == ' ';
        if (begins && ends)
            return (char *)at;
    }
    return NULL;
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
    plan->add_run = !has_run;
    plan->add_preload = !plan->preload || !find_library(plan->preload);
    if (!plan->add_run && !plan->add_preload)
        return;
    plan->bytes = (plan->entries + 3) * sizeof(char *);
    if (plan->add_preload)
        plan->bytes += sizeof preload_name + strlen(fm_preload.library) + 1 +
                       (plan->preload ? strlen(plan->preload) : 0);
}

char **fm_environment_fill(const struct fm_environment *plan, void *memory)
{
    char **env = memory;
    char *text = (char *)(env + plan->entries + 3);
    size_t n = 0;
    if (plan->add_preload) {
        char *end = mempcpy(text, preload_name, strlen(preload_name));
        if (plan->preload) {
            end = mempcpy(end, plan->preload, strlen(plan->preload));
            *end++ = ':';
        }
        memcpy(end, fm_preload.library, strlen(fm_preload.library) + 1);
    }
    for (size_t i = 0; i < plan->entries; i++) {
        bool replace = plan->add_preload && plan->preload &&
                       plan->old[i] + strlen(preload_name) == plan->preload;
        env[n++] = replace ? text : plan->old[i];
    }
    if (plan->add_preload && !plan->preload)
        env[n++] = text;
    if (plan->add_run)
        env[n++] = fm_preload.run_entry;
    env[n] = NULL;
    return env;
}

/* Take the library out of the entry "LD_PRELOAD=…", with the separator that came with it. False
 * if nothing is left and there was no separator: then the variable is Fathom's alone. */
static bool clean_preload(char *entry)
{
    char *list = entry + strlen(preload_name);
    char *at = find_library(list);
    if (!at)
        return true;
    char *rest = at + strlen(fm_preload.library);
    if (at == list && *rest == '\0')
        return false;
    if (at > list)
        at--;
    else
        rest++;
    memmove(at, rest, strlen(rest) + 1);
    return true;
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

void *fm_environment_map(size_t bytes)
{
    int saved_errno = errno;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    return memory == MAP_FAILED ? NULL : memory;
}

void fm_environment_unmap(void *memory, size_t bytes)
{
    int saved_errno = errno;
    if (memory)
        munmap(memory, bytes);
    errno = saved_errno;
}
