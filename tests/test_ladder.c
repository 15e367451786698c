/* links: judge */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ladder.h"

/* The ladder look by look; whole runs are in test_ladder_sim.c. */

#define MIB    (UINT64_C(1) << 20)
#define GIB    (UINT64_C(1) << 30)
#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define BIT(a) (1U << AFZ_ACTION_##a)

/* 1 GiB: act lies 102 MiB below it, stop 25. A machine of 16 GiB: low is 819 MiB. */
static struct afz_ladder_setup setup_of(void)
{
        struct afz_budget budget = {.ram_bytes = GIB, .given = true};
        return (struct afz_ladder_setup){
                .policy = AFZ_POLICY_PROTECT,
                .lines = afz_lines_of(&budget, 16 * GIB),
                .tier = AFZ_TIER_SCOPE,
                .grace_ns = 30 * SECOND,
                .can_checkpoint = true,
                .can_brake = true,
        };
}

struct walk {
        struct afz_ladder ladder;
        struct afz_pulse pulse; /* what the next look sees */
        enum afz_ack ack;
        struct afz_decision last;
        uint32_t all; /* of all looks so far */
        unsigned tells;
};

static void begin(struct walk *w, const struct afz_ladder_setup *setup)
{
        memset(w, 0, sizeof(*w));
        afz_ladder_init(&w->ladder, setup);
        w->pulse.t_ns = 100 * SECOND;
        afz_pulse_set(&w->pulse, AFZ_PULSE_NEED, GIB / 2);
        afz_pulse_set(&w->pulse, AFZ_PULSE_AVAILABLE, 8 * GIB);
}

static uint32_t look(struct walk *w, uint64_t after_ns)
{
        w->pulse.t_ns += after_ns;
        afz_ladder_step(&w->ladder, &w->pulse, w->ack, &w->last);
        w->all |= w->last.actions;
        w->tells += w->last.actions & 1;
        assert_true(w->last.wake_ns > w->pulse.t_ns);
        assert_true(!w->last.actions || w->last.cause != AFZ_CAUSE_NONE);
        return w->last.actions;
}

/* Looks every `step` for a while, with need growing. */
static uint32_t go_on(struct walk *w, uint64_t for_ns, uint64_t step, int64_t bytes_per_s)
{
        uint32_t seen = 0;
        for (uint64_t t = 0; t < for_ns; t += step) {
                int64_t more = (int64_t)((double)bytes_per_s * (double)step / 1e9);
                if (!w->ladder.braked)
                        w->pulse.figure[AFZ_PULSE_NEED] += (uint64_t)more;
                seen |= look(w, step);
        }
        return seen;
}

static void set_need(struct walk *w, uint64_t need)
{
        afz_pulse_set(&w->pulse, AFZ_PULSE_NEED, need);
}

static void below_act_nothing_happens(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 60; seed++) {
                struct afz_ladder_setup setup = setup_of();
                struct walk w;
                uint64_t x = seed * 88172645463325252ULL;
                setup.tier = (enum afz_tier)(seed % AFZ_TIER_COUNT);
                setup.policy = (enum afz_policy)(seed % AFZ_POLICY_COUNT);
                begin(&w, &setup);
                for (int i = 0; i < 500; i++) {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                        /* Anything below act, from anywhere to anywhere, at any pace. */
                        set_need(&w, x % setup.lines.act_bytes);
                        afz_pulse_set(&w.pulse, AFZ_PULSE_AVAILABLE,
                                      setup.lines.low_bytes + (x >> 7) % (8 * GIB));
                        if (x % 7 == 0)
                                w.pulse.has = (uint32_t)(x >> 20) % (1U << AFZ_PULSE_COUNT) &
                                              ~(1U << AFZ_PULSE_OOM_KILLS);
                        look(&w, (x >> 9) % (100 * MS) + 1);
                }
                assert_int_equal(w.all, 0);
        }
}

static void nothing_known_nothing_done(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        begin(&w, &setup);
        memset(w.pulse.figure, 0xff, sizeof(w.pulse.figure));
        w.pulse.has = 0;
        go_on(&w, 10 * SECOND, 50 * MS, 0);
        assert_int_equal(w.all, 0);
        setup.lines = (struct afz_lines){0}; /* no lines at all, but a need */
        setup.policy = AFZ_POLICY_WATCH;
        begin(&w, &setup);
        go_on(&w, SECOND, 10 * MS, 1000000);
        assert_int_equal(w.all & ~BIT(TELL), 0);
}

/* A brake is not for ever, though nothing more is seen. */
static void blind_while_braked(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        begin(&w, &setup);
        set_need(&w, setup.lines.act_bytes - 50 * MIB);
        while (!w.ladder.braked)
                go_on(&w, 2 * MS, 2 * MS, 500000000);
        w.pulse.has = 0;
        assert_true(go_on(&w, SECOND, 10 * MS, 0) & BIT(RELEASE));
        assert_false(w.ladder.braked);
        assert_false(w.all & (BIT(KILL) | BIT(INTERRUPT) | BIT(TERMINATE)));
}

static void told_once(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        uint64_t act = setup.lines.act_bytes;
        begin(&w, &setup);
        for (int i = 0; i < 20; i++) { /* to and fro across the line */
                set_need(&w, act - 3 * MIB);
                go_on(&w, 3 * SECOND, 50 * MS, 0);
                set_need(&w, act + 3 * MIB);
                go_on(&w, 3 * SECOND, 50 * MS, 0);
        }
        assert_int_equal(w.tells, 1);
        set_need(&w, act - act / 10);
        go_on(&w, SECOND, 50 * MS, 0);
        set_need(&w, act + 3 * MIB);
        go_on(&w, SECOND, 50 * MS, 0);
        assert_int_equal(w.tells, 2);
        assert_false(w.all & (BIT(KILL) | BIT(INTERRUPT) | BIT(CHECKPOINT)));
}

static void kernel_was_first(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        begin(&w, &setup);
        afz_pulse_set(&w.pulse, AFZ_PULSE_OOM_KILLS, 0);
        assert_int_equal(go_on(&w, SECOND, 10 * MS, 0), 0);
        afz_pulse_set(&w.pulse, AFZ_PULSE_OOM_KILLS, 1);
        assert_int_equal(look(&w, 10 * MS), BIT(TELL) | BIT(KILL));
        assert_int_equal(w.last.cause, AFZ_CAUSE_KERNEL);
        assert_true(w.last.over);
        /* It goes on killing until it is gone, and says nothing more. */
        assert_int_equal(go_on(&w, 100 * MS, 10 * MS, 0), BIT(KILL));
        assert_int_equal(w.last.cause, AFZ_CAUSE_KERNEL);

        setup.parts_alone = true; /* a server: told, and the rest goes on */
        begin(&w, &setup);
        afz_pulse_set(&w.pulse, AFZ_PULSE_OOM_KILLS, 1);
        assert_int_equal(look(&w, 10 * MS), BIT(TELL));
        assert_int_equal(w.last.cause, AFZ_CAUSE_KERNEL);
        assert_int_equal(go_on(&w, SECOND, 10 * MS, 0), 0);
        assert_false(w.last.over);
}

/* A part of a server was killed alone: the ladder stands on the ground again. */
static void again_for_the_rest(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        begin(&w, &setup);
        afz_pulse_set(&w.pulse, AFZ_PULSE_OOM_KILLS, 3);
        assert_true(look(&w, 10 * MS) & BIT(KILL));
        afz_ladder_again(&w.ladder);
        w.all = 0;
        go_on(&w, SECOND, 10 * MS, 0);
        assert_int_equal(w.all, 0);
        assert_false(w.last.over);
}

/* Over the budget, but it does not grow: it is spoken to, not killed at once (attach, set). */
static void over_but_at_rest(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        begin(&w, &setup);
        set_need(&w, 2 * GIB);
        w.ack = AFZ_ACK_CANNOT;
        uint32_t seen = go_on(&w, SECOND, 10 * MS, 0);
        assert_true(seen & BIT(TELL) && seen & BIT(CHECKPOINT) && seen & BIT(INTERRUPT));
        assert_false(seen & BIT(KILL));
        seen = go_on(&w, 11 * SECOND, 10 * MS, 0);
        assert_true(seen & BIT(TERMINATE));
        assert_true(go_on(&w, 20 * SECOND, 10 * MS, 0) & BIT(KILL));
}

static void waits_for_the_answer(void **state)
{
        static const struct {
                enum afz_ack ack;
                uint64_t least_ns, most_ns; /* until INTERRUPT */
        } rows[] = {
                {AFZ_ACK_NONE, 90 * MS, 200 * MS},
                {AFZ_ACK_CANNOT, 0, 100 * MS},
                {AFZ_ACK_SAVED, 0, 100 * MS},
                {AFZ_ACK_ASKED, 4900 * MS, 5100 * MS},
                {AFZ_ACK_SAVING, 29900 * MS, 30100 * MS},
        };
        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct afz_ladder_setup setup = setup_of();
                struct walk w;
                begin(&w, &setup);
                set_need(&w, setup.lines.hard_bytes - 6 * MIB);
                assert_true(look(&w, 10 * MS) & BIT(CHECKPOINT));
                w.ack = rows[i].ack;
                uint64_t from = w.pulse.t_ns;
                while (!(w.all & BIT(INTERRUPT)))
                        look(&w, 10 * MS);
                assert_in_range(w.pulse.t_ns - from, rows[i].least_ns, rows[i].most_ns);
                assert_false(w.all & BIT(KILL));
        }
}

/* Every wait ends at once when hard is within 300 ms. */
static void no_wait_when_near(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        begin(&w, &setup);
        set_need(&w, setup.lines.stop_bytes - 2 * MIB);
        w.ack = AFZ_ACK_SAVING;
        go_on(&w, SECOND, 5 * MS, 0);
        uint32_t seen = go_on(&w, SECOND, 2 * MS, 200000000);
        assert_true(seen & BIT(KILL));
        assert_true(w.last.over);
        assert_int_equal(w.last.cause, AFZ_CAUSE_BUDGET);
}

static void grace_of_nothing(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        setup.grace_ns = 0;
        begin(&w, &setup);
        set_need(&w, GIB);
        go_on(&w, 50 * MS, 10 * MS, 0);
        assert_true(w.all & BIT(KILL));
        assert_false(w.all & (BIT(INTERRUPT) | BIT(TERMINATE)));
}

/* What was lowered because others grew is not the job's fault. */
static void lowered_lines(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        setup.lowered = true;
        begin(&w, &setup);
        set_need(&w, setup.lines.act_bytes - 20 * MIB);
        go_on(&w, 20 * SECOND, 2 * MS, 100000000);
        assert_true(w.all & BIT(KILL));
        assert_int_equal(w.last.cause, AFZ_CAUSE_PRESSURE);
}

static void new_lines_help(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        begin(&w, &setup);
        set_need(&w, setup.lines.hard_bytes - 6 * MIB);
        w.ack = AFZ_ACK_SAVING;
        go_on(&w, SECOND, 10 * MS, 0);
        assert_int_equal(w.ladder.stage, AFZ_STAGE_ASKED);
        struct afz_budget more = {.ram_bytes = 4 * GIB, .given = true};
        setup.lines = afz_lines_of(&more, 16 * GIB);
        afz_ladder_change(&w.ladder, &setup);
        w.ack = AFZ_ACK_SAVED;
        go_on(&w, SECOND, 10 * MS, 0);
        assert_int_equal(w.ladder.stage, AFZ_STAGE_CALM);
        assert_false(w.all & (BIT(INTERRUPT) | BIT(KILL)));
}

/* Ctrl-Z: what happened meanwhile is no slope. */
static void gaps(void **state)
{
        (void)state;
        for (int told = 0; told < 2; told++) {
                struct afz_ladder_setup setup = setup_of();
                struct walk w;
                begin(&w, &setup);
                go_on(&w, SECOND, 10 * MS, 0);
                if (told)
                        afz_ladder_gap(&w.ladder);
                set_need(&w, GIB / 2 + 200 * MIB);
                look(&w, told ? 10 * MS : 3600 * SECOND); /* or it was not even looked at */
                assert_int_equal(w.last.slope_bytes_per_s, 0);
                look(&w, 10 * MS);
                assert_int_equal(w.last.slope_bytes_per_s, 0);
        }
}

static void own_limit_is_only_told(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        begin(&w, &setup);
        set_need(&w, setup.lines.act_bytes - 10 * MIB);
        for (int i = 0; i < 6000; i++) { /* a minute of thrashing in its own cgroup */
                afz_pulse_set(&w.pulse, AFZ_PULSE_STALL, (uint64_t)i * 9 * MS);
                afz_pulse_set(&w.pulse, AFZ_PULSE_JOB_STALL, (uint64_t)i * 9 * MS);
                look(&w, 10 * MS);
        }
        assert_int_equal(w.all, BIT(TELL));
        assert_int_equal(w.tells, 1);
}

/* Everything stands still, and it is not the job: braked, squeezed, never stopped. */
static void neighbour_thrashes(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        begin(&w, &setup);
        uint64_t stall = 0, frozen = 0;
        set_need(&w, setup.lines.act_bytes + 10 * MIB); /* near its budget, even */
        afz_pulse_set(&w.pulse, AFZ_PULSE_AVAILABLE, 300 * MIB);
        afz_pulse_set(&w.pulse, AFZ_PULSE_SWAP_FREE, 4 * GIB);
        for (int i = 0; i < 18000; i++) {
                stall += 5 * MS;
                frozen += w.ladder.braked ? 10 * MS : 0;
                afz_pulse_set(&w.pulse, AFZ_PULSE_STALL, stall);
                look(&w, 10 * MS);
        }
        assert_true(w.all & BIT(BRAKE) && w.all & BIT(SQUEEZE));
        assert_false(w.all & (BIT(INTERRUPT) | BIT(TERMINATE) | BIT(KILL)));
        assert_in_range(frozen, 19 * SECOND, 21 * SECOND);
        assert_int_equal(w.tells, 2); /* of act, of the machine */

        begin(&w, &setup); /* a job that holds next to nothing is not even braked */
        set_need(&w, 50 * MIB);
        afz_pulse_set(&w.pulse, AFZ_PULSE_AVAILABLE, 300 * MIB);
        for (int i = 0; i < 1000; i++) {
                afz_pulse_set(&w.pulse, AFZ_PULSE_STALL, (uint64_t)i * 5 * MS);
                look(&w, 10 * MS);
        }
        assert_false(w.all & BIT(BRAKE));
}

/* It ends while the job is frozen and comes back with it, and the job holds most: stopped, after
 * the brake's time, with words. */
static void job_thrashes_the_machine(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct afz_budget large = {.ram_bytes = 15 * GIB, .given = true};
        struct walk w;
        setup.lines = afz_lines_of(&large, 16 * GIB);
        begin(&w, &setup);
        uint64_t stall = 0;
        set_need(&w, 12 * GIB);
        afz_pulse_set(&w.pulse, AFZ_PULSE_AVAILABLE, 700 * MIB);
        w.ack = AFZ_ACK_CANNOT;
        for (int i = 0; i < 9000 && !(w.all & BIT(INTERRUPT)); i++) {
                stall += w.ladder.braked ? 0 : 8 * MS;
                afz_pulse_set(&w.pulse, AFZ_PULSE_STALL, stall);
                look(&w, 10 * MS);
        }
        assert_true(w.all & BIT(CHECKPOINT) && w.all & BIT(INTERRUPT));
        assert_int_equal(w.last.cause, AFZ_CAUSE_PRESSURE);
        assert_false(w.all & BIT(KILL));
        assert_true(w.pulse.t_ns - 100 * SECOND > 20 * SECOND);
}

static void storm(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        setup.processes_max = 500;
        setup.tier = AFZ_TIER_NONE;
        begin(&w, &setup);
        uint64_t count = 1;
        for (int i = 0; i < 400 && !w.last.over; i++) { /* doubles, and does not care for signals */
                afz_pulse_set(&w.pulse, AFZ_PULSE_PROCESSES, count);
                look(&w, 5 * MS);
                count += count / 4 + 1;
        }
        assert_true(w.last.over && w.last.storm);
        assert_true(w.all & BIT(TELL) && w.all & BIT(BRAKE) && w.all & BIT(KILL));
        assert_true(count < 3000);

        begin(&w, &setup); /* many, but no more: left alone after a pause */
        afz_pulse_set(&w.pulse, AFZ_PULSE_PROCESSES, 520);
        go_on(&w, 10 * SECOND, 10 * MS, 0);
        assert_int_equal(w.all, BIT(TELL) | BIT(BRAKE) | BIT(RELEASE));
        assert_false(w.ladder.braked);

        setup.tier = AFZ_TIER_SCOPE; /* the kernel refuses more: told, and ended if it stays so */
        begin(&w, &setup);
        afz_pulse_set(&w.pulse, AFZ_PULSE_PROCESSES, 500);
        go_on(&w, 4 * SECOND, 10 * MS, 0);
        assert_int_equal(w.all, BIT(TELL));
        assert_int_equal(w.tells, 1);
        go_on(&w, 2 * SECOND, 10 * MS, 0);
        assert_true(w.last.over && w.last.storm);
}

static void disk(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        begin(&w, &setup);
        afz_ladder_space(&w.ladder, &(struct afz_space_word){AFZ_SPACE_WARN, AFZ_CAUSE_DISK});
        assert_int_equal(look(&w, 10 * MS), BIT(TELL));
        assert_int_equal(w.last.cause, AFZ_CAUSE_DISK);
        assert_int_equal(go_on(&w, SECOND, 10 * MS, 0), 0);
        afz_ladder_space(&w.ladder, &(struct afz_space_word){AFZ_SPACE_BRAKE, AFZ_CAUSE_DISK});
        assert_int_equal(look(&w, 10 * MS), BIT(TELL) | BIT(BRAKE));
        uint64_t frozen = 0;
        for (int i = 0; i < 12000; i++) {
                frozen += w.ladder.braked ? 10 * MS : 0;
                look(&w, 10 * MS);
        }
        assert_in_range(frozen, 29 * SECOND, 31 * SECOND); /* then it may fill up */
        assert_int_equal(w.tells, 2);
        assert_int_equal(w.all, BIT(TELL) | BIT(BRAKE) | BIT(RELEASE));
}

/* read() and MAP_POPULATE go on in a frozen job: no waiting for the end of the pulse. */
static void filled_by_the_kernel(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        begin(&w, &setup);
        set_need(&w, setup.lines.act_bytes - 20 * MIB);
        uint64_t braked = 0;
        while (!w.last.over) {
                w.pulse.figure[AFZ_PULSE_NEED] += 400000000 / 500;
                if (look(&w, 2 * MS) & BIT(BRAKE))
                        braked = w.pulse.t_ns;
        }
        assert_true(braked > 0);
        assert_in_range(w.pulse.t_ns - braked, 20 * MS, 30 * MS);
        assert_true(w.all & BIT(CHECKPOINT));
}

/* A burst that is over when the first pulse ends runs on, wherever it stands. */
static void burst_is_over(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        begin(&w, &setup);
        set_need(&w, setup.lines.act_bytes - 20 * MIB);
        while (!w.ladder.braked)
                go_on(&w, 2 * MS, 2 * MS, 1000000000);
        unsigned pulses = 1;
        for (int i = 0; i < 5000; i++)
                pulses += (look(&w, 2 * MS) & BIT(BRAKE)) != 0;
        assert_int_equal(pulses, 1);
        assert_int_equal(w.ladder.stage, AFZ_STAGE_CALM);

        /* And that level is known from now on: to there it may go as it likes. */
        uint64_t peak = w.pulse.figure[AFZ_PULSE_NEED];
        assert_true(peak > setup.lines.act_bytes);
        set_need(&w, peak - 100000000);
        go_on(&w, 3 * SECOND, 10 * MS, 0);
        w.all = 0;
        go_on(&w, 100 * MS, 2 * MS, 1000000000);
        assert_int_equal(w.pulse.figure[AFZ_PULSE_NEED], peak);
        assert_int_equal(w.all & BIT(BRAKE), 0);
}

/* `antifreeze set` to less than it has, while it stands still for another reason. */
static void no_words_to_a_frozen_job(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        begin(&w, &setup);
        go_on(&w, SECOND, 10 * MS, 0);
        afz_ladder_space(&w.ladder, &(struct afz_space_word){AFZ_SPACE_BRAKE, AFZ_CAUSE_DISK});
        assert_true(look(&w, 10 * MS) & BIT(BRAKE));
        struct afz_budget less = {.ram_bytes = 400 * MIB, .given = true};
        setup.lines = afz_lines_of(&less, 16 * GIB);
        afz_ladder_change(&w.ladder, &setup);
        assert_int_equal(look(&w, 10 * MS), BIT(TELL) | BIT(RELEASE) | BIT(CHECKPOINT));
        go_on(&w, 40 * SECOND, 10 * MS, 0);
        assert_true(w.all & BIT(INTERRUPT) && w.last.over);
}

/* Without a brake it is asked at the half way and stopped in time all the same. */
static void no_brake(void **state)
{
        (void)state;
        struct afz_ladder_setup setup = setup_of();
        struct walk w;
        setup.can_brake = false;
        begin(&w, &setup);
        while (!w.last.over) {
                go_on(&w, 3 * MS, 3 * MS, 500000000);
                assert_true(w.pulse.figure[AFZ_PULSE_NEED] < setup.lines.hard_bytes - 6 * MIB);
        }
        assert_true(w.all & BIT(CHECKPOINT));
        assert_false(w.all & (BIT(BRAKE) | BIT(RELEASE)));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(below_act_nothing_happens),
                cmocka_unit_test(nothing_known_nothing_done),
                cmocka_unit_test(blind_while_braked),
                cmocka_unit_test(told_once),
                cmocka_unit_test(kernel_was_first),
                cmocka_unit_test(again_for_the_rest),
                cmocka_unit_test(over_but_at_rest),
                cmocka_unit_test(waits_for_the_answer),
                cmocka_unit_test(no_wait_when_near),
                cmocka_unit_test(grace_of_nothing),
                cmocka_unit_test(lowered_lines),
                cmocka_unit_test(new_lines_help),
                cmocka_unit_test(gaps),
                cmocka_unit_test(own_limit_is_only_told),
                cmocka_unit_test(neighbour_thrashes),
                cmocka_unit_test(job_thrashes_the_machine),
                cmocka_unit_test(storm),
                cmocka_unit_test(disk),
                cmocka_unit_test(filled_by_the_kernel),
                cmocka_unit_test(burst_is_over),
                cmocka_unit_test(no_words_to_a_frozen_job),
                cmocka_unit_test(no_brake),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
