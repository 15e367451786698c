#ifndef AFZ_TEST_LADDER_CASES_H
#define AFZ_TEST_LADDER_CASES_H
/* What the tests with a simulated machine begin with, and ask of how it went. */
#include <inttypes.h>

#include "ladder_sim.h"

/* The first is the least that there is: there, 500 MB/s is more than can always be met. */
static const uint64_t budgets[] = {64 * MIB, 128 * MIB, 256 * MIB, 512 * MIB,
                                   GIB,      4 * GIB,   16 * GIB,  64 * GIB};
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

static inline struct sim sim_of(uint64_t budget, uint64_t seed)
{
        return (struct sim){
                .budget = {.ram_bytes = budget, .given = true},
                .tier = AFZ_TIER_SCOPE,
                .policy = AFZ_POLICY_PROTECT,
                .grace_ns = 30 * SECOND,
                .cost_ns = seed % 2 ? 5 * MS : 0,
                .ram = budget * 4,
                .saves_ns = 2 * SECOND,
                .run_for_ns = 60 * SECOND,
                .floor = budget / 4,
                .seed = seed,
        };
}

static inline struct afz_lines lines_of(const struct sim *s)
{
        return afz_lines_of(&s->budget, s->ram);
}

static inline bool acted(const struct sim *s, enum afz_action action)
{
        return s->out.count[action] > 0;
}

static inline void whole(const struct sim *s)
{
        if (s->out.broke)
                fail_msg("seed %" PRIu64 ": %s", s->seed, s->out.what);
}

static inline uint64_t deeds(const struct sim *s)
{
        uint64_t all = 0;
        for (unsigned i = 0; i < AFZ_ACTION_COUNT; i++)
                all += s->out.count[i];
        return all;
}

#endif
