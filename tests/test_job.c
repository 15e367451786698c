/* links: sense, fixture */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "count_of.h"
#include "job_fixture.h"
#include "job_proc.h"
#include "role.h"

struct want {
        enum afz_metric metric;
        int64_t value;
};

static void check(const struct afz_sample *s, const struct want *want, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (afz_value(s, want[i].metric) != want[i].value)
                        fail_msg("%s is %lld", afz_metric_info(want[i].metric)->name,
                                 (long long)afz_value(s, want[i].metric));
}

static void test_figures(void **state)
{
        static const struct want of_proc[] = {
                {AFZ_PROC_PPID, 1},
                {AFZ_PROC_DEPTH, 0},
                {AFZ_PROC_ORPHAN, 0},
                {AFZ_PROC_STATE, 'S'},
                {AFZ_PROC_ROLE, AFZ_ROLE_RANK},
                {AFZ_PROC_RANK, 3},
                {AFZ_PROC_THREADS, 3},
                {AFZ_PROC_USER, 100 * MS},
                {AFZ_PROC_SYSTEM, 200 * MS},
                {AFZ_PROC_MINOR_FAULTS, 7},
                {AFZ_PROC_MAJOR_FAULTS, 8},
                {AFZ_PROC_IO_WAIT, AFZ_ABSENT}, /* 0 is what kernels print that do not count it */
                {AFZ_PROC_NICE, 0},
                {AFZ_PROC_VSIZE, 1000 * PAGE},
                {AFZ_PROC_RSS, 100 * PAGE},
                {AFZ_PROC_RSS_SHARED, 40 * PAGE},
                {AFZ_PROC_RSS_ANON, 60 * PAGE},
                {AFZ_PROC_RSS_FILE, 100 * KIB},
                {AFZ_PROC_RSS_SHMEM, 60 * KIB},
                {AFZ_PROC_RSS_PEAK, 500 * KIB},
                {AFZ_PROC_SWAP, 7 * KIB},
                {AFZ_PROC_LOCKED, 1 * KIB},
                {AFZ_PROC_PINNED, 2 * KIB},
                {AFZ_PROC_PAGE_TABLES, 3 * KIB},
                {AFZ_PROC_SWITCHES, 11},
                {AFZ_PROC_PREEMPTIONS, 12},
                {AFZ_PROC_PSS, AFZ_ABSENT},
                {AFZ_PROC_PSS_AGE, AFZ_ABSENT},
                {AFZ_PROC_NEED, 60 * PAGE + 60 * KIB + 7 * KIB}, /* no PSS: the upper bound */
                {AFZ_PROC_READ, 300},
                {AFZ_PROC_WRITTEN, 400},
                {AFZ_PROC_CANCELLED, 50},
                {AFZ_PROC_READ_CALLS, 1000},
                {AFZ_PROC_WRITE_CALLS, 2000},
                {AFZ_PROC_FDS, 2},
                {AFZ_PROC_FDS_LIMIT, 1024},
                {AFZ_PROC_OOM_ADJ, -500},
                {AFZ_PROC_THREADS_RUNNING, AFZ_ABSENT}, /* no task folder */
        };
        static const struct want of_job[] = {
                {AFZ_JOB_PROCESSES, 1},
                {AFZ_JOB_ORPHANS, 0},
                {AFZ_JOB_UNREADABLE, 0},
                {AFZ_JOB_THREADS, 3},
                {AFZ_JOB_RUNNING, 0},
                {AFZ_JOB_ZOMBIES, 0},
                {AFZ_JOB_RSS, 100 * PAGE},
                {AFZ_JOB_ANON, 60 * PAGE},
                {AFZ_JOB_PSS, AFZ_ABSENT},
                {AFZ_JOB_CPU, 300 * MS},
                {AFZ_JOB_READ, 300},
                {AFZ_JOB_FDS, 2},
                {AFZ_JOB_SWAP, 7 * KIB},
                {AFZ_JOB_NEED_BOUND, 0},
                {AFZ_JOB_NEED, 60 * PAGE + 67 * KIB},
        };
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        take(&w, &r, 0);
        check(proc_of(&r, ROOT), of_proc, AFZ_COUNT_OF(of_proc));
        check(job_of(&r), of_job, AFZ_COUNT_OF(of_job));
        assert_int_equal(proc_of(&r, ROOT)->subject.start, 5);
        assert_string_equal(proc_of(&r, ROOT)->name, "python3");
        assert_string_equal(proc_of(&r, ROOT)->detail, "python3 train.py");
        assert_string_equal(proc_of(&r, ROOT)->note, "futex_wait_queue");
        finish(&w, &r);
}

static void test_threads(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        for (int i = 0; i < 4; i++) {
                char path[64], text[256];
                snprintf(path, sizeof path, "task/%d/stat", ROOT + i);
                snprintf(text, sizeof text,
                         "%d (x) %c 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 1 1 1 1 1 1 1 1 0 0 0 "
                         "0 0 0 0 "
                         "-1 0 0 0 0 0 0\n",
                         ROOT + i, "RRDS"[i]);
                afz_watched_set(&w, ROOT, path, text);
        }
        take(&w, &r, 0);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_THREADS_RUNNING), 2);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_THREADS_DISK), 1);
        /* More than are looked at one by one: not the old number, and no part of the new one. */
        for (int i = 4; i < 600; i++) {
                char path[64];
                snprintf(path, sizeof path, "task/%d/stat", ROOT + i);
                afz_watched_set(&w, ROOT, path, "x");
        }
        w.needle = "/task/";
        take(&w, &r, 5 * S);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_THREADS_RUNNING), AFZ_ABSENT);
        assert_true(w.needles > 0 && w.needles <= 520);
        finish(&w, &r);
}

/* Before 6.2 open files are counted by hand, and only so many. */
static void test_many_files_counted_by_hand(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        char path[64];
        (void)state;
        start(&w, &r);
        for (int i = 2; i < 4096; i++) {
                snprintf(path, sizeof path, "fd/%d", i);
                afz_watched_set(&w, ROOT, path, "");
        }
        take(&w, &r, 0);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_FDS), 4096);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_FDS), 4096);
        afz_watched_set(&w, ROOT, "fd/4096", "");
        take(&w, &r, 5 * S);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_FDS), AFZ_ABSENT);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_FDS), AFZ_ABSENT); /* a part is no sum */
        finish(&w, &r);
}

static void test_zombie(void **state)
{
        static const struct want gone[] = {
                {AFZ_PROC_STATE, 'Z'},          {AFZ_PROC_RSS, AFZ_ABSENT},
                {AFZ_PROC_NEED, AFZ_ABSENT},    {AFZ_PROC_READ, AFZ_ABSENT},
                {AFZ_PROC_FDS, AFZ_ABSENT},     {AFZ_PROC_SWAP, AFZ_ABSENT},
                {AFZ_PROC_ROLE, AFZ_ROLE_RANK},
        };
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        take(&w, &r, 0);
        afz_watched_stat(&w, (struct afz_fake_proc){.pid = ROOT,
                                                    .ppid = 1,
                                                    .start = 5,
                                                    .state = 'Z',
                                                    .utime = 11,
                                                    .stime = 20,
                                                    .comm = "python3"});
        afz_watched_set(&w, ROOT, "statm", "0 0 0 0 0 0 0\n");
        afz_watched_set(&w, ROOT, "cmdline", "");
        take(&w, &r, 60 * S);
        check(proc_of(&r, ROOT), gone, AFZ_COUNT_OF(gone));
        assert_string_equal(proc_of(&r, ROOT)->detail, "python3 train.py"); /* what it was */
        assert_null(proc_of(&r, ROOT)->note);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_ZOMBIES), 1);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_UNREADABLE), 0);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_RSS), AFZ_ABSENT);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_CPU), 310 * MS);
        finish(&w, &r);
}

/* It died between its stat and its statm: no memory is not 0 bytes of it. */
static void test_exits_while_we_read(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        afz_watched_set(&w, ROOT, "statm", "0 0 0 0 0 0 0\n");
        take(&w, &r, 0);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_RSS), AFZ_ABSENT);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_NEED), AFZ_ABSENT);
        /* The kernel's counters lag: more shared than resident is next to nothing anonymous. */
        afz_watched_set(&w, ROOT, "statm", "1000 40 41 1 0 50 0\n");
        take(&w, &r, S);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_RSS_ANON), 0);
        afz_watched_set(&w, ROOT, "statm", "9999999999999999999 9999999999999999999 1\n");
        take(&w, &r, S);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_VSIZE), AFZ_ABSENT);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_RSS_ANON), AFZ_ABSENT);
        finish(&w, &r);
}

/* Alive, but we could not read it (no descriptor left, say): it stays in sight without figures, and
 * sums that would lack it are absent. */
static void test_unreadable_member(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        add_process(&w,
                    (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9, .comm = "kid"});
        take(&w, &r, 0);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_RSS), 200 * PAGE);
        afz_watched_set(&w, 110, "stat", "110 (kid) S 100 1 1 0 -1 0 0"); /* cut */
        take(&w, &r, S);
        assert_non_null(proc_of(&r, 110));
        assert_string_equal(proc_of(&r, 110)->name, "kid");
        assert_int_equal(afz_value(proc_of(&r, 110), AFZ_PROC_STATE), AFZ_ABSENT);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_PROCESSES), 2);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_UNREADABLE), 1);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_RSS), AFZ_ABSENT);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_NEED), AFZ_ABSENT);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_THREADS), AFZ_ABSENT);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_DISK_WAIT), AFZ_ABSENT);
        afz_watched_stat(
                &w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9, .comm = "kid"});
        take(&w, &r, S);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_RSS), 200 * PAGE);
        afz_watched_set(&w, 110, "statm", "1000 100"); /* cut: only its memory is missing */
        take(&w, &r, S);
        assert_int_equal(afz_value(proc_of(&r, 110), AFZ_PROC_STATE), 'S');
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_DISK_WAIT), 0);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_RSS), AFZ_ABSENT);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_NEED), AFZ_ABSENT);
        finish(&w, &r);
}

/* Another user's process: io, fd, environ and smaps_rollup are closed, stat and statm are not. */
static void test_another_users(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        add_process(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9, .utime = 100});
        afz_fixture_remove(w.fixture, "proc/110/fd");
        afz_fixture_remove(w.fixture, "proc/110/io");
        afz_fixture_remove(w.fixture, "proc/110/environ");
        afz_fixture_set(w.fixture, "not-read",
                        "EACCES proc/110/io\nEACCES proc/110/fd\nEACCES proc/110/environ\n"
                        "EACCES proc/110/smaps_rollup\n");
        take(&w, &r, 0);
        const struct afz_sample *s = proc_of(&r, 110);
        assert_int_equal(afz_value(s, AFZ_PROC_READ), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_PROC_FDS), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_PROC_RANK), AFZ_ABSENT);
        assert_int_equal(afz_value(s, AFZ_PROC_RSS), 100 * PAGE);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_UNREADABLE), 1);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_FDS), AFZ_ABSENT);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_CPU), 1300 * MS);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_NEED_BOUND), 1);
        finish(&w, &r);
}

static void test_vanishes_between_ticks(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        add_process(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9, .utime = 50});
        take(&w, &r, 0);
        size_t fds = afz_fixture_open_fds();
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_CPU), 800 * MS);
        /* The kernel says -ESRCH of the files that we hold; a fixture says so by the start time
         * of whoever has the number now. */
        afz_watched_stat(&w,
                         (struct afz_fake_proc){.pid = 110, .ppid = 1, .start = 77, .utime = 9999});
        take(&w, &r, S);
        assert_null(proc_of(&r, 110));
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_PROCESSES), 1);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_RSS), 100 * PAGE);
        /* What the dead have done is done: a sum of the living would go backwards. */
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_CPU), 800 * MS);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_READ), 600);
        /* And their files are closed, though nobody has taken the place. */
        assert_int_equal(afz_fixture_open_fds(), fds - 3);
        finish(&w, &r);
}

/* The number comes back as a child of the job: another subject, with counters of its own. */
static void test_number_used_again(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        add_process(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9, .utime = 50});
        take(&w, &r, 0);
        struct afz_subject old = proc_of(&r, 110)->subject;
        add_process(&w, (struct afz_fake_proc){
                                .pid = 110, .ppid = ROOT, .start = 77, .utime = 3, .comm = "new"});
        take(&w, &r, S);
        const struct afz_sample *s = proc_of(&r, 110);
        assert_false(afz_subject_same(&s->subject, &old));
        assert_string_equal(s->name, "new");
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_CPU), 830 * MS);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_PROCESSES), 2);
        finish(&w, &r);
}

static void test_all_gone(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        take(&w, &r, 0);
        afz_watched_stat(&w, (struct afz_fake_proc){.pid = ROOT, .ppid = 1, .start = 99});
        take(&w, &r, S);
        take(&w, &r, S);
        assert_int_equal(r.batch->count, 1);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_PROCESSES), 0);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_RSS), AFZ_ABSENT);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_CPU), 300 * MS);
        finish(&w, &r);
}

static void test_orphan(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        add_process(&w, (struct afz_fake_proc){.pid = 110, .ppid = ROOT, .start = 9});
        take(&w, &r, 0);
        assert_int_equal(afz_value(proc_of(&r, 110), AFZ_PROC_ORPHAN), 0);
        afz_watched_stat(&w, (struct afz_fake_proc){.pid = 110, .ppid = 1, .start = 9});
        take(&w, &r, S);
        assert_int_equal(afz_value(proc_of(&r, 110), AFZ_PROC_ORPHAN), 1);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_ORPHAN), 0);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_ORPHANS), 1);
        finish(&w, &r);
}

/* A name that is not printable, or longer than we show, is no reason to read everything in every
 * tick. */
static void test_paces(void **state)
{
        static const char *const names[] = {"python3", "a\x01 b)",
                                            "a\\nb\\nc\\nd\\ne\\nf\\ng\\nh (", "foo) Z "};
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(names); i++) {
                struct afz_watched w;
                struct afz_reading r;
                start(&w, &r);
                afz_watched_stat(&w, (struct afz_fake_proc){
                                             .pid = ROOT, .ppid = 1, .start = 5, .comm = names[i]});
                take(&w, &r, 0);
                w.needle = "/status";
                for (int tick = 0; tick < 100; tick++)
                        take(&w, &r, 100 * MS);
                if (w.needles < 8 || w.needles > 11)
                        fail_msg("'%s': status was read %u times in 10 s", names[i], w.needles);
                finish(&w, &r);
        }
}

/* The command line lies in the job's memory: read at birth, on a new name, and ever less often. */
static void test_command_line_is_left_alone(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        w.needle = "/cmdline";
        for (int tick = 0; tick < 3000; tick++) /* 5 min */
                take(&w, &r, 100 * MS);
        assert_true(w.needles >= 10 && w.needles <= 16);
        w.needles = 0;
        afz_fixture_set_bytes(w.fixture, "proc/100/cmdline", "./next", 7);
        afz_watched_stat(
                &w, (struct afz_fake_proc){.pid = ROOT, .ppid = 1, .start = 5, .comm = "next"});
        take(&w, &r, 100 * MS);
        assert_int_equal(w.needles, 1);
        assert_string_equal(proc_of(&r, ROOT)->detail, "./next");
        finish(&w, &r);
}

static void test_stale_facts_go(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        start(&w, &r);
        take(&w, &r, 0);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_SWAP), 7 * KIB);
        afz_fixture_break(w.fixture, "proc/100/status");
        afz_fixture_remove(w.fixture, "proc/100/fd");
        take(&w, &r, 3 * S);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_SWAP), AFZ_ABSENT);
        assert_int_equal(afz_value(proc_of(&r, ROOT), AFZ_PROC_FDS), AFZ_ABSENT);
        finish(&w, &r);
}

static void test_pace_of_slow_facts(void **state)
{
        (void)state;
        assert_int_equal(afz_proc_slow_ns(0), S);
        assert_int_equal(afz_proc_slow_ns(16), S);
        assert_int_equal(afz_proc_slow_ns(32), 2 * S);
        assert_int_equal(afz_proc_slow_ns(8192), 5 * S);
}

static void test_whole_machine(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        afz_watched_init(&w, afz_fixture_new(job_machine));
        add_process(&w, (struct afz_fake_proc){.pid = 1, .start = 1});
        add_process(&w, (struct afz_fake_proc){.pid = 70, .ppid = 1, .start = 2});
        assert_int_equal(afz_reading_open(&r, &afz_sense_job, &w.env, 0), 0);
        take(&w, &r, 0);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_PROCESSES), 2);
        assert_int_equal(afz_value(job_of(&r), AFZ_JOB_ORPHANS), 0);
        w.now_ns += S - 1;
        assert_int_equal(afz_reading_take(&r), -EAGAIN);
        w.now_ns += 1;
        assert_int_equal(afz_reading_take(&r), 0);
        finish(&w, &r);
}

static void test_no_such_process(void **state)
{
        struct afz_watched w;
        struct afz_reading r;
        (void)state;
        afz_watched_init(&w, afz_fixture_new(job_machine));
        size_t fds = afz_fixture_open_fds();
        assert_int_equal(afz_reading_open(&r, &afz_sense_job, &w.env, ROOT), -ESRCH);
        afz_reading_done(&r);
        assert_int_equal(afz_fixture_open_fds(), fds);
        afz_watched_done(&w);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_figures),
                cmocka_unit_test(test_threads),
                cmocka_unit_test(test_many_files_counted_by_hand),
                cmocka_unit_test(test_zombie),
                cmocka_unit_test(test_exits_while_we_read),
                cmocka_unit_test(test_unreadable_member),
                cmocka_unit_test(test_another_users),
                cmocka_unit_test(test_vanishes_between_ticks),
                cmocka_unit_test(test_number_used_again),
                cmocka_unit_test(test_all_gone),
                cmocka_unit_test(test_orphan),
                cmocka_unit_test(test_paces),
                cmocka_unit_test(test_command_line_is_left_alone),
                cmocka_unit_test(test_stale_facts_go),
                cmocka_unit_test(test_pace_of_slow_facts),
                cmocka_unit_test(test_whole_machine),
                cmocka_unit_test(test_no_such_process),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
