/* links: cli */
/* Where a job stood before it was stopped: which picture is told, and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "flight_fixture.h"
#include "why_stacks.h"

#define CODE(pid, tid) ((INT64_C(pid) << 32) | (tid))

static const char *told(const struct afz_flight *f, bool full, char buf[8192])
{
        struct afz_out out = afz_out_to(-1, buf, 8191);
        afz_why_stacks(&out, f, full);
        buf[out.len] = '\0';
        return buf;
}

static void begin(struct afz_flight *f)
{
        afz_flight_init(f);
        afz_flight_track(f, &(struct afz_subject){.kind = AFZ_KIND_PROC, .id = 7}, "sh", "", "");
        afz_flight_track(f, &(struct afz_subject){.kind = AFZ_KIND_PROC, .id = 9}, "python3", "",
                         "");
}

static void picture(struct afz_flight *f, uint32_t t_ms, int line)
{
        char text[400];
        fly_mark(f, t_ms, AFZ_MARK_STACK, CODE(7, 7), "frozen: wait4\nwaitpid (libc.so.6)");
        snprintf(text, sizeof text,
                 "frozen: it ran, slept 9 times\npython: /usr/lib/python3.11/json/decoder.py:3 in "
                 "decode\npython: /home/me/train.py:%d in load\npython: /home/me/train.py:50 in "
                 "<module>",
                 line);
        fly_mark(f, t_ms, AFZ_MARK_STACK, CODE(9, 9), text);
        fly_mark(f, t_ms, AFZ_MARK_STACK, CODE(9, 12),
                 "frozen: it ran\n(frames are not known: libdw is not here)");
        fly_mark(f, t_ms, AFZ_MARK_STACK, CODE(9, 11),
                 "frozen: futex, slept 2 times\npython: /home/me/train.py:20 in worker\nand 3 more "
                 "threads");
}

static void stop(struct afz_flight *f, uint32_t t_ms, enum afz_action action)
{
        fly_mark(f, t_ms, AFZ_MARK_ACTION, action, "");
}

/* The last before the first word that it is to end, and the line of the user's. */
static void test_which(void **state)
{
        struct afz_flight f;
        char buf[8192];
        (void)state;
        begin(&f);
        assert_string_equal(told(&f, true, buf), ""); /* nobody looked */
        picture(&f, 1000, 33);
        stop(&f, 1100, AFZ_ACTION_BRAKE);
        stop(&f, 1200, AFZ_ACTION_CHECKPOINT);
        assert_string_equal(told(&f, true, buf), ""); /* it was not stopped */
        assert_string_equal(told(&f, false, buf), "");
        picture(&f, 2000, 34);
        stop(&f, 2300, AFZ_ACTION_INTERRUPT);
        picture(&f, 2500, 35); /* in its handler: not the moment that is meant */
        stop(&f, 9000, AFZ_ACTION_KILL);
        told(&f, false, buf);
        assert_non_null(strstr(buf, "stood at"));
        assert_non_null(
                strstr(buf, "train.py:34 in load() (python3, 300 ms before it was stopped)"));
        afz_flight_done(&f);
}

static void test_all_threads(void **state)
{
        struct afz_flight f;
        char buf[8192];
        (void)state;
        begin(&f);
        fly_mark(&f, 500, AFZ_MARK_STACK, CODE(9, 9), "futex_do_wait"); /* of a pause */
        picture(&f, 2000, 34);
        stop(&f, 2000, AFZ_ACTION_KILL);
        told(&f, true, buf);
        assert_non_null(strstr(buf, "where it stood just before it was stopped"));
        assert_non_null(strstr(buf, "sh: wait4 < waitpid"));
        assert_non_null(strstr(buf, "python3: it ran < decoder.py:3 in decode <"));
        assert_non_null(
                strstr(buf, "python3, a thread: futex < train.py:20 in worker, and 3 more"));
        assert_non_null(strstr(buf, "python3, a thread: it ran\n"));
        assert_null(strstr(buf, "futex_do_wait"));
        assert_null(strstr(buf, "frozen"));
        afz_flight_done(&f);
}

/* Many of them, and texts that are none. */
static void test_hostile(void **state)
{
        static const char *const texts[] = {"frozen: ", "frozen: \n", "frozen: \nand ",
                                            "frozen: x\n\n\n"};
        struct afz_flight f;
        char buf[8192];
        (void)state;
        begin(&f);
        for (int i = 0; i < 64; i++)
                fly_mark(&f, 100, AFZ_MARK_STACK, i % 2 ? -1 : i, texts[i % 4]);
        stop(&f, 100, AFZ_ACTION_KILL);
        told(&f, false, buf);
        assert_string_equal(buf, ""); /* no line of the user's */
        told(&f, true, buf);
        assert_non_null(strstr(buf, "48 more; antifreeze export has them all"));
        afz_flight_done(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_which),
                cmocka_unit_test(test_all_threads),
                cmocka_unit_test(test_hostile),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
