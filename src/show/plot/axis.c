/* Steps and labels of axes; see plot.h. */
#include <math.h>

#include "base/memory.h"
#include "show/plot/plot.h"

double fm_plot_step(double most, int wanted)
{
    double rough = most / wanted, power = pow(10, floor(log10(rough)));
    static const double steps[] = { 1, 2, 5, 10 };
    for (size_t i = 0; i < FM_COUNT(steps); i++)
        if (rough <= steps[i] * power * 1.0001)
            return steps[i] * power;
    return 10 * power;
}

int64_t fm_plot_bytes(double bytes)
{
    return bytes >= 9e18 ? INT64_MAX : (int64_t)bytes;
}

/* The unit, a power of 1024, of a number of bytes, and its name. */
static double unit_of(double bytes, const char **ret_name)
{
    static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double unit = 1;
    size_t i = 0;
    for (; i + 1 < FM_COUNT(names) && bytes >= unit * 1024; i++)
        unit *= 1024;
    *ret_name = names[i];
    return unit;
}

double fm_plot_step_bytes(double most, int wanted)
{
    const char *name;
    double unit = unit_of(most, &name);
    double step = fm_plot_step(most / unit, wanted) * unit;
    return step < 1 ? 1 : step;
}

void fm_plot_label_bytes(struct fm_buffer *out, double bytes, double step)
{
    const char *name;
    double unit = unit_of(fmax(bytes, step), &name);
    if (bytes == 0)
        fm_buffer_add_text(out, "0");
    else
        fm_buffer_addf(out, "%.*f %s", fmod(bytes / unit, 1) ? 1 : 0, bytes / unit, name);
}

void fm_plot_label_seconds(struct fm_buffer *out, double seconds, double step)
{
    long whole = lround(seconds);
    int digits = step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-9);
    if (step < 60)
        fm_buffer_addf(out, "%.*f s", digits, seconds);
    else if (step < 3600)
        fm_buffer_addf(out, "%ld:%02ld min", whole / 60, whole % 60);
    else
        fm_buffer_addf(out, "%ld:%02ld h", whole / 3600, whole / 60 % 60);
}
