/* Colours by weight; see theme.h. The numbers are those of gprof2dot's colour maps. */
#include "show/graph/theme.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"

#define GAMMA 2.2

static const struct fm_theme themes[] = {
    { "color", { 2.0 / 3, 0.8, 0.25 }, { 0, 1, 0.5 }, 1, 10, 10, 0.5, 4, true, false },
    { "pink", { 0, 1, 0.9 }, { 0, 1, 0.5 }, GAMMA, 10, 10, 0.5, 4, true, false },
    { "gray", { 0, 0, 0.85 }, { 0, 0, 0 }, GAMMA, 10, 10, 0.5, 4, true, true },
    { "bw", { 0, 0, 0 }, { 0, 0, 0 }, GAMMA, 8, 24, 0.1, 8, true, true },
    { "print", { 0, 0, 0 }, { 0, 0, 0 }, GAMMA, 18, 30, 0.1, 8, false, true },
};

static const struct {
    const char *alias, *name;
} aliases[] = { { "colour", "color" }, { "temperature", "color" }, { "grey", "gray" } };

const char *const *fm_theme_names(void)
{
    static const char *const names[] = { "color", "pink", "gray", "bw", "print", NULL };
    return names;
}

const struct fm_theme *fm_theme_named(const char *name)
{
    for (size_t i = 0; i < FM_COUNT(aliases); i++)
        if (strcmp(aliases[i].alias, name) == 0)
            name = aliases[i].name;
    for (size_t i = 0; i < FM_COUNT(themes); i++)
        if (strcmp(themes[i].name, name) == 0)
            return &themes[i];
    return NULL;
}

static double clamp(double x)
{
    return !(x > 0) ? 0 : x > 1 ? 1 : x;
}

/* One channel of the HSL colour model, as in CSS. */
static double channel(double m1, double m2, double h)
{
    if (h < 0)
        h += 1;
    else if (h > 1)
        h -= 1;
    if (h * 6 < 1)
        return m1 + (m2 - m1) * h * 6;
    if (h * 2 < 1)
        return m2;
    if (h * 3 < 2)
        return m1 + (m2 - m1) * (2.0 / 3 - h) * 6;
    return m1;
}

static uint8_t byte_of(double x, double gamma)
{
    return (uint8_t)(255 * clamp(gamma == 1 ? x : pow(x, gamma)) + 0.5);
}

static struct fm_rgb rgb_of(struct fm_hsl c, double gamma)
{
    double h = c.h - floor(c.h), s = clamp(c.s), l = clamp(c.l);
    double m2 = l <= 0.5 ? l * (s + 1) : l + s - l * s, m1 = l * 2 - m2;
    return (struct fm_rgb){ byte_of(channel(m1, m2, h + 1.0 / 3), gamma),
                            byte_of(channel(m1, m2, h), gamma),
                            byte_of(channel(m1, m2, h - 1.0 / 3), gamma) };
}

struct fm_rgb fm_theme_colour(const struct fm_theme *theme, double weight, double skew)
{
    double w = clamp(weight);
    if (skew != 1 && skew > 0)
        w = (pow(skew, w) - 1) / (skew - 1);
    struct fm_hsl a = theme->min, b = theme->max;
    struct fm_hsl c = { a.h + w * (b.h - a.h), a.s + w * (b.s - a.s), a.l + w * (b.l - a.l) };
    return rgb_of(c, theme->gamma);
}

/* What a channel contributes to brightness (sRGB). */
static double linear(uint8_t channel_byte)
{
    return pow(channel_byte / 255.0, 2.2);
}

struct fm_rgb fm_theme_text(struct fm_rgb ground)
{
    double bright =
        0.2126 * linear(ground.r) + 0.7152 * linear(ground.g) + 0.0722 * linear(ground.b);
    bool readable = 1.05 / (bright + 0.05) >= 2.5; /* the contrast of white */
    return readable ? (struct fm_rgb){ 0xff, 0xff, 0xff } : (struct fm_rgb){ 0x20, 0x20, 0x20 };
}

double fm_theme_font(const struct fm_theme *theme, double weight)
{
    double size = clamp(weight) * clamp(weight) * theme->font_max;
    return size > theme->font_min ? size : theme->font_min;
}

double fm_theme_pen(const struct fm_theme *theme, double weight)
{
    double width = clamp(weight) * theme->pen_max;
    return width > theme->pen_min ? width : theme->pen_min;
}

double fm_theme_arrow(const struct fm_theme *theme, double weight)
{
    return 0.5 * sqrt(fm_theme_pen(theme, weight));
}

/* From a pale tint to a strong colour; the hues are told apart by the colour-blind too. */
struct fm_rgb fm_theme_change(double change)
{
    double size = clamp(fabs(change));
    if (size == 0)
        return (struct fm_rgb){ 0xe8, 0xe8, 0xe8 };
    return rgb_of((struct fm_hsl){ change > 0 ? 0.01 : 0.58, 0.75, 0.90 - 0.48 * size }, 1);
}

struct fm_rgb fm_theme_change_line(double change)
{
    double size = clamp(fabs(change));
    if (size == 0)
        return (struct fm_rgb){ 0x80, 0x80, 0x80 };
    return rgb_of((struct fm_hsl){ change > 0 ? 0.01 : 0.58, 0.35 + 0.45 * size, 0.45 }, 1);
}
