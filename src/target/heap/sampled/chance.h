/*
 * Chance, for sampled blocks: random numbers, how many bytes lie between two samples, and how likely
 * a block is to be one.
 *
 * Whole numbers only: this runs inside of the program's allocations, and floating point would leave its
 * marks in the processor's flags, or trap where a program asks for that.
 */
#ifndef FM_HEAP_CHANCE_H
#define FM_HEAP_CHANCE_H

#include <stdint.h>

/* The next number of a sequence that `state` keeps, each as likely as any other. */
static inline uint64_t fm_chance_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* e^(-bytes/interval), of 2^64; of 0 bytes it is the highest number there is. */
uint64_t fm_chance_of_none(uint64_t bytes, uint64_t interval);

/* A distance in bytes from a distribution that remembers nothing: on average the interval. */
uint64_t fm_chance_distance(uint64_t *state, uint64_t interval);

#endif
