/* The descriptions of metrics and states; see metrics.h and states.h. */
#include "record/model/metrics.h"

#include <string.h>

#include "record/model/profile.h"

static const struct fm_state_info states[] = {
#define X(name, text, word, letter, label, title, runs, ansi, light, dark)                         \
    [FM_STATE_##name] = { text, word, letter, label, title, runs, FM_ANSI_##ansi, light, dark },
    FM_STATE_LIST(X)
#undef X
};

const struct fm_metric_info fm_metric_infos[FM_METRIC_COUNT] = {
#define METRIC(text, title, ...)                                                                   \
    {                                                                                              \
        text, title, "total " title, "total_" text, __VA_ARGS__                                    \
    }
#define X(name, text, title, unit, kind, scope, origin, place, light, dark)                        \
    [FM_METRIC_##name] = METRIC(text, title, FM_UNIT_##unit, FM_COMBINE_##kind, FM_OF_##scope,     \
                                FM_##origin, FM_PLACE_##place, light, dark),
    FM_METRIC_LIST(X)
#undef X
#define X(name, text, word, letter, label, title, runs, ansi, light, dark)                         \
    [FM_METRIC_STATE_##name] = METRIC(text, title, FM_UNIT_NS, FM_COMBINE_SUM, FM_OF_SELF,         \
                                      FM_SAMPLED, FM_PLACE_STATE, light, dark),
        FM_STATE_LIST(X)
#undef X
#undef METRIC
};

const struct fm_state_info *fm_state_info(enum fm_state state)
{
    static const struct fm_state_info unknown = {
        "?", "?", '?', "?", "?", false, FM_ANSI_DIM, 0, 0
    };
    return (unsigned)state < FM_STATE_COUNT ? &states[state] : &unknown;
}

unsigned fm_states_running(void)
{
    unsigned running = 0;
    for (int s = 0; s < FM_STATE_COUNT; s++)
        running |= states[s].runs ? 1u << s : 0;
    return running;
}

enum fm_metric fm_metric_named(const char *name)
{
    int metric = 0;
    while (metric < FM_METRIC_COUNT && strcmp(fm_metric_infos[metric].name, name) != 0)
        metric++;
    return (enum fm_metric)metric;
}

enum fm_metric fm_metric_error(enum fm_metric metric)
{
    switch (metric) {
    case FM_METRIC_PEAK:
        return FM_METRIC_PEAK_ERROR;
    case FM_METRIC_LEAKED:
        return FM_METRIC_LEAKED_ERROR;
    case FM_METRIC_ALLOCATED:
        return FM_METRIC_ALLOCATED_ERROR;
    case FM_METRIC_TEMPORARY:
        return FM_METRIC_TEMPORARY_ERROR;
    default:
        return FM_METRIC_COUNT;
    }
}

/* The root by whole numbers: the page's engine has no mathematics. */
int64_t fm_error_bytes(int64_t squares, uint64_t sample_bytes)
{
    if (squares <= 0)
        return 0;
    uint64_t most = (uint64_t)1 << 30; /* nobody samples more rarely: files may say anything */
    uint64_t sample = (sample_bytes < most ? sample_bytes : most) / FM_ERROR_UNIT_BYTES;
    uint64_t left = (uint64_t)squares + FM_ERROR_MORE_SAMPLES * sample * sample, root = 0;
    for (uint64_t bit = (uint64_t)1 << 62; bit; bit >>= 2) {
        bool fits = left >= root + bit;
        left -= fits ? root + bit : 0;
        root = (root >> 1) + (fits ? bit : 0);
    }
    return (int64_t)root * FM_ERROR_WIDTH * FM_ERROR_UNIT_BYTES; /* below 2^37 */
}

const char *fm_unit_name(enum fm_unit unit)
{
    static const char *const names[FM_UNIT_KINDS] = {
        [FM_UNIT_COUNT] = "",           [FM_UNIT_NS] = "ns",
        [FM_UNIT_BYTES] = "bytes",      [FM_UNIT_SHARE] = "ppm",
        [FM_UNIT_ERROR] = "256 bytes²",
    };
    return names[unit];
}

int64_t fm_metric_combine(enum fm_metric metric, int64_t a, int64_t b)
{
    switch (fm_metric_infos[metric].kind) {
    case FM_COMBINE_MIN:
        if (!a || !b)
            return a ? a : b;
        return a < b ? a : b;
    case FM_COMBINE_MAX:
        return a > b ? a : b;
    case FM_COMBINE_LAST:
        return b ? b : a;
    case FM_COMBINE_SUM:
        break;
    }
    return fm_sum(a, b);
}
