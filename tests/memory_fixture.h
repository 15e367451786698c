#ifndef AFZ_MEMORY_FIXTURE_H
#define AFZ_MEMORY_FIXTURE_H
/* For the judges of what a run holds: lines with what is live, a step clock, a need, and a run of
 * 10 GiB that ended in one of several ways. A look every second, as the keeper takes them. */
#include <stdio.h>

#include "judge_fixture.h"

#define RUN_MS  60000
#define STEP_MS 20000 /* when steps begin */

static const struct fly_times whole = {1000, RUN_MS, 1000};

/* The line of a site, its file, its function and its stack. NULL: the line alone is the stack. */
static inline void tell_site(uint64_t id, const char *line, const char *function, const char *stack)
{
        char where[80];
        snprintf(where, sizeof where, "/home/me/%.*s", (int)strcspn(line, " "), line);
        fly_named(&flight, AFZ_KIND_SITE, id, line, where, function);
        fly_mark(&flight, 1000, AFZ_MARK_SITE, (int64_t)id, stack ? stack : line);
}

/* What it holds over some time; high and low below 0: these were not recorded. */
struct holds {
        int64_t live, early, blocks, high, low;
};

static inline void tell_holds(uint64_t id, struct fly_times times, const struct holds *h)
{
        fly_flat(&flight, AFZ_KIND_SITE, id, AFZ_SITE_LIVE, times, h->live);
        fly_flat(&flight, AFZ_KIND_SITE, id, AFZ_SITE_EARLY, times, h->early);
        fly_flat(&flight, AFZ_KIND_SITE, id, AFZ_SITE_BLOCKS, times, h->blocks);
        fly_flat(&flight, AFZ_KIND_SITE, id, AFZ_SITE_COUNTED, times, h->live);
        if (h->high >= 0)
                fly_flat(&flight, AFZ_KIND_SITE, id, AFZ_SITE_HIGH, times, h->high);
        if (h->low >= 0)
                fly_flat(&flight, AFZ_KIND_SITE, id, AFZ_SITE_LOW, times, h->low);
}

/* It is loaded within the first seconds, in one piece, and stays. */
static inline void tell_loaded(uint64_t id, double gib)
{
        tell_holds(id, whole,
                   &(struct holds){FLY_GB(gib), FLY_GB(gib), 1, FLY_GB(gib), FLY_GB(gib)});
}

static inline void tell_need(double gib)
{
        fly_flat(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, fly_every(2000, RUN_MS, 100),
                 FLY_GB(gib));
}

static inline void tell_steps(void)
{
        fly_flat(&flight, AFZ_KIND_INSIDE, 100, AFZ_INSIDE_STEP, fly_every(1000, STEP_MS, 1000), 0);
        fly_steps(&flight, fly_every(STEP_MS, RUN_MS, 200), 1);
}

static inline void tell_high(struct fly_times times, double gib)
{
        fly_flat(&flight, AFZ_KIND_INSIDE, 100, AFZ_INSIDE_HIGH, times, FLY_GB(gib));
}

/* How it ended, and what it needed at most, of 10 GiB. */
static inline struct afz_case a_run(bool stopped, double peak_gib)
{
        struct afz_case c = {
                .flight = &flight,
                .facts = {.end = {stopped ? AFZ_END_STOPPED : AFZ_END_EXIT, 0},
                          .stop_cause = stopped ? AFZ_CAUSE_BUDGET : AFZ_CAUSE_NONE,
                          .hard_bytes = (uint64_t)FLY_GB(10)},
                .peak_bytes = (uint64_t)FLY_GB(peak_gib),
                .budget_bytes = (uint64_t)FLY_GB(10),
        };
        return c;
}

#endif
