/* links: sense, fixture */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "count_of.h"
#include "job_fixture.h"

static const char rollup[] =
        "55d0-7ffd ---p 00000000 00:00 0 [rollup]\nRss: 400 kB\nPss: 150 kB\n"
        "Pss_Dirty: 1 kB\nPss_Anon: 120 kB\nPss_File: 20 kB\nPss_Shmem: 10 kB\n"
        "Private_Dirty: 30 kB\nSwapPss: 5 kB\n";

/* Need between two readings of PSS, in KiB. Anonymous RSS was 240, swap 7, at the reading. */
static void test_need_between_pss_readings(void **state)
{
        static const struct {
                const char *what;
                int anon_pages, swap_kib;
                int64_t need_kib;
        } cases[] = {
                {"nothing happened", 60, 7, 135},
                {"grew by 40 KiB", 70, 7, 175},
                {"40 KiB went to swap: nothing was freed", 50, 47, 135},
                {"gave all back: the shared-memory part is left", 0, 0, 10},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                struct afz_watched w;
                struct afz_reading r;
                char text[128];
                start(&w, &r);
                afz_watched_set(&w, ROOT, "smaps_rollup", rollup);
                take(&w, &r, 0);
                assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_PSS), 150 * KIB);
                assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_NEED), 135 * KIB);
                assert_int_equal(afz_value(job_of(&r), AFZ_JOB_PSS), 150 * KIB);
                assert_int_equal(afz_value(job_of(&r), AFZ_JOB_SWAP), 5 * KIB);
                afz_fixture_break(w.fixture, "proc/100/smaps_rollup"); /* no second reading */
                snprintf(text, sizeof text, "1000 %d 40 1 0 50 0\n", cases[i].anon_pages + 40);
                afz_watched_set(&w, ROOT, "statm", text);
                snprintf(text, sizeof text, "VmSwap: %d kB\n", cases[i].swap_kib);
                afz_watched_set(&w, ROOT, "status", text);
                take(&w, &r, 3 * S);
                if (afz_value(proc_of(&r, ROOT), AFZ_PROC_NEED) != cases[i].need_kib * KIB)
                        fail_msg("%s: %lld", cases[i].what,
                                 (long long)afz_value(proc_of(&r, ROOT), AFZ_PROC_NEED) / KIB);
                finish(&w, &r);
        }
}

static uint64_t moving_now(void *ctx)
{
        return ((struct afz_watched *)ctx)->now_ns += MS;
}

/* A reading takes time, so that it ends after its tick began. */
static void test_age_of_pss(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        w.env.now_ns = moving_now;
        afz_watched_set(&w, ROOT, "smaps_rollup", rollup);
        take(&w, &r, 0);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_PSS), 150 * KIB);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_PSS_AGE), 0);
        take(&w, &r, 500 * MS);
        assert_in_range(afz_value(proc_of(&r, ROOT), AFZ_PROC_PSS_AGE), 500 * MS, 550 * MS);
        finish(&w, &r);
}

/* When PSS is read again: what the kernel would say then is told by its text, in KiB. */
static void test_pace_of_pss(void **state)
{
        static const struct {
                const char *what, *statm;
                uint64_t after_ns;
                bool again;
        } steps[] = {
                {"nothing moved", "1000 100 40 1 0 50 0\n", 2 * S, false},
                {"it grew by itself: that is in need", "1000 110 40 1 0 50 0\n", 2 * S, false},
                {"and after a while", "1000 110 40 1 0 50 0\n", 2 * S, true},
                {"shared pages came: whose are they?", "1000 120 50 1 0 50 0\n", 2 * S, true},
                {"shared pages went", "1000 110 40 1 0 50 0\n", 2 * S, true},
                {"no more often than once a second", "1000 130 60 1 0 50 0\n", S / 2, false},
                {"but then", "1000 130 60 1 0 50 0\n", S, true},
                {"64 MiB in two seconds", "99999 16600 60 1 0 50 0\n", 2 * S, true},
                {"half of a hundredth is noise", "99999 16700 60 1 0 50 0\n", 9 * S, false},
                {"half a minute", "99999 16700 60 1 0 50 0\n", 30 * S, true},
        };
        struct afz_watched w;
        struct afz_reading r;
        char text[64];
        (void)state;
        start(&w, &r);
        afz_watched_set(&w, ROOT, "smaps_rollup", rollup);
        take(&w, &r, 0);
        for (size_t i = 0; i < AFZ_COUNT_OF(steps); i++) {
                int64_t before = afz_value(proc_of(&r, ROOT), AFZ_PROC_PSS);
                snprintf(text, sizeof text, "Pss: %zu kB\nPss_Anon: 1 kB\nPss_Shmem: 1 kB\n",
                         1000 + i);
                afz_watched_set(&w, ROOT, "smaps_rollup", text);
                afz_watched_set(&w, ROOT, "statm", steps[i].statm);
                take(&w, &r, steps[i].after_ns);
                int64_t now = afz_value(proc_of(&r, ROOT), AFZ_PROC_PSS);
                if (now != (steps[i].again ? (int64_t)(1000 + i) * KIB : before))
                        fail_msg("%s: %lld", steps[i].what, (long long)now / KIB);
        }
        finish(&w, &r);
}

/* After exec() nothing of the old program's shares is left. */
static void test_pss_is_forgotten_on_exec(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        afz_watched_set(&w, ROOT, "smaps_rollup", rollup);
        take(&w, &r, 0);
        afz_fixture_remove(w.fixture, "proc/100/smaps_rollup");
        afz_watched_stat(
                &w, (struct afz_fake_proc){.pid = ROOT, .ppid = 1, .start = 5, .comm = "other"});
        take(&w, &r, 100 * MS);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_PSS), AFZ_ABSENT);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_NEED), 60 * PAGE + 67 * KIB);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_PSS), AFZ_ABSENT);
        finish(&w, &r);
}

/* One of two has no PSS: the job's is unknown, and need a bound. */
static void test_partial_pss(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        add_process(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9});
        afz_watched_set(&w, ROOT, "smaps_rollup", rollup);
        take(&w, &r, 0);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_PSS), AFZ_ABSENT);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_NEED_BOUND), 1);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_NEED), 135 * KIB + 60 * PAGE + 67 * KIB);
        afz_watched_set(&w, 110, "smaps_rollup", rollup);
        take(&w, &r, 2 * S);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_PSS), 300 * KIB);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_NEED_BOUND), 0);
        finish(&w, &r);
}

static void test_clock_jumps(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        afz_watched_set(&w, ROOT, "smaps_rollup", rollup);
        w.now_ns = 1000 * S;
        take(&w, &r, 0);
        w.now_ns = 5 * S; /* back: figures still come, and no age below zero */
        take(&w, &r, 0);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_RSS), 100 * PAGE);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_PSS_AGE), AFZ_ABSENT);
        w.now_ns = UINT64_MAX / 2;
        take(&w, &r, 0);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_RSS), 100 * PAGE);
        finish(&w, &r);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_need_between_pss_readings),
                cmocka_unit_test(test_age_of_pss),
                cmocka_unit_test(test_pace_of_pss),
                cmocka_unit_test(test_pss_is_forgotten_on_exec),
                cmocka_unit_test(test_partial_pss),
                cmocka_unit_test(test_clock_jumps),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
