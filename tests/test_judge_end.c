/* How a run ended: each end from what the guard knew alone. */
#include <signal.h>

#include "end_case.h"

#define MIB (UINT64_C(1) << 20)

/* ---- what the guard knows alone ---- */

static const struct {
        struct afz_end end;
        struct afz_facts more;
        const char *id;
        enum afz_level level;
        const char *summary;
} ends[] = {
        {{AFZ_END_EXIT, 0},
         {.attempt = 0},
         "clean",
         AFZ_LEVEL_OK,
         "nothing was wrong: it needed 3.0G of the 9.0G it may use"},
        {{AFZ_END_EXIT, 0},
         {.watch_only = true},
         "clean",
         AFZ_LEVEL_OK,
         "it ended well; it needed 3.0G"},
        {{AFZ_END_EXIT, 0},
         {.attempt = 2, .batch = 16, .accum = 4},
         "clean",
         AFZ_LEVEL_OK,
         "it ended well with batch 16 and accumulation 4"},
        {{AFZ_END_EXIT, 0},
         {.parts_stopped = 1},
         "host-exhaustion",
         AFZ_LEVEL_ACT,
         "1 of the server's kernels was stopped"},
        {{AFZ_END_EXIT, 3},
         {.attempt = 0},
         "exception",
         AFZ_LEVEL_WARN,
         "it ended by itself with exit status 3"},
        {{AFZ_END_EXIT, 127}, {.attempt = 0}, "exception", AFZ_LEVEL_WARN, "exit status 127"},
        {{AFZ_END_EXIT, 139},
         {.attempt = 0},
         "crash",
         AFZ_LEVEL_WARN,
         "a program that it started crashed"},
        {{AFZ_END_EXIT, 137},
         {.attempt = 0},
         "killed-externally",
         AFZ_LEVEL_WARN,
         "somebody ended a program that it started"},
        {{AFZ_END_EXIT, 130}, {.attempt = 0}, "killed-externally", AFZ_LEVEL_OK, "interrupted"},
        {{AFZ_END_EXIT, 141}, {.attempt = 0}, "killed-externally", AFZ_LEVEL_OK, "SIGPIPE"},
        {{AFZ_END_SIGNAL, SIGSEGV}, {.attempt = 0}, "crash", AFZ_LEVEL_WARN, "it crashed (Seg"},
        {{AFZ_END_SIGNAL, SIGABRT}, {.attempt = 0}, "crash", AFZ_LEVEL_WARN, "it crashed (Abort"},
        {{AFZ_END_SIGNAL, SIGKILL},
         {.attempt = 0},
         "killed-externally",
         AFZ_LEVEL_WARN,
         "somebody ended it (Killed), not Antifreeze"},
        {{AFZ_END_EXIT, 124},
         {.attempt = 0},
         "killed-externally",
         AFZ_LEVEL_WARN,
         "a time limit ended it"},
        {{AFZ_END_SIGNAL, SIGINT}, {.attempt = 0}, "killed-externally", AFZ_LEVEL_OK, "Ctrl-C"},
        {{AFZ_END_SIGNAL, SIGPIPE}, {.attempt = 0}, "killed-externally", AFZ_LEVEL_OK, "SIGPIPE"},
        {{AFZ_END_OOM_KILLED, SIGKILL},
         {.attempt = 0},
         "oom-killed",
         AFZ_LEVEL_ACT,
         "the kernel stopped the job at the limit that protects the machine (8.0G)"},
        {{AFZ_END_STOPPED, -1},
         {.stop_cause = AFZ_CAUSE_BUDGET, .stop_need_bytes = GIB},
         "host-exhaustion",
         AFZ_LEVEL_ACT,
         "stopped to protect the machine: the job needed 1.0G of the 9.0G it may use, and"},
        {{AFZ_END_STOPPED, -1},
         {.stop_cause = AFZ_CAUSE_PRESSURE, .other = {GIB, "firefox"}},
         "host-exhaustion",
         AFZ_LEVEL_ACT,
         "most growth was by firefox"},
        {{AFZ_END_STOPPED, -1},
         {.stop_cause = AFZ_CAUSE_BUDGET, .storm = true},
         "fork-storm",
         AFZ_LEVEL_ACT,
         "it started processes without end"},
        {{AFZ_END_LOST, -1}, {.attempt = 0}, "lost", AFZ_LEVEL_UNKNOWN, "the guard was killed"},
        {{AFZ_END_UNKNOWN, -1},
         {.attempt = 0},
         "not-known",
         AFZ_LEVEL_UNKNOWN,
         "only its parent knows how"},
};

static void test_each_end_without_a_recording(void **state)
{
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(ends); i++) {
                struct afz_case c = ended(ends[i].end.how, ends[i].end.code);
                uint64_t hard = c.facts.hard_bytes;
                c.facts = ends[i].more;
                c.facts.end = ends[i].end;
                c.facts.hard_bytes = hard;
                struct afz_outcome o = judge(&c);
                assert_int_equal(o.verdicts, 1);
                assert_string_equal(o.verdict[0].id, ends[i].id);
                assert_int_equal(o.verdict[0].level, ends[i].level);
                assert_words(o.verdict[0].summary, ends[i].summary);
        }
}

static void test_nothing_is_said_while_it_runs(void **state)
{
        (void)state;
        struct afz_case c = ended(AFZ_END_RUNNING, -1);
        assert_int_equal(judge(&c).verdicts, 0);
}

static void test_figures_are_told_as_evidence(void **state)
{
        (void)state;
        struct afz_case c = ended(AFZ_END_STOPPED, -1);
        c.facts.stop_cause = AFZ_CAUSE_BUDGET;
        c.facts.largest.pid = 4711;
        c.facts.largest.bytes = 2 * GIB;
        strcpy(c.facts.largest.name, "python3");
        c.facts.slope_bytes_per_s = 100 << 20;
        strcpy(c.facts.saved, "it saved in 3 s");
        strcpy(c.facts.not_again, "it leaks");
        c.facts.other.grown_bytes = 512 * MIB;
        strcpy(c.facts.other.name, "firefox");
        struct afz_outcome o = judge(&c);
        const struct afz_verdict *v = &o.verdict[0];
        assert_true(has_evidence(v, "peak need 3.0G; 8.0G of RAM and 1.0G of swap were allowed"));
        assert_true(has_evidence(v, "python3 (pid 4711) held most: 2.0G"));
        assert_true(has_evidence(v, "it grew by 100 MB/s at the end"));
        assert_true(has_evidence(v, "checkpoint: it saved in 3 s"));
        assert_true(has_evidence(v, "not started again: it leaks"));
        assert_true(has_evidence(v, "outside of the job, firefox grew by 512M meanwhile"));
        c.facts.stop_cause = AFZ_CAUSE_NONE;
        c.facts.end = (struct afz_end){AFZ_END_EXIT, 1};
        o = judge(&c);
        assert_false(has_evidence(&o.verdict[0], "firefox"));
        /* Memory had no part in this: nobody is to think that it had. */
        assert_true(has_evidence(&o.verdict[0], "its memory was far from the limit: 3.0G at most"));
        assert_false(has_evidence(&o.verdict[0], "held most"));
        c.peak_bytes = 7 * GIB;
        o = judge(&c);
        assert_true(has_evidence(&o.verdict[0], "peak need 7.0G; 8.0G"));
        assert_true(has_evidence(&o.verdict[0], "held most"));
}

static void test_our_own_checkpoint_signal(void **state)
{
        (void)state;
        struct afz_case c = ended(AFZ_END_SIGNAL, SIGUSR1);
        c.facts.checkpoint_signal = SIGUSR1;
        assert_string_equal(judge(&c).verdict[0].id, "killed-externally");
        c.did[AFZ_ACTION_CHECKPOINT] = 1;
        assert_string_equal(judge(&c).verdict[0].id, "checkpoint-signal");
        c.facts.end.code = SIGTERM;
        assert_string_equal(judge(&c).verdict[0].id, "killed-externally");
}

static void test_a_warning_says_more_than_clean(void **state)
{
        (void)state;
        struct afz_case c = ended(AFZ_END_EXIT, 0);
        struct afz_outcome o = {0};
        afz_outcome_add(&o, "data-stall", AFZ_LEVEL_WARN, 0.9);
        afz_judge_end(&c, &o);
        assert_int_equal(o.verdicts, 1);
        o.verdict[0].level = AFZ_LEVEL_OK;
        afz_judge_end(&c, &o);
        assert_int_equal(o.verdicts, 2);
        while (afz_outcome_add(&o, "more", AFZ_LEVEL_OK, 0.5))
                ;
        c.facts.end.code = 1;
        afz_judge_end(&c, &o); /* no room: nothing is said, and nothing breaks */
        assert_int_equal(o.verdicts, AFZ_VERDICTS_MAX);
}

/* ---- clean ---- */

static int64_t wavy(uint32_t t_ms, const void *ctx)
{
        (void)ctx;
        return FLY_GB(2) + (int64_t)(fly_saw(t_ms, 3000) * (double)FLY_MB(300));
}

static void test_a_flat_floor_is_told(void **state)
{
        (void)state;
        fly_column(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, fly_every(0, 600000, 100), wavy, NULL);
        struct afz_case c = ended(AFZ_END_EXIT, 0);
        struct afz_outcome o = judge(&c);
        assert_string_equal(o.verdict[0].summary,
                            "nothing was wrong: it needed 3.0G of the 9.0G it may use; its memory "
                            "stayed level");
}

/* What is said less surely: it ended well, but why it grew to the end nobody knows. */
static void test_a_rising_floor_is_told(void **state)
{
        (void)state;
        fly_line(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, fly_every(0, 40000, 100),
                 (double)FLY_MB(100), (double)FLY_MB(20));
        struct afz_case c = ended(AFZ_END_EXIT, 0);
        struct afz_outcome o = judge(&c);
        assert_string_equal(o.verdict[0].id, "clean");
        assert_true(o.verdict[0].confidence < 0.7);
        assert_true(has_evidence(&o.verdict[0], "the memory that it keeps grew by "));
}

static void test_a_short_run_has_no_floor(void **state)
{
        (void)state;
        fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, 0, FLY_GB(1));
        struct afz_case c = ended(AFZ_END_EXIT, 0);
        assert_string_equal(judge(&c).verdict[0].summary,
                            "nothing was wrong: it needed 3.0G of the 9.0G it may use");
}

/* ---- hostile ---- */

static void test_whatever_is_recorded_is_survived(void **state)
{
        (void)state;
        static const enum afz_metric metric[] = {
                AFZ_HOLD_NEED,    AFZ_HOLD_AVAILABLE,   AFZ_HOLD_OOM_KILLS,   AFZ_VM_OOM_KILLS,
                AFZ_CGROUP_MAX,   AFZ_CGROUP_NEED,      AFZ_CGROUP_OOM_KILLS, AFZ_CGROUP_EVENT_OOM,
                AFZ_THERMAL_TEMP, AFZ_THERMAL_CRITICAL, AFZ_POWER_BATTERY,    AFZ_POWER_DISCHARGING,
                AFZ_CGROUP_LEVEL, AFZ_HOST_MEM_TOTAL,
        };
        static const int64_t value[] = {INT64_MIN, -1, 0, INT64_MAX, INT64_MIN, 1};
        for (size_t m = 0; m < AFZ_COUNT_OF(metric); m++)
                for (uint32_t i = 0; i < AFZ_COUNT_OF(value); i++)
                        fly_point(&flight, afz_metric_kind(metric[m]), 0, metric[m],
                                  i ? UINT32_MAX - 10 + i : 0, value[i]);
        fly_named(&flight, AFZ_KIND_PROC, 1, "", NULL, NULL);
        for (int e = -1; e <= AFZ_EVENT_COUNT; e++)
                fly_mark(&flight, UINT32_MAX, AFZ_MARK_EVENT, (int64_t)e * (INT64_C(1) << 32) | 1,
                         e % 2 ? NULL : "(");
        fly_mark(&flight, 0, AFZ_MARK_EVENT, INT64_MIN, "");
        for (int how = 0; how < AFZ_END_COUNT; how++)
                for (int code = -2; code < 300; code += 1) {
                        struct afz_case c = ended((enum afz_end_how)how, code);
                        c.rebooted = code % 2;
                        c.peak_bytes = c.facts.hard_bytes = c.budget_bytes = UINT64_MAX;
                        c.facts.slope_bytes_per_s = code % 3 ? INT64_MIN : INT64_MAX;
                        memset(c.facts.saved, 'x', sizeof c.facts.saved - 1);
                        judge(&c);
                }
        struct afz_case c = ended((enum afz_end_how)99, INT32_MAX);
        assert_string_equal(judge(&c).verdict[0].id, "not-known");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_each_end_without_a_recording),
                TEST(test_nothing_is_said_while_it_runs),
                TEST(test_figures_are_told_as_evidence),
                TEST(test_our_own_checkpoint_signal),
                TEST(test_a_warning_says_more_than_clean),
                TEST(test_a_flat_floor_is_told),
                TEST(test_a_rising_floor_is_told),
                TEST(test_a_short_run_has_no_floor),
                TEST(test_whatever_is_recorded_is_survived),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
