/* links: sense, fixture */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "reading.h"

#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

static const struct afz_fixture_row machine[] = {
        {"machine", "clock_ticks 100\n"},
        {"proc/stat", "cpu  100 20 30 400 50 6 7 8 0 0\n"
                      "cpu0 60 10 20 200 25 3 4 5 0 0\n"
                      "cpu2 40 10 10 200 25 3 3 3 0 0\n" /* cpu1 is offline */
                      "intr 123 0 1 2\nctxt 999\nbtime 1\nprocesses 77\n"
                      "procs_running 3\nprocs_blocked 1\nsoftirq 5 1 2\n"},
        {"proc/loadavg", "0.52 1.05 12.00 2/345 6789\n"},
        {"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "800000\n"},
        {"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3600000\n"},
        {"sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "4\n"},
        {"sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "900000\n"},
        {0},
};

static void test_figures(void **state)
{
        struct afz_fixture *f = afz_fixture_new(machine);
        struct afz_reading r;
        size_t fds = afz_fixture_open_fds();
        (void)state;
        assert_int_equal(afz_reading_open(&r, &afz_sense_cpu, afz_fixture_env(f), 0), 0);
        assert_int_equal(afz_reading_take(&r), 0);
        const struct afz_sample *all = afz_reading_of(&r, AFZ_KIND_CPU, AFZ_CPU_ALL);
        assert_int_equal(afz_value(all, AFZ_CPU_USER), 1200 * MS);
        assert_int_equal(afz_value(all, AFZ_CPU_NICE), 200 * MS);
        assert_int_equal(afz_value(all, AFZ_CPU_SYSTEM), 300 * MS);
        assert_int_equal(afz_value(all, AFZ_CPU_IDLE), 4000 * MS);
        assert_int_equal(afz_value(all, AFZ_CPU_IOWAIT), 500 * MS);
        assert_int_equal(afz_value(all, AFZ_CPU_IRQ), 130 * MS);
        assert_int_equal(afz_value(all, AFZ_CPU_STEAL), 80 * MS);
        assert_int_equal(afz_value(all, AFZ_CPU_CORES), 2);
        assert_int_equal(afz_value(all, AFZ_CPU_RUNNING), 3);
        assert_int_equal(afz_value(all, AFZ_CPU_BLOCKED), 1);
        assert_int_equal(afz_value(all, AFZ_CPU_FORKS), 77);
        assert_int_equal(afz_value(all, AFZ_CPU_SWITCHES), 999);
        assert_int_equal(afz_value(all, AFZ_CPU_LOAD1), 52);
        assert_int_equal(afz_value(all, AFZ_CPU_LOAD15), 1200);
        assert_int_equal(afz_value(all, AFZ_CPU_FREQUENCY), INT64_C(850000000));
        assert_int_equal(afz_value(all, AFZ_CPU_THROTTLES), 4);
        const struct afz_sample *core = afz_reading_of(&r, AFZ_KIND_CPU, 2);
        assert_string_equal(core->name, "cpu2");
        assert_int_equal(afz_value(core, AFZ_CPU_FREQUENCY), INT64_C(900000000));
        assert_int_equal(afz_value(core, AFZ_CPU_FREQUENCY_MAX), AFZ_ABSENT);
        assert_int_equal(afz_value(core, AFZ_CPU_THROTTLES), AFZ_ABSENT);
        assert_int_equal(afz_value(core, AFZ_CPU_LOAD1), AFZ_ABSENT);
        core = afz_reading_of(&r, AFZ_KIND_CPU, 0);
        assert_int_equal(afz_value(core, AFZ_CPU_THROTTLES), 4);
        assert_null(afz_reading_of(&r, AFZ_KIND_CPU, 1));
        afz_reading_done(&r);
        assert_int_equal(afz_fixture_open_fds(), fds);
        afz_fixture_free(f);
}

static void test_hostile_stat(void **state)
{
        static const struct {
                const char *text;
                size_t samples;
                int64_t user, cores, running;
        } cases[] = {
                {"", 1, AFZ_ABSENT, AFZ_ABSENT, AFZ_ABSENT},
                {"cpu  1 2 3 4", 1, AFZ_ABSENT, AFZ_ABSENT, AFZ_ABSENT},
                {"cpu  1 0 3 4\n", 1, 10 * MS, AFZ_ABSENT, AFZ_ABSENT},
                {"cpu  1 0 3\n", 1, AFZ_ABSENT, AFZ_ABSENT, AFZ_ABSENT},
                {"cpu  1 0 3 x\nprocs_running 2\n", 1, AFZ_ABSENT, AFZ_ABSENT, 2},
                {"cpu  1 0 3 4\ncpu0 1 2 3\ncpu1 1 2 3 4\n", 2, 10 * MS, 1, AFZ_ABSENT},
                {"cpu  1 0 3 4\ncpux 1 2 3 4\ncpu-1 1 2 3 4\ncpu0x 1 2 3 4\n", 1, 10 * MS,
                 AFZ_ABSENT, AFZ_ABSENT},
                {"cpu  1 0 3 4\ncpu99999 1 2 3 4\n", 1, 10 * MS, 1, AFZ_ABSENT},
                {"cpu  18446744073709551615 2 3 4\n", 1, AFZ_ABSENT, AFZ_ABSENT, AFZ_ABSENT},
                {"cpu  9223372036854775807 0 3 4\n", 1, AFZ_ABSENT, AFZ_ABSENT, AFZ_ABSENT},
                {"cpu  99999999999999999999 0 3 4\n", 1, AFZ_ABSENT, AFZ_ABSENT, AFZ_ABSENT},
                {"ctxt 5\ncpu  1 0 3 4\nprocs_running 1\n", 1, AFZ_ABSENT, AFZ_ABSENT, 1},
        };
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct afz_fixture *f = afz_fixture_new(machine);
                struct afz_reading r;
                afz_fixture_set(f, "proc/stat", cases[i].text);
                assert_int_equal(afz_reading_open(&r, &afz_sense_cpu, afz_fixture_env(f), 0), 0);
                assert_int_equal(afz_reading_take(&r), 0);
                const struct afz_sample *all = afz_reading_of(&r, AFZ_KIND_CPU, AFZ_CPU_ALL);
                if (r.batch->count != cases[i].samples ||
                    afz_value(all, AFZ_CPU_USER) != cases[i].user ||
                    afz_value(all, AFZ_CPU_CORES) != cases[i].cores ||
                    afz_value(all, AFZ_CPU_RUNNING) != cases[i].running)
                        fail_msg("'%s'", cases[i].text);
                afz_reading_done(&r);
                afz_fixture_free(f);
        }
}

static void test_missing(void **state)
{
        static const struct afz_fixture_row none[] = {{"proc/loadavg", "x\n"}, {0}};
        static const struct afz_fixture_row denied[] = {
                {"proc/loadavg", "x\n"}, {"not-read", "EACCES proc/stat\n"}, {0}};
        /* No /sys: times still come. */
        static const struct afz_fixture_row no_sys[] = {
                {"proc/stat", "cpu  1 0 3 4\ncpu0 1 0 3 4\n"}, {0}};
        struct afz_reading r;
        struct afz_fixture *f = afz_fixture_new(none);
        (void)state;
        assert_int_equal(afz_reading_open(&r, &afz_sense_cpu, afz_fixture_env(f), 0), -ENODATA);
        afz_reading_done(&r);
        afz_fixture_free(f);
        f = afz_fixture_new(denied);
        assert_int_equal(afz_reading_open(&r, &afz_sense_cpu, afz_fixture_env(f), 0), -EACCES);
        afz_reading_done(&r);
        afz_fixture_free(f);
        f = afz_fixture_new(no_sys);
        assert_int_equal(afz_reading_open(&r, &afz_sense_cpu, afz_fixture_env(f), 0), 0);
        assert_int_equal(afz_reading_take(&r), 0);
        const struct afz_sample *core = afz_reading_of(&r, AFZ_KIND_CPU, 0);
        assert_int_not_equal(afz_value(core, AFZ_CPU_USER), AFZ_ABSENT);
        assert_int_equal(afz_value(core, AFZ_CPU_FREQUENCY), AFZ_ABSENT);
        assert_int_equal(afz_value(afz_reading_of(&r, AFZ_KIND_CPU, AFZ_CPU_ALL), AFZ_CPU_LOAD1),
                         AFZ_ABSENT);
        afz_reading_done(&r);
        afz_fixture_free(f);
}

/* A clock that moves by itself: each look at a core's rate seems to take 10 ms, as it does on
 * kernels before 5.18. */
struct slow_clock {
        uint64_t now_ns;
        unsigned opens;
};

static uint64_t slow_now(void *ctx)
{
        return ((struct slow_clock *)ctx)->now_ns;
}

static void slow_open(void *ctx, enum afz_root root, enum afz_open_kind kind, const char *path,
                      int err)
{
        struct slow_clock *c = ctx;
        (void)kind, (void)err;
        if (root != AFZ_ROOT_SYS || !strstr(path, "scaling_cur_freq"))
                return;
        c->now_ns += 10 * MS;
        c->opens++;
}

/* 64 such cores would make one tick 640 ms long: they take turns instead, and all get theirs. */
static void test_slow_cores_take_turns(void **state)
{
        enum { CORES = 64 };
        static char text[CORES * 32];
        struct afz_fixture *f = afz_fixture_new(machine);
        struct afz_env env = *afz_fixture_env(f);
        struct slow_clock clock = {.now_ns = S};
        struct afz_reading r;
        size_t n = (size_t)snprintf(text, sizeof text, "cpu  1 0 3 4\n");
        (void)state;
        for (int i = 0; i < CORES; i++) {
                char path[96];
                snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq",
                         i);
                afz_fixture_set(f, path, "1000\n");
                n += (size_t)snprintf(text + n, sizeof text - n, "cpu%d 1 0 3 4\n", i);
        }
        afz_fixture_set(f, "proc/stat", text);
        env.now_ns = slow_now;
        env.on_open = slow_open;
        env.ctx = &clock;
        assert_int_equal(afz_reading_open(&r, &afz_sense_cpu, &env, 0), 0);
        for (int round = 0; round < CORES + 1; round++) {
                clock.now_ns += 200 * MS;
                clock.opens = 0;
                assert_int_equal(afz_reading_take(&r), 0);
                assert_true(clock.opens <= 1);
        }
        for (uint64_t i = 0; i < CORES; i++)
                assert_int_equal(afz_value(afz_reading_of(&r, AFZ_KIND_CPU, i), AFZ_CPU_FREQUENCY),
                                 1000000);
        afz_reading_done(&r);
        afz_fixture_free(f);
}

/* Where they are quick, all are read at once, and not again within the second. */
static void test_quick_cores(void **state)
{
        struct afz_fixture *f = afz_fixture_new(machine);
        struct afz_reading r;
        (void)state;
        assert_int_equal(afz_reading_open(&r, &afz_sense_cpu, afz_fixture_env(f), 0), 0);
        assert_int_equal(afz_reading_take(&r), 0);
        afz_fixture_set(f, "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "5\n");
        afz_fixture_set(f, "sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "7\n");
        afz_fixture_advance(f, S - 1);
        assert_int_equal(afz_reading_take(&r), 0);
        assert_int_equal(afz_value(afz_reading_of(&r, AFZ_KIND_CPU, 0), AFZ_CPU_FREQUENCY),
                         800000000);
        afz_fixture_advance(f, 1);
        assert_int_equal(afz_reading_take(&r), 0);
        assert_int_equal(afz_value(afz_reading_of(&r, AFZ_KIND_CPU, 0), AFZ_CPU_FREQUENCY), 5000);
        assert_int_equal(afz_value(afz_reading_of(&r, AFZ_KIND_CPU, 2), AFZ_CPU_FREQUENCY), 7000);
        afz_reading_done(&r);
        afz_fixture_free(f);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_figures),     cmocka_unit_test(test_hostile_stat),
                cmocka_unit_test(test_missing),     cmocka_unit_test(test_slow_cores_take_turns),
                cmocka_unit_test(test_quick_cores),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
