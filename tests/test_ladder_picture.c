/* links: judge */
/* The picture before a stop: when it is taken, that nothing waits for it for long, and that nothing
 * else of the ladder changes by it. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ladder_sim.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(a)      (1U << AFZ_ACTION_##a)

/* 250 ms, and until somebody looks: 10 ms, a late look and a slow one. */
#define MOST_STILL_NS (270 * MS)

static struct sim sim_of(uint64_t budget, uint64_t seed, double rate)
{
        struct sim s = {
                .shape = SIM_LEAK,
                .rate = rate,
                .budget = {.ram_bytes = budget, .given = true},
                .tier = AFZ_TIER_CGROUP1 + seed % 3,
                .policy = AFZ_POLICY_PROTECT,
                .grace_ns = 30 * SECOND,
                .cost_ns = seed % 2 ? 5 * MS : 0,
                .ram = budget * 4,
                .saves_ns = 2 * SECOND,
                .run_for_ns = 300 * SECOND,
                .picture_ns = 100 * MS,
                .seed = seed,
        };
        uint64_t act = afz_lines_of(&s.budget, s.ram).act_bytes, run_up = (uint64_t)(rate / 5);
        s.floor = act > run_up ? act - run_up : 0;
        return s;
}

static void whole(const struct sim *s)
{
        if (s->out.broke)
                fail_msg("seed %" PRIu64 ": %s", s->seed, s->out.what);
        assert_true(s->out.picture_still_ns <= MOST_STILL_NS);
}

static const uint64_t budgets[] = {128 * MIB, 512 * MIB, GIB, 4 * GIB, 16 * GIB, 64 * GIB};

/* Whatever its pace, there is one by the time it is stopped, and the kernel is not first. */
static void every_stop_has_one(void **state)
{
        static const double rates[] = {2e6, 20e6, 200e6, 500e6};
        (void)state;
        unsigned runs = 0, late = 0;
        uint64_t longest = 0;
        for (unsigned r = 0; r < COUNT_OF(rates); r++)
                for (unsigned b = 0; b < COUNT_OF(budgets); b++)
                        for (uint64_t seed = 1; seed <= 8; seed++) {
                                struct sim s = sim_of(budgets[b], seed, rates[r]);
                                if (seed % 2)
                                        s.saves_ns = 0; /* nobody listens */
                                sim_run(&s);
                                whole(&s);
                                if (r == 0 && !s.out.killed)
                                        continue; /* it is a long way */
                                assert_true(s.out.killed);
                                assert_false(s.out.oom);
                                assert_int_equal(s.out.missed, 0);
                                assert_in_range(s.out.pictures, 1, 5);
                                assert_false(s.out.unfrozen_picture);
                                assert_true(s.out.frozen_ns <= 3 * SECOND + 800 * MS);
                                uint64_t at = s.out.first[AFZ_ACTION_INTERRUPT];
                                at = at ? at : s.out.first[AFZ_ACTION_KILL];
                                late += at - s.out.picture_ns > s.saves_ns + 1500 * MS;
                                longest = s.out.picture_still_ns > longest ? s.out.picture_still_ns
                                                                           : longest;
                                runs++;
                        }
        print_message("%u stops: each with its picture; frozen for it alone for %.0f ms at most\n",
                      runs, (double)longest / 1e6);
        assert_int_equal(late, 0); /* it is of that moment, or of the one when it was asked */
        assert_true(runs > 100);
}

/* Nobody brings it: the job is stopped all the same, a quarter of a second later at most. */
static void nobody_brings_it(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 8; seed++) {
                struct sim with = sim_of(4 * GIB, seed, 20e6), without;
                with.picture_ns = 3600 * SECOND;
                without = with;
                without.picture_ns = 0;
                sim_run(&with);
                sim_run(&without);
                whole(&with);
                assert_true(with.out.killed && !with.out.oom);
                assert_true(with.out.pictures > 0);
                assert_true(with.out.first[AFZ_ACTION_CHECKPOINT] <=
                            without.out.first[AFZ_ACTION_CHECKPOINT] + 600 * MS);
        }
}

/* Floods out of rest, from anywhere below stop: the dose is time enough. */
static void floods(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 40; seed++) {
                struct sim s = sim_of(GIB, seed, 500e6);
                struct afz_lines l = afz_lines_of(&s.budget, s.ram);
                s.floor = l.stop_bytes - MIB - (l.stop_bytes - l.act_bytes) * (seed % 8) / 20;
                s.start_ns = 4 * SECOND + seed * 777777;
                sim_run(&s);
                whole(&s);
                assert_true(s.out.killed && !s.out.oom);
                assert_int_equal(s.out.missed + (s.out.pictures > 0), 1);
        }
}

/* Steps that come and go over act are not looked at each time. */
static void not_every_step(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 8; seed++) {
                struct sim s = sim_of(8 * GIB, seed, 1e9);
                struct afz_lines l = afz_lines_of(&s.budget, s.ram);
                s.shape = SIM_SAWTOOTH;
                s.floor = l.act_bytes - 200 * MIB;
                s.level = l.act_bytes + 300 * MIB;
                s.run_for_ns = 60 * SECOND;
                sim_run(&s);
                whole(&s);
                assert_false(s.out.ended);
                assert_true(s.out.pictures <= 4);
        }
}

/* Who may not be frozen is looked at as it runs, and nothing waits; who only watches, never. */
static void without_a_brake(void **state)
{
        (void)state;
        struct sim s = sim_of(4 * GIB, 3, 20e6);
        s.no_brake = true;
        sim_run(&s);
        whole(&s);
        assert_true(s.out.pictures > 0);
        assert_int_equal(s.out.count[AFZ_ACTION_BRAKE], 0);

        s = sim_of(4 * GIB, 3, 20e6);
        s.policy = AFZ_POLICY_WATCH;
        s.run_for_ns = 60 * SECOND;
        sim_run(&s);
        whole(&s);
        assert_int_equal(s.out.pictures + s.out.missed, 0);
}

/* Memory that grows though it is frozen is no reason to wait for anything. */
static void kernel_fills_it(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 12; seed++) {
                struct sim s = sim_of(budgets[seed % COUNT_OF(budgets)], seed, 400e6);
                s.kernel_filled = true;
                s.picture_ns = 3600 * SECOND;
                sim_run(&s);
                whole(&s);
                assert_true(s.out.killed && !s.out.oom);
        }
}

/* ---- look by look ---- */

struct walk {
        struct afz_ladder ladder;
        struct afz_pulse pulse;
        struct afz_decision last;
};

static void begin(struct walk *w, bool can_checkpoint)
{
        struct afz_budget budget = {.ram_bytes = GIB, .given = true};
        struct afz_ladder_setup setup = {
                .policy = AFZ_POLICY_PROTECT,
                .lines = afz_lines_of(&budget, 16 * GIB),
                .tier = AFZ_TIER_SCOPE,
                .grace_ns = 30 * SECOND,
                .can_checkpoint = can_checkpoint,
                .can_brake = true,
                .can_picture = true,
        };
        memset(w, 0, sizeof *w);
        afz_ladder_init(&w->ladder, &setup);
        w->pulse.t_ns = 100 * SECOND;
        afz_pulse_set(&w->pulse, AFZ_PULSE_AVAILABLE, 8 * GIB);
        afz_pulse_set(&w->pulse, AFZ_PULSE_NEED, 2 * GIB); /* over it, and at rest: it was set so */
}

static uint32_t look(struct walk *w, uint64_t after_ns)
{
        w->pulse.t_ns += after_ns;
        afz_ladder_step(&w->ladder, &w->pulse, AFZ_ACK_CANNOT, &w->last);
        return w->last.actions;
}

/* Frozen, looked at, thawed, asked: in this order, and the brake lasts as long as the picture. */
static void one_after_the_other(void **state)
{
        (void)state;
        struct walk w;
        begin(&w, true);
        assert_int_equal(look(&w, 10 * MS), BIT(TELL) | BIT(BRAKE));
        assert_int_equal(w.last.picture, AFZ_PICTURE_TAKE);
        for (int i = 0; i < 6; i++) {
                assert_int_equal(look(&w, 10 * MS), 0);
                assert_int_equal(w.last.picture, AFZ_PICTURE_NONE);
                assert_true(w.last.wake_ns <= w.pulse.t_ns + 10 * MS);
        }
        afz_ladder_pictured(&w.ladder);
        assert_int_equal(look(&w, 5 * MS), BIT(RELEASE) | BIT(CHECKPOINT));
        assert_int_equal(w.last.cause, AFZ_CAUSE_BUDGET);
        /* The one that there is serves for SIGINT, too. */
        assert_int_equal(look(&w, 10 * MS), BIT(INTERRUPT));
        assert_int_equal(w.last.picture, AFZ_PICTURE_NONE);
        afz_ladder_pictured(&w.ladder); /* late, and harmless */
        assert_int_equal(look(&w, 10 * MS), 0);
}

/* It never comes: after a quarter of a second the rung is taken without it. */
static void a_quarter_of_a_second(void **state)
{
        (void)state;
        struct walk w;
        begin(&w, false);
        uint64_t from = 0;
        uint32_t seen = 0;
        for (int i = 0; i < 100 && !(seen & BIT(INTERRUPT)); i++) {
                seen |= look(&w, 5 * MS);
                if (w.last.picture == AFZ_PICTURE_TAKE) {
                        assert_int_equal(from, 0); /* once */
                        from = w.pulse.t_ns;
                }
                assert_true(w.last.picture != AFZ_PICTURE_MISSED);
        }
        assert_true(seen & BIT(INTERRUPT) && from);
        assert_in_range(w.pulse.t_ns - from, 240 * MS, 265 * MS);
}

/* So near to hard that every wait ends: none, and that is said once. */
static void no_time(void **state)
{
        (void)state;
        struct walk w;
        begin(&w, true);
        afz_pulse_set(&w.pulse, AFZ_PULSE_NEED, GIB / 2);
        for (int i = 0; i < 100; i++)
                assert_int_equal(look(&w, 10 * MS), 0);
        afz_pulse_set(&w.pulse, AFZ_PULSE_NEED, GIB - 3 * MIB);
        assert_true(look(&w, 10 * MS) & BIT(KILL));
        assert_int_equal(w.last.picture, AFZ_PICTURE_MISSED);
        assert_int_equal(look(&w, 30 * MS), BIT(KILL));
        assert_int_equal(w.last.picture, AFZ_PICTURE_NONE);
}

/* The kernel was first: nothing is there to be looked at. */
static void kernel_was_first(void **state)
{
        (void)state;
        struct walk w;
        begin(&w, true);
        afz_pulse_set(&w.pulse, AFZ_PULSE_OOM_KILLS, 1);
        assert_int_equal(look(&w, 10 * MS), BIT(TELL) | BIT(KILL));
        assert_int_equal(w.last.picture, AFZ_PICTURE_MISSED);
        assert_int_equal(look(&w, 30 * MS), BIT(KILL));
        assert_int_equal(w.last.picture, AFZ_PICTURE_NONE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_stop_has_one),
                cmocka_unit_test(nobody_brings_it),
                cmocka_unit_test(floods),
                cmocka_unit_test(not_every_step),
                cmocka_unit_test(without_a_brake),
                cmocka_unit_test(kernel_fills_it),
                cmocka_unit_test(one_after_the_other),
                cmocka_unit_test(a_quarter_of_a_second),
                cmocka_unit_test(no_time),
                cmocka_unit_test(kernel_was_first),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
