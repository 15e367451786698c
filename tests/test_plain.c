/* The plain line: exact texts for hand-made windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plain.h"
#include "view_fixture.h"

static void line_of(const struct fix *fix, const char *clock, char *buf, size_t cap)
{
        struct afz_out out = afz_out_to(-1, buf, cap - 1);
        afz_plain_line(&out, &fix->window, clock);
        buf[out.len] = 0;
        assert_int_equal(out.err, 0);
        assert_in_range(out.len, 2, AFZ_PLAIN_COLUMNS + 1);
        assert_ptr_equal(strchr(buf, '\n'), buf + out.len - 1);
}

static void test_lines(void **state)
{
        static const struct {
                struct fix_want want;
                const char *clock, *line;
        } rows[] = {
                {{.gpus = 2, .procs = 4, .cores = 8},
                 "12:03:11",
                 "12:03:11 ram 10.0/16.0G job 6.5G (4) swap 1.0/4.0G in 3.0M/s cpu 187% psi mem 0% "
                 "io 34% gpu 165/280G 97% | disk\n"},
                {{.procs = 4, .cores = 8},
                 "12:03:11",
                 "12:03:11 ram 10.0/16.0G job 6.5G (4) swap 1.0/4.0G in 3.0M/s cpu 187% psi mem 0% "
                 "io 34% | waiting for disk vda\n"},
                {{.procs = 4, .cores = 8, .no_job = 1},
                 NULL,
                 "ram 10.0/16.0G swap 1.0/4.0G in 3.0M/s cpu 376% psi mem 0% io 34% | waiting for "
                 "disk vda (94 % busy)\n"},
                {{.gpus = 1, .procs = 4, .cores = 8, .blank = 1},
                 "12:03:11",
                 "12:03:11 ram -/- job - (-) swap -/- in - cpu - psi mem - io - gpu -/- - | "
                 "waiting "
                 "for disk vda (94 % busy)\n"},
                {{.procs = 4, .cores = 8, .no_before = 1},
                 "12:03:11",
                 "12:03:11 ram 10.0/16.0G job 6.5G (4) swap 1.0/4.0G in - cpu - psi mem - io - | "
                 "waiting for disk vda (94 % busy)\n"},
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct fix *fix = fix_new(&rows[i].want);
                char buf[256];
                line_of(fix, rows[i].clock, buf, sizeof buf);
                assert_string_equal(buf, rows[i].line);
                fix_free(fix);
        }
}

static void test_sentence_is_harmless(void **state)
{
        struct fix_want want = {.procs = 1, .cores = 1, .no_job = 1};
        struct fix *fix = fix_new(&want);
        char buf[256];
        (void)state;
        strcpy(fix->window.limit.text, "disk \033[2J\nx");
        line_of(fix, NULL, buf, sizeof buf);
        assert_non_null(strstr(buf, "| disk ?[2J?x\n"));
        fix->window.limit.text[0] = 0;
        fix->window.limit.kind = AFZ_LIMIT_SWAPPING;
        line_of(fix, NULL, buf, sizeof buf);
        assert_non_null(strstr(buf, "| swapping\n"));
        memset(fix->window.limit.text, 'w', sizeof fix->window.limit.text - 1);
        fix->window.limit.text[sizeof fix->window.limit.text - 1] = 0;
        line_of(fix, NULL, buf, sizeof buf);
        assert_non_null(strstr(buf, "| swapping\n"));
        fix_free(fix);
}

static void test_empty_window(void **state)
{
        static struct fix fix;
        char buf[256];
        (void)state;
        afz_window_init(&fix.window, FIX_S);
        line_of(&fix, NULL, buf, sizeof buf);
        assert_string_equal(buf, "ram -/- swap -/- in - cpu - psi mem - io - | unknown\n");
}

static void test_lines_of_the_program(void **state)
{
        struct afz_lines_now lines = {
                .known = true,
                .live_bytes = UINT64_C(3) << 30,
                .growth_s = 30,
                .rows = 4,
                .row = {{"train.py:118 in step()", UINT64_C(2) << 30, 105 << 20, "heap", 1},
                        {"d\033[31m\n.py:4 in load()", 512 << 20, -(64 << 20), "heap", 1},
                        {"a_name_that_leaves_no_room_for_any_other.py:1000 in a_method()", 9, 0, "",
                         1},
                        {"last.py:1", 4, 0, "", 1}},
        };
        char buf[256];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
        (void)state;
        afz_plain_lines(&out, &lines, "12:03:11");
        buf[out.len] = 0;
        /* A line that has no room ends it: those after it are smaller. */
        assert_string_equal(buf, "12:03:11 lines 3.0G: train.py:118 in step() 2.0G +210M/min, "
                                 "d?[31m?.py:4 in load() 512M\n");
        for (size_t i = 0; i < 4; i++)
                memset(lines.row[i].name, 'x', sizeof lines.row[i].name - 1);
        out.len = 0;
        afz_plain_lines(&out, &lines, "12:03:11");
        assert_in_range(out.len, 2, AFZ_PLAIN_COLUMNS + 1);
        out.len = 0;
        lines.known = false;
        afz_plain_lines(&out, &lines, NULL);
        afz_plain_lines(&out, NULL, NULL);
        assert_int_equal(out.len, 0);
}

static void test_what_it_is_for(void **state)
{
        struct afz_lines_now lines = {
                .known = true,
                .uses = {2, 1},
                .use = {{{"parameters", 20 << 20}, {"activations", UINT64_C(3) << 30}},
                        {{"optimizer", 40 << 20}}},
        };
        char buf[256];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
        (void)state;
        afz_plain_uses(&out, &lines, "12:03:11");
        buf[out.len] = 0;
        assert_string_equal(buf, "12:03:11 memory is for: parameters 20.0M, activations 3.0G\n"
                                 "12:03:11 GPU memory is for: optimizer 40.0M\n");
        out.len = 0;
        for (uint32_t i = 0; i < AFZ_USES_NOW; i++)
                lines.use[0][i] = (struct afz_use_now){"a name that is long enough", UINT64_MAX};
        lines.uses[0] = AFZ_USES_NOW, lines.uses[1] = 0;
        afz_plain_uses(&out, &lines, NULL);
        assert_in_range(out.len, 2, AFZ_PLAIN_COLUMNS + 1);
        out.len = 0;
        lines.known = false;
        afz_plain_uses(&out, &lines, NULL);
        afz_plain_uses(&out, NULL, NULL);
        assert_int_equal(out.len, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),          cmocka_unit_test(test_lines_of_the_program),
                cmocka_unit_test(test_what_it_is_for), cmocka_unit_test(test_sentence_is_harmless),
                cmocka_unit_test(test_empty_window),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
