/* Things that run out: swap, open files, threads; and what all judges of such things survive. */
#include "judge_fixture.h"
#include "shape.h"

static struct afz_case ended(enum afz_end_how how, int code)
{
        return (struct afz_case){.flight = &flight, .facts.end = {how, code}};
}

static bool says(judge_function judge, enum afz_end_how how, int code)
{
        struct afz_case c = ended(how, code);
        return ask(judge, &c).verdicts > 0;
}

/* ---- shape ---- */

static const struct afz_column *counter_of(uint32_t step_ms, double per_s)
{
        fly_line(&flight, AFZ_KIND_VM, 0, AFZ_VM_SWAP_IN, fly_every(0, 100000, step_ms), 1000,
                 per_s);
        return afz_track_column(afz_flight_one(&flight, AFZ_KIND_VM), AFZ_VM_SWAP_IN);
}

static void test_a_rate_between_readings(void **state)
{
        (void)state;
        const struct afz_column *column = counter_of(10000, 500);
        double rate;
        assert_true(afz_shape_rate(column, 12000, 14000, &rate));
        assert_true(rate > 499 && rate < 501);
        assert_true(afz_shape_rate(column, 0, 90000, &rate));
        assert_true(rate > 499 && rate < 501);
        assert_false(afz_shape_rate(column, 80000, 95000, &rate)); /* beyond the last */
        assert_false(afz_shape_rate(column, 20000, 20000, &rate));
        assert_false(afz_shape_rate(NULL, 0, 1000, &rate));
}

static void test_a_rate_of_old_spans(void **state)
{
        (void)state;
        double rate;
        for (uint32_t t = 0; t < 100000; t += 10000)
                fly_span(&flight, AFZ_KIND_VM, 0, AFZ_VM_SWAP_IN, t, 10000, t / 10,
                         (t + 10000) / 10, (t + 10000) / 10); /* a counter's mean is its last */
        const struct afz_column *column =
                afz_track_column(afz_flight_one(&flight, AFZ_KIND_VM), AFZ_VM_SWAP_IN);
        assert_true(afz_shape_rate(column, 15000, 17000, &rate));
        assert_true(rate > 99 && rate < 101);
        assert_true(afz_shape_rate(column, 20000, 90000, &rate));
        assert_true(rate > 99 && rate < 101);
}

static void test_no_rate_over_a_gap_or_a_reset(void **state)
{
        (void)state;
        double rate;
        fly_line(&flight, AFZ_KIND_VM, 0, AFZ_VM_SWAP_IN, fly_every(0, 10000, 1000), 0, 10);
        fly_line(&flight, AFZ_KIND_VM, 0, AFZ_VM_SWAP_IN, fly_every(60000, 70000, 1000), 600, 10);
        fly_line(&flight, AFZ_KIND_VM, 0, AFZ_VM_SWAP_IN, fly_every(70000, 80000, 1000), 0, 10);
        const struct afz_column *column =
                afz_track_column(afz_flight_one(&flight, AFZ_KIND_VM), AFZ_VM_SWAP_IN);
        assert_false(afz_shape_rate(column, 20000, 30000, &rate));
        assert_false(afz_shape_rate(column, 65000, 75000, &rate));
        assert_true(afz_shape_rate(column, 71000, 75000, &rate));
}

static int64_t cached(uint32_t t_ms, const void *ctx)
{
        (void)ctx;
        return (int64_t)(1e6 * fly_fill(t_ms, 30000));
}

static void test_steady_is_not_slowing_down(void **state)
{
        (void)state;
        struct fly_times all = fly_every(0, 300000, 1000);
        struct afz_steady steady;
        fly_line(&flight, AFZ_KIND_PROC, 1, AFZ_PROC_FDS, all, 100, 2);
        fly_line(&flight, AFZ_KIND_PROC, 1, AFZ_PROC_THREADS, all, 1000, -2);
        fly_column(&flight, AFZ_KIND_PROC, 1, AFZ_PROC_RSS, all, cached, NULL);
        const struct afz_track *track = afz_flight_one(&flight, AFZ_KIND_PROC);
        const struct afz_column *up = afz_track_column(track, AFZ_PROC_FDS);
        const struct afz_column *down = afz_track_column(track, AFZ_PROC_THREADS);
        assert_true(afz_shape_steady(up, AFZ_WAY_UP, 1000, &steady));
        assert_true(steady.per_s > 1.9 && steady.per_s < 2.1);
        assert_false(afz_shape_steady(up, AFZ_WAY_DOWN, 1000, &steady));
        assert_false(afz_shape_steady(up, AFZ_WAY_UP, 300000, &steady)); /* too short */
        assert_true(afz_shape_steady(down, AFZ_WAY_DOWN, 1000, &steady));
        assert_true(steady.per_s < -1.9 && steady.per_s > -2.1);
        assert_false(
                afz_shape_steady(afz_track_column(track, AFZ_PROC_RSS), AFZ_WAY_UP, 1000, &steady));
        assert_false(afz_shape_steady(NULL, AFZ_WAY_UP, 0, &steady));
}

/* ---- swap-thrash ---- */

struct paging {
        double stalled, in_per_s, out_per_s;
        int64_t away;
};

/* Quiet, then so for a while, then quiet. */
static void fly_paging(struct paging p, uint32_t from_ms, uint32_t to_ms, uint32_t end_ms)
{
        static const struct paging quiet;
        struct {
                uint32_t from, to;
                struct paging p;
        } piece[] = {{0, from_ms, quiet}, {from_ms, to_ms, p}, {to_ms, end_ms, quiet}};
        double stall = 0, in = 0, out = 0;
        flight.head.swap_total_bytes = (uint64_t)FLY_GB(8);
        for (size_t i = 0; i < AFZ_COUNT_OF(piece); i++) {
                struct fly_times fast = fly_every(piece[i].from, piece[i].to, 100);
                struct fly_times slow = fly_every(piece[i].from, piece[i].to, 500);
                double s = (double)(piece[i].to - piece[i].from) / 1000;
                fly_line(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_STALL, fast, (int64_t)stall,
                         piece[i].p.stalled * 1e9);
                fly_flat(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_AWAY, fast, p.away);
                fly_line(&flight, AFZ_KIND_VM, 0, AFZ_VM_SWAP_IN, slow, (int64_t)in,
                         piece[i].p.in_per_s);
                fly_line(&flight, AFZ_KIND_VM, 0, AFZ_VM_SWAP_OUT, slow, (int64_t)out,
                         piece[i].p.out_per_s);
                stall += s * piece[i].p.stalled * 1e9;
                in += s * piece[i].p.in_per_s;
                out += s * piece[i].p.out_per_s;
        }
}

static void test_pages_that_keep_coming_back(void **state)
{
        (void)state;
        fly_paging((struct paging){0.6, 50e6, 50e6, FLY_GB(2)}, 30000, 60000, 300000);
        struct afz_case c = ended(AFZ_END_EXIT, 0);
        struct afz_outcome o = ask(afz_judge_swap_thrash, &c);
        assert_int_equal(o.verdicts, 1);
        const struct afz_verdict *v = &o.verdict[0];
        assert_string_equal(v->id, "swap-thrash");
        assert_int_equal(v->level, AFZ_LEVEL_WARN);
        assert_words(v->summary, "for 30 s it paged instead of working");
        assert_in_range(v->from_ms, 28000, 32000);
        assert_in_range(v->to_ms, 58000, 62000);
        assert_true(has_evidence(v, "2.0G lay in swap"));
        assert_true(has_evidence(v, "came back from swap"));
        c.facts.end = (struct afz_end){AFZ_END_STOPPED, -1};
        assert_int_equal(ask(afz_judge_swap_thrash, &c).verdict[0].level, AFZ_LEVEL_ACT);
}

static void test_most_of_a_short_run(void **state)
{
        (void)state;
        fly_paging((struct paging){0.9, 200e6, 200e6, FLY_GB(1)}, 10000, 40000, 60000);
        struct afz_case c = ended(AFZ_END_RUNNING, -1);
        assert_int_equal(ask(afz_judge_swap_thrash, &c).verdict[0].level, AFZ_LEVEL_ACT);
}

static void test_swap_that_is_no_harm(void **state)
{
        (void)state;
        static const struct {
                struct paging p;
                uint32_t ms;
                const char *why;
        } row[] = {
                {{0.6, 50e6, 50e6, FLY_GB(2)}, 4000, "too short"},
                {{0.05, 50e6, 50e6, FLY_GB(2)}, 60000, "nobody waits: it is zram"},
                {{0.6, 1e5, 50e6, FLY_GB(2)}, 60000, "goes out and stays out"},
                {{0.6, 50e6, 1e4, FLY_GB(2)}, 60000, "comes home"},
                {{0.6, 50e6, 50e6, FLY_MB(8)}, 60000, "next to nothing in swap"},
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(row); i++) {
                fly_paging(row[i].p, 30000, 30000 + row[i].ms, 300000);
                if (says(afz_judge_swap_thrash, AFZ_END_STOPPED, -1))
                        fail_msg("said though: %s", row[i].why);
                afz_flight_done(&flight);
        }
}

static void test_thrash_by_faults_alone(void **state)
{
        (void)state;
        struct fly_times all = fly_every(0, 60000, 1000);
        fly_line(&flight, AFZ_KIND_PSI, 0, AFZ_PSI_MEMORY_FULL, all, 5, 0.7e9);
        fly_flat(&flight, AFZ_KIND_JOB, 0, AFZ_JOB_SWAP, all, FLY_GB(1));
        assert_false(says(afz_judge_swap_thrash, AFZ_END_EXIT, 0));
        fly_line(&flight, AFZ_KIND_JOB, 0, AFZ_JOB_MAJOR_FAULTS, all, 5, 2000);
        struct afz_case c = ended(AFZ_END_EXIT, 0);
        struct afz_outcome o = ask(afz_judge_swap_thrash, &c);
        assert_int_equal(o.verdicts, 1);
        assert_true(o.verdict[0].confidence < 0.8);
}

/* ---- swap-insufficient ---- */

static void fly_swap(int64_t total, int64_t left)
{
        flight.head.swap_total_bytes = (uint64_t)total;
        fly_flat(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_SWAP_FREE, fly_every(0, 60000, 1000), left);
}

static struct afz_case pressed(void)
{
        struct afz_case c = ended(AFZ_END_STOPPED, -1);
        c.facts.stop_cause = AFZ_CAUSE_PRESSURE;
        return c;
}

static void test_no_swap_or_a_full_one(void **state)
{
        (void)state;
        fly_swap(0, 0);
        struct afz_case c = pressed();
        struct afz_outcome o = ask(afz_judge_swap_insufficient, &c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_WARN);
        assert_words(o.verdict[0].summary, "no swap");
        afz_flight_done(&flight);
        fly_swap(FLY_GB(2), FLY_MB(4));
        o = ask(afz_judge_swap_insufficient, &c);
        assert_int_equal(o.verdicts, 1);
        assert_words(o.verdict[0].summary, "swap (2.0G) was full");
}

static void test_swap_would_not_have_helped(void **state)
{
        (void)state;
        struct afz_case c = pressed();
        assert_int_equal(ask(afz_judge_swap_insufficient, &c).verdicts, 0); /* nothing recorded */
        fly_swap(FLY_GB(8), FLY_GB(4));
        assert_int_equal(ask(afz_judge_swap_insufficient, &c).verdicts, 0); /* there was enough */
        afz_flight_done(&flight);
        fly_swap(0, 0);
        assert_int_equal(ask(afz_judge_swap_insufficient, &c).verdicts, 1);
        c.facts.slope_bytes_per_s = 100 << 20; /* it would have filled any */
        assert_int_equal(ask(afz_judge_swap_insufficient, &c).verdicts, 0);
        c = pressed();
        c.facts.stop_cause = AFZ_CAUSE_BUDGET;
        assert_int_equal(ask(afz_judge_swap_insufficient, &c).verdicts, 0);
        c = ended(AFZ_END_EXIT, 0);
        assert_int_equal(ask(afz_judge_swap_insufficient, &c).verdicts, 0);
        c = pressed();
        struct afz_outcome o = {0};
        afz_outcome_add(&o, "leak", AFZ_LEVEL_ACT, 0.9);
        afz_judge_swap_insufficient(&c, &o);
        assert_int_equal(o.verdicts, 1);
}

/* ---- counts ---- */

static void fly_count(enum afz_metric metric, int64_t first, double per_s, uint32_t seconds)
{
        fly_named(&flight, AFZ_KIND_PROC, 4711, "python3", NULL, NULL);
        fly_line(&flight, AFZ_KIND_PROC, 4711, metric, fly_every(0, seconds * 1000, 1000), first,
                 per_s);
}

static void test_files_that_stay_open(void **state)
{
        (void)state;
        fly_count(AFZ_PROC_FDS, 20, 5, 60);
        fly_count(AFZ_PROC_FDS_LIMIT, 1024, 0, 60);
        struct afz_case c = ended(AFZ_END_RUNNING, -1);
        struct afz_outcome o = ask(afz_judge_fd_leak, &c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_WARN);
        assert_words(o.verdict[0].summary, "python3 (pid 4711) has ever more files open");
        assert_words(o.verdict[0].summary, "each minute");
        assert_true(has_evidence(&o.verdict[0], "it may have 1024, and has them in about"));
        assert_words(o.verdict[0].fix, "/proc/4711/fd");
        assert_true(says(afz_judge_fd_leak, AFZ_END_EXIT, 0));
}

static void test_files_at_their_limit(void **state)
{
        (void)state;
        fly_count(AFZ_PROC_FDS, 20, 0, 10);
        fly_point(&flight, AFZ_KIND_PROC, 4711, AFZ_PROC_FDS, 10000, 1020);
        fly_count(AFZ_PROC_FDS_LIMIT, 1024, 0, 10);
        struct afz_case c = ended(AFZ_END_EXIT, 1);
        struct afz_outcome o = ask(afz_judge_fd_leak, &c);
        assert_int_equal(o.verdicts, 1);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_ACT);
        assert_words(o.verdict[0].summary, "had 1020 files open, nearly all of the 1024");
        assert_words(o.verdict[0].fix, "while it runs again, `ls -l /proc/PID/fd`");
        assert_false(says(afz_judge_fd_leak, AFZ_END_EXIT, 0));
}

static int64_t pooled(uint32_t t_ms, const void *ctx)
{
        (void)ctx;
        return 20 + (int64_t)(2000 * fly_fill(t_ms, 3000));
}

static int64_t jumpy(uint32_t t_ms, const void *ctx)
{
        (void)ctx;
        return 300 + (int64_t)(200 * fly_noise(1, t_ms));
}

static void test_counts_that_are_fine(void **state)
{
        (void)state;
        struct fly_times minute = fly_every(0, 60000, 1000);
        static const struct {
                fly_formula formula;
                const char *why;
        } row[] = {{pooled, "a pool that fills"}, {jumpy, "up and down"}};
        for (size_t i = 0; i < AFZ_COUNT_OF(row); i++) {
                fly_column(&flight, AFZ_KIND_PROC, 1, AFZ_PROC_FDS, minute, row[i].formula, NULL);
                fly_column(&flight, AFZ_KIND_PROC, 1, AFZ_PROC_THREADS, minute, row[i].formula,
                           NULL);
                if (says(afz_judge_fd_leak, AFZ_END_EXIT, 1) ||
                    says(afz_judge_thread_leak, AFZ_END_EXIT, 1))
                        fail_msg("said though: %s", row[i].why);
                afz_flight_done(&flight);
        }
        fly_count(AFZ_PROC_FDS, 20, 0.5, 60);    /* thirty more */
        fly_count(AFZ_PROC_THREADS, 500, 2, 60); /* not much more than there were */
        assert_false(says(afz_judge_fd_leak, AFZ_END_EXIT, 1));
        assert_false(says(afz_judge_thread_leak, AFZ_END_EXIT, 1));
        afz_flight_done(&flight);
        fly_count(AFZ_PROC_FDS, 20, 50, 10); /* too short to tell */
        assert_false(says(afz_judge_fd_leak, AFZ_END_EXIT, 1));
}

static void test_threads_that_stay(void **state)
{
        (void)state;
        fly_count(AFZ_PROC_THREADS, 10, 2, 120);
        struct afz_case c = ended(AFZ_END_RUNNING, -1);
        struct afz_outcome o = ask(afz_judge_thread_leak, &c);
        assert_int_equal(o.verdicts, 1);
        assert_words(o.verdict[0].summary, "has ever more threads");
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_WARN);
        fly_named(&flight, AFZ_KIND_CGROUP, 0, "/docker/abc", NULL, NULL);
        fly_point(&flight, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_PIDS, 1000, 250);
        fly_point(&flight, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_PIDS_MAX, 1000, 256);
        o = ask(afz_judge_thread_leak, &c);
        assert_int_equal(o.verdict[0].level, AFZ_LEVEL_ACT);
        assert_true(has_evidence(&o.verdict[0], "it had 250 of the 256"));
}

/* Its last looks see it on its way out. */
static void test_a_leak_that_ends(void **state)
{
        (void)state;
        fly_count(AFZ_PROC_THREADS, 10, 4, 60);
        fly_count(AFZ_PROC_FDS, 10, 4, 60);
        for (uint32_t t = 59100; t < 60000; t += 300) {
                fly_point(&flight, AFZ_KIND_PROC, 4711, AFZ_PROC_THREADS, t, 1);
                fly_point(&flight, AFZ_KIND_PROC, 4711, AFZ_PROC_FDS, t, 3);
        }
        assert_true(says(afz_judge_thread_leak, AFZ_END_EXIT, 0));
        assert_true(says(afz_judge_fd_leak, AFZ_END_EXIT, 0));
}

static void test_threads_of_many_workers(void **state)
{
        (void)state;
        fly_named(&flight, AFZ_KIND_CGROUP, 0, "/docker/abc", NULL, NULL);
        fly_point(&flight, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_PIDS, 1000, 256);
        fly_point(&flight, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_PIDS_MAX, 1000, 256);
        assert_false(says(afz_judge_thread_leak, AFZ_END_EXIT, 1)); /* of what, is not known */
        fly_point(&flight, AFZ_KIND_JOB, 0, AFZ_JOB_PROCESSES, 1000, 8);
        assert_true(says(afz_judge_thread_leak, AFZ_END_EXIT, 1));
        assert_false(says(afz_judge_thread_leak, AFZ_END_EXIT, 0));
        fly_point(&flight, AFZ_KIND_JOB, 0, AFZ_JOB_PROCESSES, 2000, 250); /* processes */
        assert_false(says(afz_judge_thread_leak, AFZ_END_EXIT, 1));
}

/* ---- hostile ---- */

static const judge_function all_judges[] = {
        afz_judge_swap_thrash, afz_judge_swap_insufficient, afz_judge_log_growth,
        afz_judge_disk_full,   afz_judge_shm_full,          afz_judge_fd_leak,
        afz_judge_thread_leak,
};

static void ask_all(void)
{
        for (size_t i = 0; i < AFZ_COUNT_OF(all_judges); i++)
                for (int how = 0; how < AFZ_END_COUNT; how++)
                        for (int code = 0; code < 10; code++) {
                                struct afz_case c = ended((enum afz_end_how)how, code);
                                c.facts.stop_cause = AFZ_CAUSE_PRESSURE;
                                ask(all_judges[i], &c);
                        }
}

static void test_nothing_and_one_point(void **state)
{
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(all_judges); i++)
                assert_false(says(all_judges[i], AFZ_END_EXIT, 1));
        for (int kind = AFZ_KIND_HOST; kind < AFZ_KIND_COUNT; kind++)
                for (unsigned m = 0; m < afz_kind_table[kind].metrics; m++)
                        fly_point(&flight, (enum afz_kind)kind, 0,
                                  (enum afz_metric)((unsigned)kind << 8 | m), 10, 1000);
        ask_all();
}

static void test_absurd_values(void **state)
{
        (void)state;
        static const int64_t value[] = {INT64_MIN, INT64_MAX, -1, 0, 1, INT64_MAX, INT64_MIN};
        for (size_t shift = 0; shift < AFZ_COUNT_OF(value); shift++) {
                flight.head.swap_total_bytes = shift % 2 ? UINT64_MAX : 0;
                for (int kind = AFZ_KIND_HOST; kind < AFZ_KIND_COUNT; kind++)
                        for (unsigned m = 0; m < afz_kind_table[kind].metrics; m++)
                                for (uint32_t t = 0; t < 40; t++)
                                        fly_point(&flight, (enum afz_kind)kind, 0,
                                                  (enum afz_metric)((unsigned)kind << 8 | m),
                                                  t * 1000,
                                                  value[(t + m + shift) % AFZ_COUNT_OF(value)]);
                ask_all();
                afz_flight_done(&flight);
        }
}

/* Rising without end, to where numbers end; and readings at the end of time. */
static void test_the_ends_of_numbers(void **state)
{
        (void)state;
        for (int kind = AFZ_KIND_HOST; kind < AFZ_KIND_COUNT; kind++)
                for (unsigned m = 0; m < afz_kind_table[kind].metrics; m++)
                        for (uint32_t t = 0; t < 40; t++)
                                fly_span(&flight, (enum afz_kind)kind, 0,
                                         (enum afz_metric)((unsigned)kind << 8 | m), t * 1000, 1000,
                                         INT64_MIN, INT64_MAX,
                                         (int64_t)((uint64_t)INT64_MIN + UINT64_MAX / 40 * t));
        ask_all();
        afz_flight_done(&flight);
        fly_count(AFZ_PROC_FDS, 1, 1, 20);
        for (uint32_t i = 0; i < 20; i++)
                fly_point(&flight, AFZ_KIND_PROC, 4711, AFZ_PROC_FDS, UINT32_MAX - 20 + i,
                          (int64_t)i * 1000);
        ask_all();
}

static void test_gaps(void **state)
{
        (void)state;
        fly_named(&flight, AFZ_KIND_PROC, 4711, "python3", NULL, NULL);
        fly_line(&flight, AFZ_KIND_PROC, 4711, AFZ_PROC_FDS, fly_every(0, 10000, 1000), 10, 10);
        fly_line(&flight, AFZ_KIND_PROC, 4711, AFZ_PROC_FDS, fly_every(300000, 310000, 1000), 3000,
                 10);
        assert_false(says(afz_judge_fd_leak, AFZ_END_RUNNING, -1));
        fly_paging((struct paging){0.6, 50e6, 50e6, FLY_GB(2)}, 1000, 2000, 3000);
        fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_STALL, 600000, INT64_MAX);
        fly_point(&flight, AFZ_KIND_VM, 0, AFZ_VM_SWAP_IN, 600000, INT64_MAX);
        fly_point(&flight, AFZ_KIND_VM, 0, AFZ_VM_SWAP_OUT, 600000, INT64_MAX);
        assert_false(says(afz_judge_swap_thrash, AFZ_END_STOPPED, -1));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_a_rate_between_readings),
                TEST(test_a_rate_of_old_spans),
                TEST(test_no_rate_over_a_gap_or_a_reset),
                TEST(test_steady_is_not_slowing_down),
                TEST(test_pages_that_keep_coming_back),
                TEST(test_most_of_a_short_run),
                TEST(test_swap_that_is_no_harm),
                TEST(test_thrash_by_faults_alone),
                TEST(test_no_swap_or_a_full_one),
                TEST(test_swap_would_not_have_helped),
                TEST(test_files_that_stay_open),
                TEST(test_files_at_their_limit),
                TEST(test_counts_that_are_fine),
                TEST(test_threads_that_stay),
                TEST(test_a_leak_that_ends),
                TEST(test_threads_of_many_workers),
                TEST(test_nothing_and_one_point),
                TEST(test_absurd_values),
                TEST(test_the_ends_of_numbers),
                TEST(test_gaps),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
