/* Facts about the machine and the moment; see facts.h. */
#include "commands/facts.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static void add_start_time(struct fm_profile *p)
{
    char text[64], zone[16];
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    strftime(zone, sizeof zone, "%z", &tm);
    strncat(text, zone, sizeof text - strlen(text) - 1);
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
