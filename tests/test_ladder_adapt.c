/* links: judge */
/* Policy adapt: who can use less is asked to, and waited for; what is refused ends by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ladder_cases.h"

enum { SEEDS = 12 };

static struct sim adapting(uint64_t budget, uint64_t seed)
{
        struct sim s = sim_of(budget, seed);
        s.policy = AFZ_POLICY_ADAPT;
        return s;
}

/* Asked for less, and it is no use: the climb goes on as without, only that the checkpoint waits
 * for it as long as there is room. */
static void asked_in_vain(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                struct sim s = adapting(4 * GIB, seed);
                s.shape = SIM_LEAK;
                s.rate = (double)seed * 40e6;
                s.floor = 3 * GIB;
                s.less_ns = UINT64_MAX;
                sim_run(&s);
                whole(&s);
                assert_in_range(s.out.count[AFZ_ACTION_SHRINK], 1, 2);
                assert_true(s.out.first[AFZ_ACTION_SHRINK] < s.out.first[AFZ_ACTION_CHECKPOINT]);
                assert_true(acted(&s, AFZ_ACTION_CHECKPOINT));
                assert_true(s.out.killed && !s.out.oom);
                assert_int_equal(s.out.count[AFZ_ACTION_RESTART], 0);
        }
}

/* Steps that need up to twice the budget: half of that, or a quarter, fits. */
static void fits_in_the_end(void **state)
{
        static const struct {
                double stop_s; /* from act to stop */
                uint64_t less_ns;
                uint64_t more; /* than the budget: one part of so many at most */
        } jobs[] = {
                {4, 100 * MS, 1},  /* a step ends long before */
                {1, 3400 * MS, 3}, /* half fits, but the brake is used up by then: who does not
                                      wait for it asks to save in vain */
        };
        (void)state;
        for (unsigned b = 2; b < COUNT_OF(budgets); b++)
                for (uint64_t seed = 1; seed <= 2 * SEEDS; seed++) {
                        struct sim s = adapting(budgets[b], seed);
                        s.shape = SIM_SAWTOOTH;
                        s.level = budgets[b] + budgets[b] / jobs[seed % 2].more * seed / SEEDS / 2;
                        uint64_t way = lines_of(&s).stop_bytes - lines_of(&s).act_bytes;
                        s.rate = (double)way / jobs[seed % 2].stop_s;
                        s.less_ns = jobs[seed % 2].less_ns;
                        s.run_for_ns = 600 * SECOND;
                        sim_run(&s);
                        whole(&s);
                        assert_true(acted(&s, AFZ_ACTION_SHRINK));
                        assert_false(acted(&s, AFZ_ACTION_INTERRUPT) || acted(&s, AFZ_ACTION_KILL));
                        assert_false(acted(&s, AFZ_ACTION_CHECKPOINT));
                        assert_true(s.level < budgets[b]);
                }
}

/* Who can save has been asked to by the time that it was told of, and once: steps come again. Not
 * by a signal, by which it may end. */
static uint64_t saved(const struct sim *s)
{
        uint64_t asked = s->out.count[AFZ_ACTION_CHECKPOINT];
        assert_int_equal(asked,
                         s->saves_ns > 0 && !s->by_signal && s->out.count[AFZ_ACTION_TELL] > 0);
        if (asked > 0)
                assert_int_equal(s->out.first[AFZ_ACTION_CHECKPOINT],
                                 s->out.first[AFZ_ACTION_TELL]);
        return asked;
}

/* Steps of three times the budget, as fast as memory can be filled, which are refused on the way:
 * nothing else has to be done about them, however late the looks come. */
static void refused_steps(void **state)
{
        (void)state;
        for (unsigned b = 0; b < COUNT_OF(budgets); b++)
                for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                        struct sim s = adapting(budgets[b], seed);
                        s.shape = SIM_SAWTOOTH;
                        s.level = 3 * budgets[b];
                        s.rate = (double)budgets[b] * (double)(1 + seed % 4);
                        s.cost_ns = seed * MS;
                        s.tier = (enum afz_tier)(seed % AFZ_TIER_COUNT);
                        s.less_ns = 100 * MS;
                        s.refused = true;
                        s.saves_ns = seed % 2 ? SECOND : 0;
                        s.by_signal = seed % 4 == 3;
                        sim_run(&s);
                        whole(&s);
                        assert_true(s.out.halved >= 2);
                        assert_int_equal(deeds(&s), s.out.count[AFZ_ACTION_TELL] + saved(&s));
                        assert_false(s.out.oom);
                }
}

/* What is refused nothing climbs the rungs as ever: it is asked to save, and stopped in time. */
static void small_things_are_not_refused(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                struct sim s = adapting(4 * GIB, seed);
                s.shape = SIM_LEAK;
                s.rate = 20e6 + (double)seed * 4e6;
                s.floor = 3 * GIB;
                s.less_ns = UINT64_MAX;
                s.run_for_ns = 120 * SECOND;
                s.in_vain = true;
                sim_run(&s);
                whole(&s);
                assert_true(acted(&s, AFZ_ACTION_SHRINK));
                assert_true(acted(&s, AFZ_ACTION_CHECKPOINT));
                assert_int_equal(s.ack, AFZ_ACK_SAVED); /* there was time for it */
                assert_false(s.out.oom);
                assert_true(s.out.killed);
        }
}

/* It rests close to the line and begins to grow again: asked for less in vain, it hears as much
 * before it is killed as one that nobody can ask. */
static void asked_near_the_line(void **state)
{
        static const double rates[] = {5e6, 18e6, 50e6, 100e6, 300e6};
        static const uint64_t sizes[] = {GIB, 4 * GIB, 16 * GIB};
        (void)state;
        for (unsigned r = 0; r < COUNT_OF(rates); r++)
                for (uint64_t seed = 1; seed <= 2 * SEEDS; seed++)
                        for (unsigned saves = 0; saves < 2; saves++) {
                                bool heard[2];
                                for (unsigned can = 0; can < 2; can++) {
                                        struct sim s = adapting(sizes[seed % 3], seed);
                                        s.shape = SIM_LEAK;
                                        s.rate = rates[r];
                                        s.floor = lines_of(&s).stop_bytes - 3 * MIB;
                                        s.start_ns = 10 * SECOND;
                                        s.saves_ns = saves ? 2 * SECOND : 0;
                                        s.less_ns = can ? UINT64_MAX : 0;
                                        sim_run(&s);
                                        whole(&s);
                                        assert_true(s.out.killed && !s.out.oom);
                                        heard[can] = acted(&s, AFZ_ACTION_INTERRUPT);
                                }
                                if (heard[0] && !heard[1])
                                        fail_msg("%.0f MB/s, seed %" PRIu64
                                                 ", saves %u: killed without a word",
                                                 rates[r] / 1e6, seed, saves);
                                if (!saves)
                                        assert_true(heard[0]);
                        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(asked_in_vain),
                cmocka_unit_test(fits_in_the_end),
                cmocka_unit_test(refused_steps),
                cmocka_unit_test(small_things_are_not_refused),
                cmocka_unit_test(asked_near_the_line),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
