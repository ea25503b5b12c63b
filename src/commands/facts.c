/* Facts about the machine and the moment; see facts.h. */
#include "commands/facts.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/formats/sources.h"

static void add_start_time(struct fm_profile *p)
{
    char text[64];
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &tm);
    fm_profile_fact(p, "start", text);
}

void fm_facts_add(struct fm_profile *p)
{
    struct utsname os;
    char text[512];
    if (uname(&os) == 0) {
        fm_profile_fact(p, "host", os.nodename);
        snprintf(text, sizeof text, "%s %s %s", os.sysname, os.release, os.machine);
        fm_profile_fact(p, "os", text);
    }
    snprintf(text, sizeof text, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    fm_profile_fact(p, "cpus", text);
    add_start_time(p);
    fm_profile_fact(p, "fathom", FATHOM_VERSION);
}

struct fm_profile *fm_facts_of_watching(const char *verb, pid_t pid)
{
    struct fm_profile *p = fm_profile_new();
    char text[64];
    snprintf(text, sizeof text, "%s %d", verb, (int)pid);
    fm_facts_add(p);
    fm_profile_fact(p, "collectors", "samples");
    fm_profile_fact(p, "attached", text);
    return p;
}

void fm_facts_complete(struct fm_profile *p, const struct fm_profile *facts, uint64_t start_ns)
{
    char text[64];
    for (size_t i = 0; i < facts->facts.len; i++)
        fm_profile_fact(p, fm_profile_text(facts, facts->facts.data[i].key),
                        fm_profile_text(facts, facts->facts.data[i].value));
    snprintf(text, sizeof text, "%.6f", (double)(fm_clock_ns() - start_ns) / 1e9);
    fm_profile_fact(p, "duration", text);
    if (p->processes.len)
        fm_profile_fact(p, "command", fm_profile_text(p, p->processes.data[0].command));
    fm_sources_embed(p);
}
