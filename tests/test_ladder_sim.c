/* links: judge */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ladder_cases.h"

enum { SEEDS = 12 };

/* Interrupted, terminated or killed. */
static bool stopped(const struct sim *s)
{
        return acted(s, AFZ_ACTION_INTERRUPT) || acted(s, AFZ_ACTION_TERMINATE) ||
               acted(s, AFZ_ACTION_KILL);
}

/* --- a job that fits is never touched --- */

static void clean_jobs(void **state)
{
        (void)state;
        unsigned runs = 0;
        for (unsigned b = 0; b < COUNT_OF(budgets); b++)
                for (unsigned shape = SIM_STEADY; shape <= SIM_WALK; shape++)
                        for (uint64_t seed = 1; seed <= 4; seed++) {
                                if (shape == SIM_LEAK)
                                        continue;
                                struct sim s = sim_of(budgets[b], seed);
                                s.shape = shape;
                                /* Steep ones, too: up to all of the budget in a tenth of it. */
                                s.rate = (double)budgets[b] * (double)(1 << seed);
                                uint64_t step = (uint64_t)(s.rate / 2000) + MIB;
                                s.level = lines_of(&s).act_bytes - step;
                                s.hold_ns = seed * 100 * MS;
                                s.run_for_ns = 5 * SECOND;
                                sim_run(&s);
                                whole(&s);
                                assert_int_equal(deeds(&s), 0);
                                assert_false(s.out.ended);
                                runs++;
                        }
        print_message("%u clean runs, 0 actions\n", runs);
        assert_true(runs >= 50);
}

/* --- growth up to 500 MB/s never meets the kernel's limit --- */

static void leaks(void **state)
{
        static const double rates[] = {20e6, 200e6, 500e6};
        (void)state;
        for (unsigned r = 0; r < COUNT_OF(rates); r++) {
                uint64_t left = UINT64_MAX, longest = 0;
                for (unsigned b = rates[r] > 400e6; b < COUNT_OF(budgets); b++)
                        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                                struct sim s = sim_of(budgets[b], seed);
                                s.shape = SIM_LEAK;
                                s.rate = rates[r];
                                s.run_for_ns = 300 * SECOND;
                                uint64_t act = lines_of(&s).act_bytes;
                                uint64_t run_up = (uint64_t)(rates[r] / 5) + seed * MIB / 7;
                                s.floor = act > run_up ? act - run_up : 0;
                                s.tier = AFZ_TIER_CGROUP1 + seed % 3;
                                sim_run(&s);
                                whole(&s);
                                assert_false(s.out.oom);
                                assert_true(s.out.killed);
                                assert_int_equal(s.out.cause, AFZ_CAUSE_BUDGET);
                                assert_true(acted(&s, AFZ_ACTION_TELL));
                                assert_true(acted(&s, AFZ_ACTION_CHECKPOINT));
                                assert_true(s.out.first[AFZ_ACTION_CHECKPOINT] <=
                                            s.out.first[AFZ_ACTION_KILL]);
                                assert_true(s.out.frozen_ns <= 3 * SECOND + 200 * MS);
                                uint64_t dist = budgets[b] - s.out.need_peak;
                                left = dist < left ? dist : left;
                                longest = s.out.longest_ns > longest ? s.out.longest_ns : longest;
                        }
                print_message("leak %3.0f MB/s: nearest to hard %.1f MiB, longest freeze %.0f ms\n",
                              rates[r] / 1e6, (double)left / (double)MIB, (double)longest / 1e6);
        }
}

/* It rests anywhere below stop, and then floods without a warning. */
static void sudden_floods(void **state)
{
        (void)state;
        uint64_t left = UINT64_MAX;
        for (unsigned b = 1; b < COUNT_OF(budgets); b++)
                for (uint64_t seed = 1; seed <= 4 * SEEDS; seed++) {
                        struct sim s = sim_of(budgets[b], seed);
                        struct afz_lines l = lines_of(&s);
                        s.shape = SIM_LEAK;
                        s.rate = 500e6;
                        s.start_ns = 4 * SECOND + seed * 777777;
                        s.floor = l.stop_bytes - MIB / 2 -
                                  (l.stop_bytes - l.act_bytes) * (seed / 4) / 10;
                        sim_run(&s);
                        whole(&s);
                        assert_false(s.out.oom);
                        assert_true(s.out.killed);
                        assert_true(acted(&s, AFZ_ACTION_CHECKPOINT));
                        assert_true(s.out.first[AFZ_ACTION_KILL] > SECOND + s.start_ns);
                        uint64_t dist = budgets[b] - s.out.need_peak;
                        left = dist < left ? dist : left;
                }
        print_message("500 MB/s out of rest: nearest to hard %.1f MiB\n",
                      (double)left / (double)MIB);
}

/* At 500 MB/s with room for it, the job stands still first, then is asked, then killed. */
static void order_of_rungs(void **state)
{
        (void)state;
        struct sim s = sim_of(4 * GIB, 3);
        s.shape = SIM_LEAK;
        s.rate = 500e6;
        s.floor = 3 * GIB;
        sim_run(&s);
        whole(&s);
        assert_true(s.out.first[AFZ_ACTION_TELL] <= s.out.first[AFZ_ACTION_BRAKE]);
        assert_true(s.out.first[AFZ_ACTION_BRAKE] < s.out.first[AFZ_ACTION_CHECKPOINT]);
        assert_true(s.out.first[AFZ_ACTION_CHECKPOINT] < s.out.first[AFZ_ACTION_KILL]);
        /* From the line to standing still. */
        assert_true(s.out.first[AFZ_ACTION_BRAKE] < s.out.act_ns + 20 * MS);
}

/* Tier none has no kernel limit: 2 GB/s stands still soon after the line, and is over well before
 * the machine is. */
static void unheld_flood(void **state)
{
        (void)state;
        uint64_t late = 0, over = 0;
        for (uint64_t seed = 1; seed <= 100; seed++) {
                struct sim s = sim_of((uint64_t)(1 + seed % 8) * GIB, seed);
                s.shape = SIM_LEAK;
                s.rate = 2e9;
                s.tier = AFZ_TIER_NONE;
                s.ram = 2 * s.budget.ram_bytes;
                sim_run(&s);
                whole(&s);
                assert_true(s.out.killed);
                uint64_t at = s.out.first[AFZ_ACTION_BRAKE];
                assert_true(at > 0);
                if (at > s.out.act_ns && at - s.out.act_ns > late)
                        late = at - s.out.act_ns;
                uint64_t hard = lines_of(&s).hard_bytes;
                if (s.out.need_peak > hard && s.out.need_peak - hard > over)
                        over = s.out.need_peak - hard;
        }
        print_message("tier none, 2 GB/s: braked %.1f ms after the line at worst, %.1f MiB over\n",
                      (double)late / 1e6, (double)over / (double)MIB);
        assert_true(late < 30 * MS);
        assert_true(over < 128 * MIB);
}

/* --- peaks that fit --- */

static void peaks_that_fit(void **state)
{
        (void)state;
        unsigned braked = 0, runs = 0;
        uint64_t longest = 0;
        for (unsigned b = 0; b < COUNT_OF(budgets); b++)
                for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                        struct sim s = sim_of(budgets[b], seed);
                        struct afz_lines l = lines_of(&s);
                        s.shape = SIM_PEAK;
                        s.rate = (double)(20 + seed * 40) * 1e6;
                        /* A look apart from stop: 5 ms at this rate, and the counters' noise. */
                        uint64_t step = (uint64_t)(s.rate / 200) + MIB;
                        s.level = l.stop_bytes - step - (l.stop_bytes - l.act_bytes) / 8;
                        s.hold_ns = seed * 200 * MS;
                        s.floor = l.act_bytes - l.act_bytes / 8;
                        s.run_for_ns = 120 * SECOND;
                        sim_run(&s);
                        whole(&s);
                        if (stopped(&s))
                                fail_msg("budget %" PRIu64 " MiB, %.0f MB/s, seed %" PRIu64,
                                         budgets[b] / MIB, s.rate / 1e6, seed);
                        assert_true(s.out.frozen_ns <= 3 * SECOND + 200 * MS);
                        assert_int_equal(s.ladder.stage, AFZ_STAGE_CALM);
                        braked += acted(&s, AFZ_ACTION_BRAKE);
                        runs++;
                        longest = s.out.frozen_ns > longest ? s.out.frozen_ns : longest;
                }
        print_message("%u peaks that fit: %u braked, none stopped, at most %.2f s frozen\n", runs,
                      braked, (double)longest / 1e9);
        assert_true(braked > 0);
}

/* It sits between act and stop: told of once, and left alone. */
static void plateau(void **state)
{
        (void)state;
        for (unsigned b = 0; b < COUNT_OF(budgets); b++)
                for (uint64_t seed = 1; seed <= 4; seed++) {
                        struct sim s = sim_of(budgets[b], seed);
                        struct afz_lines l = lines_of(&s);
                        s.shape = SIM_STEADY;
                        s.rate = 200e6;
                        s.floor = l.act_bytes - 8 * MIB;
                        s.level = l.act_bytes + (l.stop_bytes - l.act_bytes) / 2;
                        sim_run(&s);
                        whole(&s);
                        assert_false(stopped(&s));
                        assert_int_equal(s.out.count[AFZ_ACTION_TELL], 1);
                        assert_true(s.out.frozen_ns <= 3 * SECOND + 200 * MS);
                        assert_int_equal(s.ladder.stage, AFZ_STAGE_CALM);
                }
}

/* Steps that come and go over act for a minute are braked at first and then known. */
static void sawtooth_over_act(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                struct sim s = sim_of(8 * GIB, seed);
                struct afz_lines l = lines_of(&s);
                s.shape = SIM_SAWTOOTH;
                s.rate = 1e9;
                s.floor = l.act_bytes - 200 * MIB;
                s.level = l.act_bytes + 300 * MIB;
                sim_run(&s);
                whole(&s);
                assert_false(stopped(&s));
                assert_true(s.out.frozen_ns <= 6 * SECOND);
        }
}

/* --- what cannot be braked --- */

static void kernel_filled(void **state)
{
        (void)state;
        for (unsigned b = 1; b < COUNT_OF(budgets); b++)
                for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                        struct sim s = sim_of(budgets[b], seed);
                        s.shape = SIM_LEAK;
                        s.rate = 400e6;
                        s.kernel_filled = true;
                        s.floor = lines_of(&s).act_bytes - 80 * MIB;
                        sim_run(&s);
                        whole(&s);
                        assert_false(s.out.oom);
                        assert_true(s.out.killed);
                        assert_true(acted(&s, AFZ_ACTION_CHECKPOINT));
                }
        /* One read() that fits is not a reason to kill. */
        struct sim s = sim_of(32 * GIB, 7);
        s.shape = SIM_PEAK;
        s.rate = 1e9;
        s.kernel_filled = true;
        s.floor = lines_of(&s).act_bytes - GIB / 4;
        s.level = lines_of(&s).act_bytes + GIB / 2;
        s.hold_ns = SECOND;
        sim_run(&s);
        whole(&s);
        assert_false(stopped(&s));
}

/* --- being stopped, with time --- */

static struct sim slow_leak(void)
{
        struct sim s = sim_of(16 * GIB, 5);
        s.shape = SIM_LEAK;
        s.rate = 5e6;
        s.floor = lines_of(&s).stop_bytes - 20 * MIB;
        s.run_for_ns = 200 * SECOND;
        return s;
}

static void ignores_everything(void **state)
{
        (void)state;
        struct sim s = slow_leak();
        sim_run(&s);
        whole(&s);
        assert_true(s.out.killed);
        uint64_t at = s.out.first[AFZ_ACTION_INTERRUPT];
        assert_true(s.out.first[AFZ_ACTION_CHECKPOINT] < at);
        assert_true(s.out.first[AFZ_ACTION_TERMINATE] >= at + 10 * SECOND);
        assert_true(s.out.first[AFZ_ACTION_KILL] >= at + 30 * SECOND);
        assert_true(s.out.first[AFZ_ACTION_KILL] <= at + 30 * SECOND + 50 * MS);
        assert_int_equal(s.out.count[AFZ_ACTION_INTERRUPT], 1);
        assert_int_equal(s.out.count[AFZ_ACTION_TERMINATE], 1);
        assert_false(s.out.oom);
}

static void heeds(void **state)
{
        (void)state;
        struct sim s = slow_leak();
        s.dies_of_int = 3 * SECOND;
        sim_run(&s);
        whole(&s);
        assert_true(s.out.ended && !s.out.killed);
        assert_false(acted(&s, AFZ_ACTION_TERMINATE));

        s = slow_leak();
        s.dies_of_term = SECOND;
        sim_run(&s);
        whole(&s);
        assert_true(s.out.ended && !s.out.killed);

        /* A notebook's kernel. */
        s = slow_leak();
        s.frees_at_int = true;
        sim_run(&s);
        whole(&s);
        assert_false(s.out.ended);
        assert_false(acted(&s, AFZ_ACTION_TERMINATE));
        assert_int_equal(s.ladder.stage, AFZ_STAGE_CALM);

        s = slow_leak();
        s.calm_after_save = true;
        s.floor = lines_of(&s).act_bytes + 300 * MIB;
        s.rate = 40e6;
        sim_run(&s);
        whole(&s);
        assert_false(stopped(&s));
        assert_true(acted(&s, AFZ_ACTION_CHECKPOINT));
}

/* --- the neighbour --- */

static void neighbour_by_half(void **state)
{
        (void)state;
        for (unsigned swap = 0; swap < 2; swap++)
                for (unsigned hurts = 0; hurts < 2; hurts++)
                        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                                struct sim s = sim_of(8 * GIB, seed);
                                s.ram = 16 * GIB;
                                s.others = 3 * GIB;
                                s.swap = swap ? 8 * GIB : 0;
                                s.shape = SIM_SAWTOOTH;
                                /* Half of the runs: the larger of the two, near its budget. */
                                s.floor = seed % 4 < 2 ? 4 * GIB : 7 * GIB;
                                s.level = s.floor + (seed % 4 < 2 ? 3 * GIB / 2 : GIB / 2);
                                s.rate = 300e6;
                                s.tier = seed % 2 ? AFZ_TIER_SCOPE : AFZ_TIER_NONE;
                                s.neighbour_rate = 400e6;
                                s.neighbour_ns = 5 * SECOND;
                                s.neighbour_most = 8 * GIB;
                                s.neighbour_hurts = hurts;
                                s.run_for_ns = 120 * SECOND;
                                sim_run(&s);
                                whole(&s);
                                if (stopped(&s))
                                        fail_msg("swap %u, hurts %u, seed %" PRIu64, swap, hurts,
                                                 seed);
                                assert_true(s.out.frozen_ns <= 40 * SECOND);
                                if (swap)
                                        assert_true(acted(&s, AFZ_ACTION_SQUEEZE));
                        }
}

/* A budget that was given too large: the job takes the machine's last memory itself. */
static void own_pressure(void **state)
{
        (void)state;
        for (unsigned tier = AFZ_TIER_NONE; tier < AFZ_TIER_COUNT; tier++)
                for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                        struct sim s = sim_of(16 * GIB, seed);
                        s.ram = 16 * GIB;
                        s.others = 3 * GIB;
                        s.shape = SIM_LEAK;
                        s.rate = (double)(20 + 40 * seed) * 1e6;
                        s.floor = 10 * GIB;
                        s.tier = tier;
                        s.run_for_ns = 300 * SECOND;
                        sim_run(&s);
                        whole(&s);
                        assert_true(s.out.ended);
                        assert_int_equal(s.out.cause, AFZ_CAUSE_PRESSURE);
                        assert_true(acted(&s, AFZ_ACTION_BRAKE));
                        assert_true(s.out.available_least > 64 * MIB);
                }
}

/* --- policies --- */

static void watch_never_acts(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                struct sim s = sim_of(GIB, seed);
                s.shape = SIM_LEAK;
                s.rate = 100e6;
                s.policy = AFZ_POLICY_WATCH;
                s.run_for_ns = 20 * SECOND;
                sim_run(&s);
                whole(&s);
                assert_false(s.out.ended);
                assert_true(acted(&s, AFZ_ACTION_TELL));
                assert_int_equal(deeds(&s), s.out.count[AFZ_ACTION_TELL]);
                assert_true(s.out.count[AFZ_ACTION_TELL] <= 2);
        }
}

/* Whatever comes in, the invariants of single decisions hold (sim_check). */
static void anything(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 400; seed++) {
                struct sim s = sim_of(budgets[seed % COUNT_OF(budgets)], seed);
                for (unsigned i = 0; i < 8; i++)
                        (void)sim_random(&s);
                s.shape = (enum sim_shape)(sim_random(&s) % 5);
                s.floor = sim_random(&s) % s.budget.ram_bytes;
                s.level = s.floor + sim_random(&s) % s.budget.ram_bytes + MIB;
                s.rate = (double)(sim_random(&s) % 3000) * 1e6;
                s.kernel_filled = sim_random(&s) % 4 == 0;
                s.tier = (enum afz_tier)(sim_random(&s) % AFZ_TIER_COUNT);
                s.policy = (enum afz_policy)(sim_random(&s) % AFZ_POLICY_COUNT);
                s.saves_ns = sim_random(&s) % 2 ? SECOND : 0;
                s.less_ns = sim_random(&s) % 3 * 500 * MS;
                s.refused = s.less_ns && sim_random(&s) % 2;
                s.grace_ns = sim_random(&s) % 3 * 5 * SECOND;
                s.no_brake = sim_random(&s) % 8 == 0;
                s.picture_ns = sim_random(&s) % 3 * 150 * MS;
                s.ram = s.budget.ram_bytes + sim_random(&s) % s.budget.ram_bytes;
                s.others = sim_random(&s) % (s.ram / 2);
                s.swap = sim_random(&s) % 2 * s.ram;
                s.neighbour_rate = (double)(sim_random(&s) % 2 * 200) * 1e6;
                s.neighbour_most = s.ram / 2;
                s.neighbour_hurts = sim_random(&s) % 2;
                s.dies_of_int = sim_random(&s) % 2 * SECOND;
                s.run_for_ns = 4 * SECOND;
                sim_run(&s);
                whole(&s);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(clean_jobs),    cmocka_unit_test(leaks),
                cmocka_unit_test(sudden_floods), cmocka_unit_test(order_of_rungs),
                cmocka_unit_test(unheld_flood),  cmocka_unit_test(peaks_that_fit),
                cmocka_unit_test(plateau),       cmocka_unit_test(sawtooth_over_act),
                cmocka_unit_test(kernel_filled), cmocka_unit_test(ignores_everything),
                cmocka_unit_test(heeds),         cmocka_unit_test(neighbour_by_half),
                cmocka_unit_test(own_pressure),  cmocka_unit_test(watch_never_acts),
                cmocka_unit_test(anything),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
