/* How a run ended, with what a recording adds: whose limit a kill was, the kernel's words, the last
 * signs of a machine that went down. */
#include <signal.h>

#include "end_case.h"

/* ---- whose limit it was ---- */

#define MEMCG_LINE                                                                                 \
        "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:900kB, anon-rss:1kB"
#define GLOBAL_LINE "Out of memory: Killed process 4711 (python3) total-vm:900kB, anon-rss:1kB"

/* A job for a minute in a cgroup of ours, inside a container with 4 GB. */
static void fly_job(void)
{
        struct fly_times all = fly_every(0, 60000, 1000);
        strcpy(flight.head.run, "k3x9");
        flight.head.ram_total_bytes = 16 * GIB;
        fly_named(&flight, AFZ_KIND_PROC, 4711, "python3", "python3 train.py", NULL);
        fly_flat(&flight, AFZ_KIND_PROC, 4711, AFZ_PROC_RSS, all, FLY_GB(1));
        fly_named(&flight, AFZ_KIND_CGROUP, 0, "/docker/abc/antifreeze-k3x9/job", NULL, NULL);
        fly_flat(&flight, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_LEVEL, all, 0);
        fly_flat(&flight, AFZ_KIND_CGROUP, 0, AFZ_CGROUP_MAX, all, FLY_GB(8));
        fly_named(&flight, AFZ_KIND_CGROUP, 2, "/docker/abc", NULL, NULL);
        fly_flat(&flight, AFZ_KIND_CGROUP, 2, AFZ_CGROUP_LEVEL, all, 2);
        fly_flat(&flight, AFZ_KIND_CGROUP, 2, AFZ_CGROUP_MAX, all, FLY_GB(4));
        fly_flat(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_AVAILABLE, all, FLY_GB(8));
}

static void counter(enum afz_kind kind, uint64_t id, enum afz_metric metric, int64_t before,
                    int64_t after)
{
        fly_flat(&flight, kind, id, metric, fly_every(0, 59000, 1000), before);
        fly_point(&flight, kind, id, metric, 59500, after);
}

static void test_killed_by_the_machine(void **state)
{
        (void)state;
        fly_job();
        fly_event(&flight, 59000, AFZ_EVENT_OOM_KILL, 4711, GLOBAL_LINE);
        struct afz_case c = ended(AFZ_END_SIGNAL, SIGKILL);
        struct afz_outcome o = judge(&c);
        assert_string_equal(o.verdict[0].id, "oom-killed");
        assert_words(o.verdict[0].summary, "the whole machine ran out of memory");
        assert_words(o.verdict[0].summary, "python3 (pid 4711)");
        assert_true(has_evidence(&o.verdict[0], GLOBAL_LINE));
        assert_true(o.verdict[0].confidence > 0.9);
        /* The same when the guard saw it in our own cgroup: its counter counts all kills. */
        c.facts.end = (struct afz_end){AFZ_END_OOM_KILLED, SIGKILL};
        o = judge(&c);
        assert_words(o.verdict[0].summary, "the whole machine ran out of memory");
}

static void test_killed_at_the_containers_limit(void **state)
{
        (void)state;
        fly_job();
        counter(AFZ_KIND_CGROUP, 2, AFZ_CGROUP_EVENT_OOM, 3, 4);
        fly_event(&flight, 59000, AFZ_EVENT_OOM_KILL, 4711, MEMCG_LINE);
        struct afz_case c = ended(AFZ_END_OOM_KILLED, SIGKILL);
        struct afz_outcome o = judge(&c);
        assert_string_equal(o.verdict[0].id, "oom-killed");
        assert_words(o.verdict[0].summary, "the container or session around it (4.0G)");
        assert_true(has_evidence(&o.verdict[0], "/docker/abc"));
}

static void test_killed_at_our_own_limit(void **state)
{
        (void)state;
        fly_job();
        /* The kernel counts it there, and in all above. */
        counter(AFZ_KIND_CGROUP, 0, AFZ_CGROUP_EVENT_OOM, 0, 1);
        counter(AFZ_KIND_CGROUP, 2, AFZ_CGROUP_EVENT_OOM, 3, 4);
        fly_event(&flight, 59000, AFZ_EVENT_OOM_KILL, 4711, MEMCG_LINE);
        struct afz_case c = ended(AFZ_END_OOM_KILLED, SIGKILL);
        struct afz_outcome o = judge(&c);
        assert_words(o.verdict[0].summary, "at the limit that protects the machine (8.0G)");
        assert_true(has_evidence(&o.verdict[0], "Killed process 4711"));
}

/* Without a counter of its own (v1): the one that stands at its limit. */
static void test_killed_by_the_one_that_is_full(void **state)
{
        (void)state;
        struct fly_times end = fly_every(55000, 60000, 1000);
        fly_job();
        fly_flat(&flight, AFZ_KIND_CGROUP, 2, AFZ_CGROUP_NEED, end, FLY_GB(3.9));
        fly_flat(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, end, FLY_GB(3.5));
        struct afz_case c = ended(AFZ_END_OOM_KILLED, SIGKILL);
        assert_words(judge(&c).verdict[0].summary, "the container or session around it (4.0G)");
        /* Near our own limit, that is the nearer reason. */
        c.facts.hard_bytes = (uint64_t)FLY_GB(3.6);
        assert_words(judge(&c).verdict[0].summary, "at the limit that protects the machine");
}

static void test_a_kill_by_counters_alone(void **state)
{
        (void)state;
        static const struct {
                enum afz_kind kind;
                uint64_t id;
                enum afz_metric metric;
                const char *words;
        } row[] = {
                {AFZ_KIND_CGROUP, 0, AFZ_CGROUP_OOM_KILLS, "container or session"},
                {AFZ_KIND_CGROUP, 2, AFZ_CGROUP_OOM_KILLS, "container or session"},
                {AFZ_KIND_VM, 0, AFZ_VM_OOM_KILLS, "the whole machine"},
                {AFZ_KIND_HOLD, 0, AFZ_HOLD_OOM_KILLS, "at the limit that protects the machine"},
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(row); i++) {
                fly_job();
                counter(row[i].kind, row[i].id, row[i].metric, 7, 8);
                if (row[i].kind == AFZ_KIND_VM)
                        fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_AVAILABLE, 59400,
                                  FLY_MB(100));
                struct afz_case c = ended(AFZ_END_SIGNAL, SIGKILL);
                struct afz_outcome o = judge(&c);
                assert_string_equal(o.verdict[0].id, "oom-killed");
                assert_words(o.verdict[0].summary, row[i].words);
                assert_true(o.verdict[0].confidence <= 0.9);
                c.facts.end.code = SIGTERM; /* the kernel does not say please */
                if (row[i].id != 0 || row[i].kind == AFZ_KIND_VM)
                        assert_string_equal(judge(&c).verdict[0].id, "killed-externally");
                afz_flight_done(&flight);
        }
}

/* The machine's counter also counts those at the limits of others; a cgroup that is not ours, those
 * of others in it. */
static void test_a_kill_of_somebody_else(void **state)
{
        (void)state;
        fly_job();
        counter(AFZ_KIND_VM, 0, AFZ_VM_OOM_KILLS, 7, 8);
        struct afz_case c = ended(AFZ_END_SIGNAL, SIGKILL);
        assert_string_equal(judge(&c).verdict[0].id, "killed-externally");
        afz_flight_done(&flight);
        fly_job();
        counter(AFZ_KIND_CGROUP, 0, AFZ_CGROUP_OOM_KILLS, 7, 8);
        c.facts.end.code = SIGTERM;
        assert_string_equal(judge(&c).verdict[0].id, "oom-killed");
        strcpy(flight.head.run, "k3x8"); /* in the cgroup of another run */
        assert_string_equal(judge(&c).verdict[0].id, "killed-externally");
}

/* Whatever the kernel did at that time: we have ended it. */
static void test_its_time_was_over(void **state)
{
        (void)state;
        static const struct afz_end ends[] = {{AFZ_END_SIGNAL, SIGTERM},
                                              {AFZ_END_SIGNAL, SIGKILL},
                                              {AFZ_END_EXIT, 128 + SIGTERM}};
        fly_job();
        counter(AFZ_KIND_HOLD, 0, AFZ_HOLD_OOM_KILLS, 0, 1);
        counter(AFZ_KIND_CGROUP, 2, AFZ_CGROUP_OOM_KILLS, 7, 8);
        for (size_t i = 0; i < AFZ_COUNT_OF(ends); i++) {
                struct afz_case c = ended(ends[i].how, ends[i].code);
                c.facts.timed_out = true;
                struct afz_outcome o = judge(&c);
                assert_string_equal(o.verdict[0].id, "killed-externally");
                assert_words(o.verdict[0].summary, "its time was over, as --time asks");
                assert_int_equal(o.verdict[0].level, AFZ_LEVEL_OK);
                c.facts.timed_out = false;
                assert_string_equal(judge(&c).verdict[0].id, "oom-killed");
        }
        struct afz_case c = ended(AFZ_END_EXIT, 1); /* which ended in another way first */
        c.facts.timed_out = true;
        assert_string_equal(judge(&c).verdict[0].id, "oom-killed");
}

/* The counters are a second old when it ends: one that stood at the limit and was killed. */
static void test_a_kill_that_nobody_counted(void **state)
{
        (void)state;
        static const struct {
                double need_gb;
                int sig;
                const char *id;
        } row[] = {
                {3.9, SIGKILL, "oom-killed"},
                {3.7, SIGKILL, "killed-externally"},
                {3.9, SIGTERM, "killed-externally"},
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(row); i++) {
                fly_job();
                fly_flat(&flight, AFZ_KIND_CGROUP, 2, AFZ_CGROUP_NEED, fly_every(0, 59000, 1000),
                         FLY_GB(row[i].need_gb));
                struct afz_case c = ended(AFZ_END_SIGNAL, row[i].sig);
                struct afz_outcome o = judge(&c);
                assert_string_equal(o.verdict[0].id, row[i].id);
                assert_true(o.verdict[0].confidence <= 0.8);
                if (i == 0)
                        assert_words(o.verdict[0].summary, "around it (4.0G)");
                afz_flight_done(&flight);
        }
}

static void test_others_kills_are_not_ours(void **state)
{
        (void)state;
        fly_job();
        fly_event(&flight, 20000, AFZ_EVENT_OOM_KILL, 99,
                  "Out of memory: Killed process 99 (chrome) total-vm:1kB");
        counter(AFZ_KIND_VM, 0, AFZ_VM_OOM_KILLS, 1, 1);
        struct afz_case c = ended(AFZ_END_SIGNAL, SIGKILL);
        assert_string_equal(judge(&c).verdict[0].id, "killed-externally");
        c.facts.end = (struct afz_end){AFZ_END_EXIT, 1};
        assert_string_equal(judge(&c).verdict[0].id, "exception");
        /* Nor is one at the end, of another name. */
        fly_event(&flight, 59500, AFZ_EVENT_OOM_KILL, 99,
                  "Out of memory: Killed process 99 (chrome) total-vm:1kB");
        assert_string_equal(judge(&c).verdict[0].id, "exception");
        c.facts.end = (struct afz_end){AFZ_END_SIGNAL, SIGKILL};
        assert_string_equal(judge(&c).verdict[0].id, "killed-externally");
        /* One of our name at the very end is, although a container sees other pids. */
        fly_event(&flight, 59600, AFZ_EVENT_OOM_KILL, 88123,
                  "Out of memory: Killed process 88123 (python3) total-vm:1kB");
        assert_string_equal(judge(&c).verdict[0].id, "oom-killed");
        c.facts.end = (struct afz_end){AFZ_END_EXIT, 1}; /* which is not how a kill looks */
        assert_string_equal(judge(&c).verdict[0].id, "exception");
}

static void test_a_worker_that_was_killed(void **state)
{
        (void)state;
        fly_job();
        fly_named(&flight, AFZ_KIND_PROC, 4800, "pt_data_worker", NULL, NULL);
        fly_event(&flight, 30000, AFZ_EVENT_OOM_KILL, 4800,
                  "Out of memory: Killed process 4800 (pt_data_worker) total-vm:1kB");
        struct afz_case c = ended(AFZ_END_EXIT, 1);
        struct afz_outcome o = judge(&c);
        assert_string_equal(o.verdict[0].id, "oom-killed");
        assert_words(o.verdict[0].summary, "pt_data_worker (pid 4800)");
        assert_true(has_evidence(&o.verdict[0], "it then ended with exit status 1"));
        /* It coped: that is worth a line, not a verdict. */
        c.facts.end.code = 0;
        o = judge(&c);
        assert_string_equal(o.verdict[0].id, "clean");
        assert_true(has_evidence(&o.verdict[0], "Killed process 4800"));
}

static void test_what_ended_an_attempt_before(void **state)
{
        (void)state;
        fly_job();
        fly_event(&flight, 30000, AFZ_EVENT_OOM_KILL, 4711, GLOBAL_LINE);
        fly_mark(&flight, 10, AFZ_MARK_ATTEMPT, 1, NULL);
        struct afz_case c = ended(AFZ_END_EXIT, 1);
        assert_string_equal(judge(&c).verdict[0].id, "oom-killed");
        fly_mark(&flight, 40000, AFZ_MARK_ATTEMPT, 2, NULL);
        assert_string_equal(judge(&c).verdict[0].id, "exception");
}

/* ---- crashes, and guards of others ---- */

static void test_the_kernels_word_for_a_crash(void **state)
{
        (void)state;
        const char *line = "python3[4711]: segfault at 0 ip 0000 sp 0000 error 4 in libtorch.so";
        fly_job();
        struct afz_case c = ended(AFZ_END_SIGNAL, SIGSEGV);
        struct afz_outcome without = judge(&c);
        fly_event(&flight, 59900, AFZ_EVENT_SEGFAULT, 4711, line);
        struct afz_outcome with = judge(&c);
        assert_string_equal(with.verdict[0].id, "crash");
        assert_true(has_evidence(&with.verdict[0], "libtorch.so"));
        assert_true(with.verdict[0].confidence > without.verdict[0].confidence);
        assert_false(has_evidence(&without.verdict[0], "the kernel's log"));
}

static void test_another_program_crashed(void **state)
{
        (void)state;
        fly_job();
        fly_event(&flight, 59900, AFZ_EVENT_SEGFAULT, 99, "chrome[99]: segfault at 0 ip 0000");
        struct afz_case c = ended(AFZ_END_SIGNAL, SIGSEGV);
        struct afz_outcome o = judge(&c);
        assert_string_equal(o.verdict[0].id, "crash");
        assert_false(has_evidence(&o.verdict[0], "chrome"));
}

static void test_a_machine_that_was_short(void **state)
{
        (void)state;
        fly_job();
        struct afz_case c = ended(AFZ_END_SIGNAL, SIGTERM);
        fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_AVAILABLE, 59800, FLY_GB(1)); /* of 16 */
        assert_string_equal(judge(&c).verdict[0].fix, "");
        fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_AVAILABLE, 59900, FLY_MB(200));
        struct afz_outcome o = judge(&c);
        assert_string_equal(o.verdict[0].id, "killed-externally");
        assert_words(o.verdict[0].fix, "earlyoom");
        assert_true(has_evidence(&o.verdict[0], "200M"));
        c.facts.end.code = SIGINT;
        o = judge(&c);
        assert_string_equal(o.verdict[0].fix, "");
}

/* ---- a machine that went down ---- */

static void test_machine_lost(void **state)
{
        (void)state;
        struct afz_case c = ended(AFZ_END_LOST, -1);
        c.rebooted = true;
        struct afz_outcome o = judge(&c);
        assert_string_equal(o.verdict[0].id, "machine-lost");
        assert_string_equal(o.verdict[0].summary,
                            "the machine went down while the job was running");
        fly_job();
        o = judge(&c);
        assert_string_equal(o.verdict[0].summary,
                            "the machine went down while the job was running");
        assert_true(has_evidence(&o.verdict[0], "59 s after the start"));
        assert_false(has_evidence(&o.verdict[0], "the disk"));
}

/* A power cut costs a second, and what the disk takes: its worst time is told, as the writer had
 * it. The scout's own ticks are not the disk's. */
static void test_machine_lost_tells_the_disk(void **state)
{
        (void)state;
        struct afz_case c = ended(AFZ_END_LOST, -1);
        c.rebooted = true;
        fly_job();
        fly_named(&flight, AFZ_KIND_SELF, 10, "antifreeze", NULL, NULL);
        fly_point(&flight, AFZ_KIND_SELF, 10, AFZ_SELF_TICK, 1000, 900 * 1000000);
        assert_false(has_evidence(&judge(&c).verdict[0], "the disk"));
        fly_named(&flight, AFZ_KIND_SELF, 11, "afz-writer", NULL, NULL);
        fly_point(&flight, AFZ_KIND_SELF, 11, AFZ_SELF_TICK, 1000, 40 * 1000000);
        fly_point(&flight, AFZ_KIND_SELF, 11, AFZ_SELF_TICK, 11000, 119500000);
        fly_point(&flight, AFZ_KIND_SELF, 11, AFZ_SELF_TICK, 21000, 3 * 1000000);
        assert_true(has_evidence(&judge(&c).verdict[0],
                                 "59 s after the start; up to a second more is lost, and what the "
                                 "disk took to write: here up to 120 ms"));
}

static void test_signs_before_it_went_down(void **state)
{
        (void)state;
        struct fly_times end = fly_every(50000, 60000, 2000);
        struct afz_case c = ended(AFZ_END_LOST, -1);
        c.rebooted = true;
        fly_job();
        fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_AVAILABLE, 59900, FLY_MB(100));
        assert_words(judge(&c).verdict[0].summary, "it was out of memory");
        fly_named(&flight, AFZ_KIND_POWER, 1, "BAT0", NULL, NULL);
        fly_flat(&flight, AFZ_KIND_POWER, 1, AFZ_POWER_BATTERY, end, 300);
        fly_flat(&flight, AFZ_KIND_POWER, 1, AFZ_POWER_DISCHARGING, end, 1);
        assert_words(judge(&c).verdict[0].summary, "its battery was empty");
        fly_named(&flight, AFZ_KIND_THERMAL, 1, "x86_pkg_temp", NULL, NULL);
        fly_flat(&flight, AFZ_KIND_THERMAL, 1, AFZ_THERMAL_CRITICAL, end, 100000);
        fly_flat(&flight, AFZ_KIND_THERMAL, 1, AFZ_THERMAL_TEMP, end, 99000);
        assert_words(judge(&c).verdict[0].summary, "it was very hot");
        fly_event(&flight, 59000, AFZ_EVENT_MACHINE_CHECK, 0, "mce: [Hardware Error]: CPU 1");
        struct afz_outcome o = judge(&c);
        assert_words(o.verdict[0].summary, "the hardware had reported an error");
        assert_true(has_evidence(&o.verdict[0], "x86_pkg_temp was at 99 "));
        assert_true(has_evidence(&o.verdict[0], "the battery was at 3 %"));
}

static void test_no_signs_of_a_healthy_machine(void **state)
{
        (void)state;
        struct fly_times all = fly_every(0, 60000, 2000);
        struct afz_case c = ended(AFZ_END_LOST, -1);
        c.rebooted = true;
        fly_job();
        fly_flat(&flight, AFZ_KIND_THERMAL, 1, AFZ_THERMAL_CRITICAL, all, 100000);
        fly_flat(&flight, AFZ_KIND_THERMAL, 1, AFZ_THERMAL_TEMP, all, 70000);
        fly_flat(&flight, AFZ_KIND_THERMAL, 2, AFZ_THERMAL_TEMP, all, 99000); /* no critical */
        fly_flat(&flight, AFZ_KIND_POWER, 1, AFZ_POWER_BATTERY, all, 300);    /* on mains */
        fly_flat(&flight, AFZ_KIND_POWER, 1, AFZ_POWER_DISCHARGING, all, 0);
        assert_string_equal(judge(&c).verdict[0].summary,
                            "the machine went down while the job was running");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_killed_by_the_machine),
                TEST(test_killed_at_the_containers_limit),
                TEST(test_killed_at_our_own_limit),
                TEST(test_killed_by_the_one_that_is_full),
                TEST(test_a_kill_by_counters_alone),
                TEST(test_a_kill_of_somebody_else),
                TEST(test_its_time_was_over),
                TEST(test_a_kill_that_nobody_counted),
                TEST(test_others_kills_are_not_ours),
                TEST(test_a_worker_that_was_killed),
                TEST(test_what_ended_an_attempt_before),
                TEST(test_the_kernels_word_for_a_crash),
                TEST(test_another_program_crashed),
                TEST(test_a_machine_that_was_short),
                TEST(test_machine_lost),
                TEST(test_machine_lost_tells_the_disk),
                TEST(test_signs_before_it_went_down),
                TEST(test_no_signs_of_a_healthy_machine),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
