/* links: sense */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "count_of.h"
#include "env.h"
#include "proc_stat.h"

/* Fields 4 to 52 of a process as kernels print them; ppid 7, group 8, session 9, start 4711. */
#define REST                                                                                       \
        " 7 8 9 34816 -1 4194304 101 0 3 0 12 34 0 0 20 -5 2 0 4711 3133440 418 "                  \
        "18446744073709551615 1 2 3 0 0 0 0 0 0 0 0 0 17 0 0 0 6 0 0 1 2 3 4 5 6 7 0\n"

static void test_hostile_names(void **state)
{
        static const struct {
                const char *text, *comm;
                char process_state;
        } cases[] = {
                {"42 (python3) R" REST, "python3", 'R'},
                {"42 (foo) Z ) S" REST, "foo) Z ", 'S'},
                {"42 (a\nb () D" REST, "a\nb (", 'D'},
                {"42 (a\\nb) R" REST, "a\\nb", 'R'},
                {"42 () Z" REST, "", 'Z'},
                {"42 ()) I" REST, ")", 'I'},
                {"42 ( ) R) t" REST, " ) R", 't'},
                {"42 (1 (x) S 1 2) T" REST, "1 (x) S 1 2", 'T'},
                {"42 (\xff\x01) S" REST, "\xff\x01", 'S'},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                struct afz_proc_stat st;
                if (afz_proc_stat_parse(afz_span_str(cases[i].text), &st) < 0)
                        fail_msg("'%s' was refused", cases[i].text);
                assert_int_equal(st.pid, 42);
                assert_true(afz_span_eq(st.comm, cases[i].comm));
                assert_int_equal(st.state, cases[i].process_state);
                assert_int_equal(st.ppid, 7);
                assert_int_equal(st.pgrp, 8);
                assert_int_equal(st.session, 9);
                assert_int_equal(st.flags, 4194304);
                assert_int_equal(st.minor_faults, 101);
                assert_int_equal(st.major_faults, 3);
                assert_int_equal(st.user_ticks, 12);
                assert_int_equal(st.system_ticks, 34);
                assert_int_equal(st.nice, -5);
                assert_int_equal(st.threads, 2);
                assert_int_equal(st.start_ticks, 4711);
                assert_int_equal(st.io_wait_ticks, 6);
        }
}

static void test_garbage(void **state)
{
        static const struct {
                const char *text;
                size_t n; /* 0: up to the NUL */
        } cases[] = {
                {"", 0},
                {"\n", 0},
                {"42\n", 0},
                {"42 (x)\n", 0},
                {"42 (x) R\n", 0},
                {"42 (x) R \n", 0},
                {"42 (x) R 1\n", 0},
                {"(x) R" REST, 0},
                {"x (x) R" REST, 0},
                {"-1 (x) R" REST, 0},
                {"99999999999999999999 (x) R" REST, 0},
                {"42 x R" REST, 0},
                {"42 (x R" REST, 0},
                {"42) (x R" REST, 0},
                {")42 (x R" REST, 0},
                {"42 (x)R" REST, 0},
                {"42 (x) RR" REST, 0},
                {"42 (x) Q" REST, 0},
                {"42 (x) \0" REST, sizeof("42 (x) \0" REST) - 1},
                {"42 (x) R\t7" REST, 0},
                {"42 (x) R x 8 9 34816 -1 4194304 101 0 3 0 12 34 0 0 20 0 2 0 4711 1 1 1 1 1 1 1 "
                 "1 1 1 1 1 1 "
                 "1 1 1 1 1 1 6\n",
                 0},
                /* negative where there is no such thing: ppid, faults, start */
                {"42 (x) R -7 8 9 1 -1 4194304 101 0 3 0 12 34 0 0 20 0 2 0 4711 1 1 1 1 1 1 1 1 1 "
                 "1 1 1 1 1 "
                 "1 1 1 1 1 6\n",
                 0},
                {"42 (x) R 7 8 9 1 -1 4194304 -101 0 3 0 12 34 0 0 20 0 2 0 4711 1 1 1 1 1 1 1 1 1 "
                 "1 1 1 1 1 "
                 "1 1 1 1 1 6\n",
                 0},
                {"42 (x) R 7 8 9 1 -1 4194304 101 0 3 0 12 34 0 0 20 0 2 0 -4711 1 1 1 1 1 1 1 1 1 "
                 "1 1 1 1 1 "
                 "1 1 1 1 1 6\n",
                 0},
                /* too large, by one and by far, also below zero */
                {"42 (x) R 18446744073709551616 8 9 1 -1 4194304 101 0 3 0 12 34 0 0 20 0 2 0 4711 "
                 "1 1 1 1 1 "
                 "1 1 1 1 1 1 1 1 1 1 1 1 1 6\n",
                 0},
                {"42 (x) R 7 8 9 1 -1 4194304 101 0 3 0 12 34 0 0 20 -9223372036854775809 2 0 4711 "
                 "1 1 1 1 1 "
                 "1 1 1 1 1 1 1 1 1 1 1 1 1 6\n",
                 0},
                {"42 (x) R 7 8 9 1 -1 4194304 101 0 3 0 12 34 0 0 20 - 2 0 4711 1 1 1 1 1 1 1 1 1 "
                 "1 1 1 1 1 1 "
                 "1 1 1 1 6\n",
                 0},
                {"42 (x) R 7 8 9 1 -1 4194304 101 0 3 0 12 34 0 0 20 0 2 0 47.11 1 1 1 1 1 1 1 1 1 "
                 "1 1 1 1 1 "
                 "1 1 1 1 1 6\n",
                 0},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                struct afz_proc_stat st = {.pid = 12345};
                struct afz_span text = {cases[i].text,
                                        cases[i].n ? cases[i].n : strlen(cases[i].text)};
                if (afz_proc_stat_parse(text, &st) != -EINVAL)
                        fail_msg("%zu: '%s' was taken", i, cases[i].text);
                assert_int_equal(st.pid, 12345);
        }
}

/* Cut anywhere, also in mid-number: never half a process. */
static void test_cut_anywhere(void **state)
{
        static const char text[] = "42 (a) b) R" REST;
        struct afz_proc_stat st;
        (void)state;
        for (size_t n = 0; n < sizeof text - 1; n++)
                assert_int_equal(afz_proc_stat_parse((struct afz_span){text, n}, &st), -EINVAL);
        assert_int_equal(afz_proc_stat_parse((struct afz_span){text, sizeof text - 1}, &st), 0);
}

/* A process that is being reaped has -1 for its group and session, a thread for its signal. */
static void test_lawful_negatives(void **state)
{
        static const char text[] =
                "42 (x) X 0 -1 -1 0 -1 4194304 101 0 3 0 12 34 -5 -6 -100 -20 0 0 4711 1 1 1 1 1 "
                "1 1 1 1 1 1 1 1 1 1 -1 -1 1 1 6\n";
        struct afz_proc_stat st;
        (void)state;
        assert_int_equal(afz_proc_stat_parse(afz_span_str(text), &st), 0);
        assert_int_equal(st.pgrp, UINT64_MAX);
        assert_int_equal(st.session, UINT64_MAX);
        assert_int_equal(st.nice, -20);
        assert_int_equal(st.start_ticks, 4711);
}

static void test_statm(void **state)
{
        static const struct {
                const char *text;
                int error;
        } cases[] = {
                {"765 418 324 5 0 90 0\n", 0},
                {"765 418 324\n", 0},
                {"765 418\n", -EINVAL},
                {"765 418 32", -EINVAL},
                {"", -EINVAL},
                {"765 -1 3\n", -EINVAL},
                {"765 4x8 324\n", -EINVAL},
                {"765\n418\n3\n", -EINVAL},
                {"99999999999999999999 1 1\n", -EINVAL},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                struct afz_proc_statm m = {9, 9, 9};
                int r = afz_proc_statm_parse(afz_span_str(cases[i].text), &m);
                assert_int_equal(r, cases[i].error);
                assert_int_equal(m.resident_pages, r < 0 ? 9 : 418);
        }
}

#define IO_TAIL "syscr: 5\nsyscw: 6\nread_bytes: 30\nwrite_bytes: 40\ncancelled_write_bytes: 50\n"

static void test_io(void **state)
{
        static const struct {
                const char *text;
                int error;
        } cases[] = {
                {"rchar: 10\nwchar: 20\n" IO_TAIL, 0},
                {"", -EINVAL},
                {"rchar: 10\n", -EINVAL},
                {"rchar: 10\nwchar: x\n" IO_TAIL, -EINVAL},
                {"rchar: 10\nwchar: -1\n" IO_TAIL, -EINVAL},
                {"rchar: 10\nwchar: 99999999999999999999\n" IO_TAIL, -EINVAL},
                {"rchar: 10\nwchar: 20\nread_bytes: 30\nwrite_bytes: 40\ncancelled_write_bytes: 5",
                 -EINVAL},
                /* As many lines as there are keys, and still not all of them. */
                {"rchar: 1\nrchar: 1\nrchar: 1\nrchar: 1\nrchar: 1\n", -EINVAL},
                {"rchar: 10\nrchar: 10\nwchar: 20\n" IO_TAIL, -EINVAL},
        };
        (void)state;
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                struct afz_proc_io io = {9, 9, 9, 9, 9};
                int r = afz_proc_io_parse(afz_span_str(cases[i].text), &io);
                if (r != cases[i].error)
                        fail_msg("'%s': %d", cases[i].text, r);
                assert_int_equal(io.read_calls_bytes, r < 0 ? 9 : 10);
                assert_int_equal(io.write_calls_bytes, r < 0 ? 9 : 20);
                assert_int_equal(io.cancelled_bytes, r < 0 ? 9 : 50);
        }
}

/* What this very kernel prints of us, under names that try to fool a reader. */
static void test_live(void **state)
{
        static const char *const names[] = {"foo) Z ", "a\nb (", ") R 1 1 1 1", "((((((",
                                            "\x01\xff"};
        struct afz_env env;
        char buf[1024];
        (void)state;
        assert_int_equal(afz_env_open_live(&env), 0);
        for (size_t i = 0; i < AFZ_COUNT_OF(names); i++) {
                struct afz_span text;
                struct afz_proc_stat st;
                assert_int_equal(prctl(PR_SET_NAME, names[i]), 0);
                assert_int_equal(
                        afz_env_read(&env, AFZ_ROOT_PROC, "self/stat", buf, sizeof buf, &text), 0);
                if (afz_proc_stat_parse(text, &st) < 0)
                        fail_msg("'%s': %.*s", names[i], (int)text.n, text.p);
                assert_int_equal(st.pid, getpid());
                assert_int_equal(st.ppid, getppid());
                assert_int_equal(st.pgrp, getpgrp());
                assert_int_equal(st.session, getsid(0));
                assert_int_equal(st.threads, 1);
                assert_int_equal(st.state, 'R');
                assert_int_equal(st.flags & AFZ_PF_KTHREAD, 0);
        }
        afz_env_done(&env);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_hostile_names), cmocka_unit_test(test_garbage),
                cmocka_unit_test(test_cut_anywhere),  cmocka_unit_test(test_lawful_negatives),
                cmocka_unit_test(test_statm),         cmocka_unit_test(test_io),
                cmocka_unit_test(test_live),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
