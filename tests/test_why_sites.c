/* Which lines held the memory, in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "flight_fixture.h"
#include "out.h"
#include "why_sites.h"

static void held(struct afz_flight *f, uint64_t id, const char *name, uint32_t t_ms, double mega,
                 double counted)
{
        struct afz_track *track = fly_named(f, AFZ_KIND_SITE, id, name, name, "");
        struct afz_point point = {.t_ms = t_ms};
        point.least = point.most = point.mean = (int64_t)(mega * 1048576);
        fly_must(afz_flight_add(f, track, AFZ_SITE_LIVE, &point));
        point.least = point.most = point.mean = (int64_t)(mega * counted * 1048576);
        fly_must(afz_flight_add(f, track, AFZ_SITE_COUNTED, &point));
}

static void need(struct afz_flight *f, uint32_t t_ms, double mega)
{
        struct afz_track *track = fly_track(f, AFZ_KIND_HOLD, 0);
        struct afz_point point = {.t_ms = t_ms};
        point.least = point.most = point.mean = (int64_t)(mega * 1048576);
        fly_must(afz_flight_add(f, track, AFZ_HOLD_NEED, &point));
}

static const char *words_of(const struct afz_flight *f, bool full)
{
        static char text[8192];
        struct afz_out out = afz_out_to(-1, text, sizeof text - 1);
        afz_why_sites(&out, f, full);
        text[out.len] = '\0';
        return text;
}

static void make(struct afz_flight *f)
{
        static const char stack[] = "numeric.py:232 in ones()\ntrain.py:33 in load()\nmain.py:2";
        afz_flight_init(f);
        held(f, 0, "everywhere else", 1000, 40, 0);
        held(f, 1, "train.py:33 in load()", 1000, 700, 1);
        held(f, 2, "train.py:40 in names()", 1000, 200, 0);
        held(f, 3, "net.py:5", 1000, 50, 1);
        held(f, 4, "small.py:1", 1000, 10, 1);
        held(f, 1, "train.py:33 in load()", 3000, 300, 1);
        fly_must(afz_flight_mark(f, 1000, AFZ_MARK_SITE, 1, stack, strlen(stack)));
}

static void test_words(void **state)
{
        struct afz_flight f;
        (void)state;
        make(&f);
        assert_string_equal(words_of(&f, false),
                            "  memory     of the 1000M that its lines held at its peak:\n"
                            "               700M   70 %  train.py:33 in load()\n"
                            "               200M   20 %  train.py:40 in names(), give or take 7 %\n"
                            "                50M    5 %  net.py:5\n"
                            "                50M    5 %  everywhere else\n");
        need(&f, 500, 1010); /* as good as the same */
        assert_non_null(
                strstr(words_of(&f, false), "of the 1000M that its lines held at its peak:"));
        need(&f, 900, 1229);
        need(&f, 999, 0);     /* it was ended just before its lines were read */
        need(&f, 2000, 9000); /* later */
        assert_non_null(strstr(words_of(&f, false),
                               "of the 1.2G that it needed at its peak the probe saw 1000M:\n"));
        afz_flight_done(&f);
}

static void test_full(void **state)
{
        struct afz_flight f;
        (void)state;
        make(&f);
        const char *text = words_of(&f, true);
        assert_non_null(strstr(text, "of the 600M that its lines held at the end:\n"
                                     "               300M   50 %  train.py:33 in load()\n"));
        assert_non_null(strstr(text, "  its stack   numeric.py:232 in ones()\n"));
        assert_non_null(strstr(text, " <- train.py:33 in load()\n"));
        assert_non_null(strstr(text, "  probe      its last word is missing\n"));
        afz_flight_done(&f);
        afz_flight_init(&f);
        assert_string_equal(words_of(&f, true), "");
        fly_must(afz_flight_mark(&f, 1, AFZ_MARK_SITE, 0, "it was not wanted", 17));
        assert_string_equal(words_of(&f, false), "");
        assert_string_equal(words_of(&f, true), "  probe      it was not wanted\n");
        afz_flight_done(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_full),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
