/* links: judge */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lines.h"

#define MIB  (UINT64_C(1) << 20)
#define GIB  (UINT64_C(1) << 30)
#define MS   UINT64_C(1000000)
#define NONE UINT64_MAX

static struct afz_lines of(uint64_t ram, uint64_t swap, uint64_t total)
{
        struct afz_budget budget = {.ram_bytes = ram, .swap_bytes = swap};
        return afz_lines_of(&budget, total);
}

static void lines_of_budgets(void **state)
{
        (void)state;
        /* In MiB: the budget, its swap, how far act and stop lie below hard. */
        static const struct {
                uint64_t ram, swap, act, stop, slow;
        } rows[] = {
                {64, 0, 16, 8},   /* a quarter; half of that */
                {128, 0, 32, 16}, /* the least headroom, the least margin */
                {256, 0, 32, 16},
                {1000, 0, 100, 25},
                /* swap counts, but not its last eighth, nor the RAM that is kept for saving */
                {1000, 248, 100, 25, 131},
                {1000, 8, 100, 25, 8}, /* too little to matter */
                {10240, 0, 1024, 256},
                {65536, 0, 2048, 256}, /* the most of both */
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct afz_lines l = of(rows[i].ram * MIB, rows[i].swap * MIB, 64 * GIB);
                uint64_t hard = (rows[i].ram - rows[i].slow + rows[i].swap) * MIB;
                assert_int_equal(l.hard_bytes, hard);
                assert_int_equal((hard - l.act_bytes) / MIB, rows[i].act);
                assert_int_equal((hard - l.stop_bytes) / MIB, rows[i].stop);
        }
}

static void lines_keep_their_order(void **state)
{
        (void)state;
        uint64_t x = 88172645463325252ULL;
        for (int i = 0; i < 20000; i++) {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                uint64_t ram = x >> (x % 64), swap = i % 2 ? x >> 17 : 0;
                struct afz_lines l = of(ram, swap, x >> 5);
                assert_true(l.act_bytes <= l.stop_bytes);
                assert_true(l.stop_bytes <= l.hard_bytes);
                assert_true(l.act_bytes >= l.hard_bytes / 4 * 2);
                assert_true(l.hard_bytes >= ram / 4 * 3);
        }
        assert_int_equal(of(0, 0, 0).hard_bytes, 0);
        assert_int_equal(of(NONE, NONE, NONE).hard_bytes, NONE);
        assert_int_equal(of(GIB, 0, 0).low_bytes, 0); /* not known: never short */
}

/* Where the kernel pushes out, need counts as what it is, or as how near RAM is to its limit. */
static void need_against_the_lines(void **state)
{
        (void)state;
        struct afz_lines l = of(1000 * MIB, 248 * MIB, 64 * GIB); /* slow 850, hard 1117 */
        static const struct {
                uint64_t need, away, counts; /* MiB */
        } rows[] = {
                {500, 0, 617},    /* as far from 1117 as 500 is from 1000 */
                {850, 0, 967},    /* at slow: below act, which is 1017 */
                {960, 200, 960},  /* pushed out in time: all of need */
                {960, 20, 1057},  /* swap is slow, and RAM runs full */
                {1000, 0, 1117},  /* at the kernel's limit is at hard */
                {1200, 100, 1200} /* beyond it */
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct afz_pulse pulse = {.t_ns = 1};
                uint64_t counts = 0;
                assert_false(afz_lines_need(&l, &pulse, &counts));
                afz_pulse_set(&pulse, AFZ_PULSE_NEED, rows[i].need * MIB);
                afz_pulse_set(&pulse, AFZ_PULSE_SWAP, rows[i].away * MIB);
                assert_true(afz_lines_need(&l, &pulse, &counts));
                assert_int_equal(counts / MIB, rows[i].counts);
                struct afz_lines none = of(1000 * MIB, 0, 64 * GIB);
                assert_true(afz_lines_need(&none, &pulse, &counts));
                assert_int_equal(counts / MIB, rows[i].need);
        }
}

/* However large its allowance: else it is asked to end as soon as it begins to use that. */
static void held_at_slow_is_below_act(void **state)
{
        (void)state;
        static const uint64_t swaps[] = {64, 248, 1000, 2048, 20000}; /* MiB, beside 1000 of RAM */
        for (size_t i = 0; i < sizeof(swaps) / sizeof(swaps[0]); i++) {
                struct afz_lines l = of(1000 * MIB, swaps[i] * MIB, 64 * GIB);
                struct afz_pulse pulse = {.t_ns = 1};
                uint64_t counts = 0;
                afz_pulse_set(&pulse, AFZ_PULSE_NEED, l.slow_bytes);
                afz_pulse_set(&pulse, AFZ_PULSE_SWAP, 0);
                assert_true(afz_lines_need(&l, &pulse, &counts));
                assert_true(counts < l.act_bytes);
        }
}

static void low_is_half_of_the_reserve(void **state)
{
        (void)state;
        assert_int_equal(of(GIB, 0, GIB).low_bytes / MIB, 128);
        assert_int_equal(of(GIB, 0, 16 * GIB).low_bytes / MIB, 819);
        assert_int_equal(of(GIB, 0, 256 * GIB).low_bytes / MIB, 2048);
        assert_true(of(GIB, 0, 100 * MIB).low_bytes <= 50 * MIB);
        assert_int_equal(afz_reserve_of(GIB), 256 * MIB);
        assert_int_equal(afz_reserve_of(64 * GIB), 4 * GIB);
}

static void default_budget(void **state)
{
        (void)state;
        static const struct {
                uint64_t total, available, promised, limit, swap_free; /* MiB */
                uint64_t ram, swap;
                bool tight;
        } rows[] = {
                {16384, 12000, 0, 0, 0, 12000 - 1638, 0, false},
                {16384, 12000, 4000, 0, 0, 12000 - 1638 - 4000, 0, false},
                {16384, 12000, 0, 1000, 0, 900, 0, false}, /* a container */
                {16384, 12000, 0, 0, 100000, 10361, 2590, false},
                {16384, 12000, 0, 0, 1000, 10361, 500, false},
                {16384, 1000, 0, 0, 1000, 64, 16, true},
                {16384, 12000, 99999, 0, 0, 64, 0, true},
                {0, 0, 0, 0, 0, 64, 0, true},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                bool tight;
                struct afz_budget b = afz_budget_default(
                        rows[i].total * MIB, rows[i].available * MIB, rows[i].promised * MIB,
                        rows[i].limit ? rows[i].limit * MIB : NONE, rows[i].swap_free * MIB,
                        &tight);
                assert_in_range(b.ram_bytes / MIB, rows[i].ram - 1, rows[i].ram);
                assert_int_equal(b.swap_bytes / MIB, rows[i].swap);
                assert_int_equal(tight, rows[i].tight);
                assert_false(b.given);
        }
        (void)afz_budget_default(GIB, GIB, 0, NONE, 0, NULL);
}

static void budget_reckoned_anew(void **state)
{
        (void)state;
        struct afz_budget first = {.ram_bytes = 10 * GIB, .swap_bytes = GIB};
        /* All as it was: 2 GiB taken of 11.6. */
        struct afz_budget b = afz_budget_again(&first, 16 * GIB, 10 * GIB, 0, 2 * GIB, 0);
        assert_int_equal(b.ram_bytes, 10 * GIB);
        /* A neighbour took 6. */
        b = afz_budget_again(&first, 16 * GIB, 4 * GIB, 0, 2 * GIB, 0);
        assert_in_range(b.ram_bytes, 4 * GIB, 5 * GIB);
        assert_int_equal(b.swap_bytes, GIB);
        /* And gave it back. */
        assert_int_equal(afz_budget_again(&first, 16 * GIB, 60 * GIB, 0, GIB, 0).ram_bytes,
                         10 * GIB);
        /* Nothing is left: never so low that it would be over act, or near the limit. */
        for (uint64_t need = MIB; need < 7 * GIB; need += need / 3 + MIB) {
                b = afz_budget_again(&first, 16 * GIB, 0, 0, need, need / 4);
                assert_true(b.ram_bytes >= need + need / 10);
                assert_true(need < afz_lines_of(&b, 16 * GIB).act_bytes);
        }
        /* Never more than at first, and a given one is left alone. */
        assert_int_equal(afz_budget_again(&first, 16 * GIB, 0, 0, 20 * GIB, 0).ram_bytes, 10 * GIB);
        first.given = true;
        assert_int_equal(afz_budget_again(&first, 16 * GIB, 0, 0, GIB, 0).ram_bytes, 10 * GIB);
}

static uint64_t pace(uint64_t need, uint64_t available, uint64_t fill)
{
        struct afz_lines l = of(4 * GIB, 0, 16 * GIB);
        struct afz_pulse pulse = {0};
        if (need != NONE)
                afz_pulse_set(&pulse, AFZ_PULSE_NEED, need);
        if (available != NONE)
                afz_pulse_set(&pulse, AFZ_PULSE_AVAILABLE, available);
        return afz_pace_ns(&l, &pulse, fill);
}

static void how_often_to_look(void **state)
{
        (void)state;
        const uint64_t gb = 1000000000;
        uint64_t act = of(4 * GIB, 0, 16 * GIB).act_bytes, stop = of(4 * GIB, 0, GIB).stop_bytes;
        assert_int_equal(pace(0, 8 * GIB, gb), 100 * MS);
        assert_in_range(pace(act - gb / 10, 8 * GIB, gb), 49 * MS, 51 * MS); /* a tenth of a s */
        assert_int_equal(pace(act - 1, 8 * GIB, gb), 10 * MS); /* close, but stop is far */
        assert_int_equal(pace(stop, 8 * GIB, gb), 2 * MS);
        assert_int_equal(pace(NONE - 1, 8 * GIB, gb), 2 * MS);
        assert_int_equal(pace(0, 0, gb), 5 * MS); /* the machine is short */
        assert_int_equal(pace(NONE, NONE, gb), 100 * MS);
        assert_true(pace(act - gb / 10, 8 * GIB, 0) < pace(act - gb / 10, 8 * GIB, gb));
        assert_int_equal(pace(0, NONE - 1, 1), 100 * MS);
        assert_true(pace(GIB, GIB, NONE) >= 2 * MS);

        /* It can never be over act and past stop between two looks, at the rate that was given. */
        for (uint64_t need = 0; need < stop; need += 7 * MIB) {
                uint64_t ns = pace(need, NONE, 2 * gb);
                assert_in_range(ns, 2 * MS, 100 * MS);
                assert_true(ns == 2 * MS || need + 2 * gb / 1000 * (ns / MS) / 1 < stop);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_of_budgets),
                cmocka_unit_test(lines_keep_their_order),
                cmocka_unit_test(need_against_the_lines),
                cmocka_unit_test(held_at_slow_is_below_act),
                cmocka_unit_test(low_is_half_of_the_reserve),
                cmocka_unit_test(default_budget),
                cmocka_unit_test(budget_reckoned_anew),
                cmocka_unit_test(how_often_to_look),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
