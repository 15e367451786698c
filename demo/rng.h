/*
 * A small seeded random generator (splitmix64): the same seed gives the same numbers on every
 * machine.
 *
 * A generator is a plain value. It is seeded by three numbers, so that sample 17 of the training
 * set can be drawn by anybody, in any order, without drawing the 16 before it. Not for secrets.
 */
#ifndef AFZ_RNG_H
#define AFZ_RNG_H

#include <stdint.h>

struct afz_rng {
        uint64_t state;
};

static inline uint64_t afz_rng_mix(uint64_t z)
{
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static inline struct afz_rng afz_rng_seeded(uint64_t seed, uint64_t stream, uint64_t index)
{
        const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);

        return (struct afz_rng){afz_rng_mix(afz_rng_mix(seed + golden) + stream * golden) ^
                                afz_rng_mix(index + golden)};
}

static inline uint64_t afz_rng_next(struct afz_rng *rng)
{
        rng->state += UINT64_C(0x9e3779b97f4a7c15);
        return afz_rng_mix(rng->state);
}

/* Uniform in [low, high). */
static inline float afz_rng_between(struct afz_rng *rng, float low, float high)
{
        const float unit = (float)(afz_rng_next(rng) >> 40) * 0x1p-24F;

        return low + (high - low) * unit;
}

#endif
