/* links: judge */
/* hang:spin: when it is one, and where. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ask_judge.h"

static void fly_spin(struct afz_flight *f, uint32_t end_ms, double cores, int64_t grows, bool steps)
{
        afz_flight_init(f);
        tell_rate(f, AFZ_KIND_JOB, JOB, AFZ_JOB_CPU, fly_every(0, end_ms, 100), cores * 1e9);
        fly_flat(f, AFZ_KIND_JOB, JOB, AFZ_JOB_READ_CALLS, fly_every(0, end_ms, 100), 7);
        fly_flat(f, AFZ_KIND_JOB, JOB, AFZ_JOB_WRITE_CALLS, fly_every(0, end_ms, 100), 7);
        fly_line(f, AFZ_KIND_JOB, JOB, AFZ_JOB_NEED, fly_every(0, end_ms, 100), FLY_MB(500),
                 (double)grows);
        if (steps)
                fly_steps(f, fly_every(1000, 21000, 200), 1);
}

static void test_spin(void **state)
{
        (void)state;
        static const struct {
                const char *what;
                uint32_t end_ms;
                double cores;
                int64_t grows;
                bool steps, says;
                struct afz_end end;
        } rows[] = {
                {"no step for four minutes", 260000, 1, 0, true, true, {AFZ_END_SIGNAL, SIGINT}},
                {"without steps nobody knows", 260000, 1, 0, false, false, {AFZ_END_SIGNAL, 2}},
                {"an evaluation of a minute", 81000, 1, 0, true, false, {AFZ_END_SIGNAL, 2}},
                {"it ended well", 260000, 1, 0, true, false, {AFZ_END_EXIT, 0}},
                {"its memory moves", 260000, 1, 1 << 20, true, false, {AFZ_END_SIGNAL, 2}},
                {"it idles, but nobody knows for what",
                 260000,
                 0,
                 0,
                 true,
                 false,
                 {AFZ_END_SIGNAL, 2}},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct afz_flight f;
                fly_spin(&f, rows[i].end_ms, rows[i].cores, rows[i].grows, rows[i].steps);
                const struct afz_verdict *v = ask(afz_judge_hang, &f, rows[i].end);
                if (!v == rows[i].says)
                        fail_msg("%s", rows[i].what);
                if (v)
                        assert_string_equal(v->id, "hang:spin");
                afz_flight_done(&f);
        }
}

#define LOOP    "\npython: /me/train.py:28 in search"
#define FURTHER "\npython: /me/train.py:30 in search"
#define MAIN    "\npython: /me/train.py:40 in <module>"
#define TORCH   "\npython: /venv/lib/python3.11/site-packages/torch/nn/modules/linear.py:9 in forward"

/* The line of a loop is what all looks have in common. */
static void test_spin_where(void **state)
{
        (void)state;
        static const struct {
                const char *what, *look[3];
                int32_t line;
                const char *function;
        } rows[] = {
                {"at two lines of it",
                 {"it runs" FURTHER MAIN,
                  "it runs" TORCH "\npython: /me/train.py:22 in loss_of" LOOP MAIN,
                  "it runs" LOOP MAIN},
                 28,
                 "search"},
                {"always in what it calls",
                 {"it runs" TORCH LOOP MAIN, "futex_do_wait, slept 3 times" TORCH LOOP MAIN, NULL},
                 28,
                 "search"},
                {"two functions in turn",
                 {"it runs" LOOP MAIN, "it runs\npython: /me/train.py:22 in loss_of" MAIN, NULL},
                 40,
                 "<module>"},
                {"once", {"it runs" LOOP MAIN, NULL, NULL}, 28, "search"},
                {"it never ran", {"futex_do_wait" LOOP MAIN, NULL, NULL}, 0, ""},
                {"no line of its own", {"it runs" TORCH, NULL, NULL}, 0, ""},
                {"nothing in common",
                 {"it runs" LOOP, "it runs\npython: /me/else.py:1 in other", NULL},
                 0,
                 ""},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct afz_flight f;
                fly_spin(&f, 260000, 1, 0, true);
                for (uint32_t k = 0; k < 3 && rows[i].look[k]; k++)
                        fly_mark(&f, 81000 + 20000 * k, AFZ_MARK_STACK, INT64_C(100) << 32 | 100,
                                 rows[i].look[k]);
                const struct afz_verdict *v =
                        ask(afz_judge_hang, &f, (struct afz_end){AFZ_END_SIGNAL, SIGINT});
                assert_non_null(v);
                if (v->where.line != rows[i].line || strcmp(v->where.function, rows[i].function))
                        fail_msg("%s: %d %s", rows[i].what, v->where.line, v->where.function);
                assert_int_equal(strstr(v->fix, "py-spy") != NULL, rows[i].line == 0);
                afz_flight_done(&f);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_spin),
                cmocka_unit_test(test_spin_where),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
