#ifndef AFZ_LEAK_FIXTURE_H
#define AFZ_LEAK_FIXTURE_H
/* For the judge of leaks: a job that grows for a minute and is stopped then, its processes, and
 * what its lines hold. */
#include "judge_fixture.h"
#include "role.h"
#include "site_top.h"

enum { END_MS = 60000, MAIN = 100 };

/* A job that needs so much more each second, told ten times a second, with small teeth: steps. */
static inline void grows(double mega_per_s)
{
        for (uint32_t t = 0; t < END_MS; t += 100) {
                double mega = 200 + mega_per_s * t / 1000 + 5 * fly_saw(t, 700);
                fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, t, FLY_MB(mega));
        }
        fly_flat(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_HARD, fly_every(0, END_MS, 1000), FLY_GB(8));
}

static inline void process(uint64_t pid, enum afz_role role, double rss_mega, double rss_per_s)
{
        struct fly_times t = fly_every(0, END_MS, 1000);
        (void)fly_named(&flight, AFZ_KIND_PROC, pid, "python", NULL, NULL);
        fly_flat(&flight, AFZ_KIND_PROC, pid, AFZ_PROC_ROLE, t, role);
        fly_line(&flight, AFZ_KIND_PROC, pid, AFZ_PROC_RSS_ANON, t, FLY_MB(rss_mega),
                 rss_per_s * (1 << 20));
        fly_line(&flight, AFZ_KIND_PROC, pid, AFZ_PROC_NEED, t, FLY_MB(rss_mega),
                 rss_per_s * (1 << 20));
}

struct site {
        uint64_t id;
        const char *name, *where, *function, *stack;
        double mega, mega_per_s;
        enum afz_site_memory memory;
};

static inline void tell_site(const struct site *s)
{
        struct fly_times t = fly_every(0, END_MS, 1000);
        (void)fly_named(&flight, AFZ_KIND_SITE, s->id, s->name, s->where, s->function);
        fly_line(&flight, AFZ_KIND_SITE, s->id, AFZ_SITE_LIVE, t, FLY_MB(s->mega),
                 s->mega_per_s * (1 << 20));
        fly_point(&flight, AFZ_KIND_SITE, s->id, AFZ_SITE_MEMORY, 0, s->memory);
        if (s->stack)
                fly_mark(&flight, 0, AFZ_MARK_SITE, (int64_t)s->id, s->stack);
}

static inline void tell_age(uint64_t id, double seconds, int64_t steps)
{
        fly_point(&flight, AFZ_KIND_SITE, id, AFZ_SITE_AGE, END_MS - 500, (int64_t)(seconds * 1e9));
        if (steps > 0)
                fly_point(&flight, AFZ_KIND_SITE, id, AFZ_SITE_AGE_STEPS, END_MS - 500, steps);
}

static inline void heap(double used_mega, double free_mega, double free_per_s)
{
        struct fly_times t = fly_every(500, END_MS, 2000);
        fly_flat(&flight, AFZ_KIND_INSIDE, MAIN, AFZ_INSIDE_HEAP_USED, t, FLY_MB(used_mega));
        fly_line(&flight, AFZ_KIND_INSIDE, MAIN, AFZ_INSIDE_HEAP_TAKEN, t,
                 FLY_MB(used_mega + free_mega), free_per_s * (1 << 20));
}

static inline struct afz_outcome judged(void)
{
        struct afz_case c = {
                .flight = &flight,
                .facts = {.end = {.how = AFZ_END_STOPPED}, .stop_cause = AFZ_CAUSE_BUDGET}};
        struct afz_outcome o = ask(afz_judge_leak, &c);
        assert_int_equal(o.verdicts, 1);
        return o;
}

static const struct site history = {.id = 11,
                                    .name = "train.py:33 in step()",
                                    .where = "/home/me/train.py:33",
                                    .function = "step",
                                    .stack = "train.py:33 in step()\ntrain.py:50",
                                    .mega = 1,
                                    .mega_per_s = 9.5,
                                    .memory = AFZ_MEMORY_HEAP};

#endif
