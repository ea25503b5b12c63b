/* Regions of C code; see c_regions.h. */
#include "target/agent/regions/c_regions.h"

#include "target/agent/regions/regions.h"
#include <fathom.h>

static void region_begin(const char *name)
{
    if (name)
        fm_regions_enter_c(name, fm_python_has_gil());
}

static void region_end(void)
{
    fm_regions_leave_c(fm_python_has_gil());
}

static void span_begin(const char *name, fathom_span *span)
{
    if (!name)
        return;
    struct fm_region_token token = fm_regions_open_c(name, fm_python_has_gil());
    *span = (fathom_span){ token.visit, token.serial, token.era };
}

static void span_end(const fathom_span *span)
{
    fm_regions_close_c((struct fm_region_token){ span->visit, span->serial, span->era },
                       fm_python_has_gil());
}

/* In traces alone, which are written with the GIL. */
static void counter(const char *name, double value)
{
    if (name && fm_python_has_gil())
        fm_regions_counter_c(name, value);
}

static void instant(const char *name)
{
    if (name && fm_python_has_gil())
        fm_regions_instant_c(name);
}

void fm_c_regions_begin(void)
{
    struct fathom_hooks *hooks = &fathom_hooks_1;
    hooks->region_begin = region_begin;
    hooks->region_end = region_end;
    hooks->span_begin = span_begin;
    hooks->span_end = span_end;
    hooks->counter = counter;
    hooks->instant = instant;
    __atomic_store_n(&hooks->recording, 1, __ATOMIC_RELEASE);
}
