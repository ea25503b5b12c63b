/* Which part of a timeline is written; see convert_choice.h. */
#include "commands/convert_choice.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define LONGEST_NS 1e18
#define MANY       5000000u /* slices: about 2 GB of memory in the page of Perfetto */

bool fm_convert_time(const char *text, uint64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = { { "ns", 1 },  { "us", 1e3 },   { "µs", 1e3 },  { "ms", 1e6 },
                  { "s", 1e9 }, { "min", 60e9 }, { "h", 3600e9 } };
    char *end;
    if (!fm_convert_is_time(text))
        return false;
    double number = strtod(text, &end);
    for (size_t i = 0; end != text && i < FM_COUNT(units); i++) {
        double value = number * units[i].ns;
        if (strcmp(end, units[i].unit) != 0 || !(value >= 0 && value < LONGEST_NS))
            continue;
        *ns = (uint64_t)llround(value);
        return true;
    }
    return false;
}

bool fm_convert_is_time(const char *text)
{
    return *text && strchr("0123456789.", *text);
}

bool fm_convert_chose(const struct fm_save_choice *choice)
{
    return choice->from_ns || choice->to_ns || choice->min_ns || choice->max_depth;
}

void fm_convert_say_spans(uint64_t spans)
{
    fprintf(stderr, "fathom convert: %" PRIu64 " slices\n", spans);
    if (spans > MANY)
        fprintf(stderr,
                "fathom convert: the page needs about %" PRIu64 " GB for them; --from, --to, "
                "--min-duration and --max-depth choose a part\n",
                spans / 2500000);
}
