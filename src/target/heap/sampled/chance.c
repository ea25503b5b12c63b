/* Chance without floating point; see chance.h. */
#include "target/heap/sampled/chance.h"

#define DIGITS   32
#define FRACTION 26 /* digits behind the point */

/* e^(-2^(5 - i)), of 2^64: of 32, 16, … 1, 1/2, … */
static const uint64_t powers[DIGITS] = {
    0x000000000003908du, 0x000001e355bbaee8u, 0x0015fc21041027adu, 0x04b0556e084f3d1eu,
    0x22a555477f039740u, 0x5e2d58d8b3bcdf1bu, 0x9b4597e37cb04ff4u, 0xc75f7cf564105743u,
    0xe1eb51276c110c3cu, 0xf07d5fde38151e73u, 0xf81fab5445aebc8au, 0xfc07f55ff77d2494u,
    0xfe01feab551127ccu, 0xff007fd55ffdde39u, 0xff801ffaab554446u, 0xffc007ff555fff77u,
    0xffe001ffeaab5551u, 0xfff0007ffd556000u, 0xfff8001fffaaab55u, 0xfffc0007fff55560u,
    0xfffe0001fffeaaabu, 0xffff00007fffd555u, 0xffff80001ffffaabu, 0xffffc00007ffff55u,
    0xffffe00001ffffebu, 0xfffff000007ffffdu, 0xfffff80000200000u, 0xfffffc0000080000u,
    0xfffffe0000020000u, 0xffffff0000008000u, 0xffffff8000002000u, 0xffffffc000000800u,
};

static uint64_t times(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b >> 64);
}

/* What is left of x = bytes / interval behind its 26 digits is so small that e^-x is 1 - x. */
uint64_t fm_chance_of_none(uint64_t bytes, uint64_t interval)
{
    if (bytes / interval >= 64)
        return 0;
    unsigned __int128 x = ((unsigned __int128)bytes << 64) / interval;
    uint64_t digits = (uint64_t)(x >> (64 - FRACTION)), none = UINT64_MAX;
    uint64_t rest = (uint64_t)x & (((uint64_t)1 << (64 - FRACTION)) - 1);
    for (int i = 0; i < DIGITS; i++)
        if (digits >> (DIGITS - 1 - i) & 1)
            none = times(none, powers[i]);
    return none - times(none, rest);
}

/* The binary digits of such a distance are independent of each other: that of worth v is 1 in one of
 * 1 + e^v cases. */
uint64_t fm_chance_distance(uint64_t *state, uint64_t interval)
{
    uint64_t digits = 0;
    for (int i = 0; i < DIGITS; i++) {
        uint64_t random = fm_chance_next(state) >> 1;
        digits = digits << 1 | (random + times(random, powers[i]) < powers[i] >> 1);
    }
    return (uint64_t)((unsigned __int128)digits * interval >> FRACTION);
}
