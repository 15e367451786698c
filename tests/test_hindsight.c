/* Would the next attempt end in the same way? */
#include <stdio.h>

#include "agent_event.h"
#include "hindsight.h"
#include "judge_fixture.h"

enum { END_MS = 60000 };

/* ---- what an attempt shows ---- */

/* Needs 200 MB and so much more each second, and a step's `swing` on top of that, every 0.7 s. */
static void grows(double mega_per_s, double swing)
{
        for (uint32_t t = 0; t < END_MS; t += 100)
                fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, t,
                          FLY_MB(200 + mega_per_s * t / 1000 + swing * fly_saw(t, 700)));
        fly_steps(&flight, fly_every(1000, END_MS, 100), 0);
}

static struct afz_case stopped(void)
{
        return (struct afz_case){.flight = &flight,
                                 .facts = {.end = {AFZ_END_STOPPED, -1},
                                           .stop_cause = AFZ_CAUSE_BUDGET,
                                           .hard_bytes = (uint64_t)FLY_GB(1)}};
}

static struct afz_hindsight seen(struct afz_case c, const char *id)
{
        struct afz_outcome outcome = {.end = c.facts.end};
        struct afz_hindsight ret = {.leaks = true, .asked_bytes = 77};
        struct afz_verdict *v = afz_outcome_add(&outcome, id, AFZ_LEVEL_ACT, .9);
        snprintf(v->where.file, sizeof v->where.file, "/home/me/train.py");
        v->where.line = 16;
        (void)afz_outcome_add(&outcome, "leak:gpu", AFZ_LEVEL_WARN, .9); /* not why it ended */
        afz_hindsight_of(&c, &outcome, &ret);
        return ret;
}

static void leaks(void **state)
{
        (void)state;
        grows(10, 20);
        struct afz_hindsight h = seen(stopped(), "leak:retained-history");
        assert_true(h.leaks);
        assert_int_equal(h.where.line, 16);
        assert_int_equal(h.asked_bytes, 0);
        assert_false(seen(stopped(), "batch-too-large").leaks);
        assert_false(seen(stopped(), "thread-leak").leaks);
        assert_false(h.is_large);
}

/* What its steps take is most of it: smaller ones leave room for what it keeps. */
static void leaks_a_little(void **state)
{
        (void)state;
        grows(2, 400);
        assert_false(seen(stopped(), "leak").leaks);
}

static void leaks_on_a_gpu(void **state)
{
        (void)state;
        assert_true(seen(stopped(), "leak:gpu").leaks);
}

static void too_large(void **state)
{
        (void)state;
        struct afz_hindsight h = seen(stopped(), "model-too-large");
        assert_true(h.is_large && !h.leaks);
        assert_int_equal(h.where.line, 16);
}

static struct afz_hindsight failed(int code)
{
        struct afz_case c = stopped();
        c.facts.end = (struct afz_end){AFZ_END_EXIT, code};
        return seen(c, "host-exhaustion");
}

/* Later than what was asked for before. */
static struct afz_hindsight asked(const char *text, int code)
{
        static uint32_t t_ms = 1000;
        fly_mark(&flight, t_ms++, AFZ_MARK_AGENT, AFZ_AGENT_OOM, text);
        return failed(code);
}

static void asks(void **state)
{
        (void)state;
        struct afz_hindsight h =
                asked("device=host asked_bytes=4000000000 at=/a b/load.py:14:main swallowed=0", 1);
        assert_true(h.outside && h.is_too_much && !h.leaks);
        assert_int_equal(h.asked_bytes, 4000000000);
        assert_string_equal(h.where.file, "/a b/load.py");
        assert_int_equal(h.where.line, 14);
        h = asked("device=gpu asked_bytes=4000000000 allocated_bytes=5 trains=1 swallowed=0", 1);
        assert_true(!h.outside && !h.is_too_much); /* of the GPU nobody knows here */
        assert_int_equal(h.taken_bytes, 5);
        h = asked("device=host asked_bytes=9 batch=64 swallowed=0", 1);
        assert_true(!h.outside && h.asked_bytes == 9);
        assert_false(asked("device=host asked_bytes=9 step=1 swallowed=0", 1).outside);
}

/* It got over it, or ended of something else. */
static void asks_no_more(void **state)
{
        (void)state;
        assert_int_equal(asked("device=host asked_bytes=9 swallowed=1", 1).asked_bytes, 0);
        assert_int_equal(asked("device=host asked_bytes=9 swallowed=0", 0).asked_bytes, 0);
}

/* What an attempt before asked for is over. */
static void asked_before(void **state)
{
        (void)state;
        fly_mark(&flight, 1000, AFZ_MARK_AGENT, AFZ_AGENT_OOM, "device=host asked_bytes=9");
        fly_mark(&flight, 2000, AFZ_MARK_ATTEMPT, 1, "");
        assert_int_equal(failed(1).asked_bytes, 0);
}

/* ---- what follows ---- */

#define AT(number)                                                                                 \
        {                                                                                          \
                .file = "/a/b.py", .line = (number)                                                \
        }

static void vain(void **state)
{
        (void)state;
        static const struct {
                struct afz_hindsight before, now;
                enum afz_vain want;
        } rows[] = {
                {{0}, {0}, AFZ_VAIN_NOT},
                {{0}, {.leaks = true}, AFZ_VAIN_LEAK},
                {{0}, {.leaks = true, .asked_bytes = 9, .outside = true}, AFZ_VAIN_LEAK},
                {{.leaks = true, .is_large = true}, {0}, AFZ_VAIN_NOT},
                {{0}, {.is_large = true, .asked_bytes = 9, .outside = true}, AFZ_VAIN_MODEL},
                {{0}, {.asked_bytes = 9, .outside = true}, AFZ_VAIN_REQUEST},
                {{0}, {.outside = true}, AFZ_VAIN_NOT},
                {{0}, {.asked_bytes = 9, .is_too_much = true, .where = AT(3)}, AFZ_VAIN_NOT},
                /* The same again. */
                {{.asked_bytes = 9, .is_too_much = true, .where = AT(3)},
                 {.asked_bytes = 9, .is_too_much = true, .where = AT(3)},
                 AFZ_VAIN_SAME},
                {{.asked_bytes = 9, .where = AT(3)},
                 {.asked_bytes = 9, .where = AT(3)},
                 AFZ_VAIN_NOT},
                {{.asked_bytes = 9, .taken_bytes = 1000, .where = AT(3)},
                 {.asked_bytes = 9, .taken_bytes = 990, .where = AT(3)},
                 AFZ_VAIN_SAME},
                /* Nearly: elsewhere, less of it, or with less beside it. */
                {{.asked_bytes = 9, .is_too_much = true, .where = AT(3)},
                 {.asked_bytes = 9, .is_too_much = true, .where = AT(4)},
                 AFZ_VAIN_NOT},
                {{.asked_bytes = 9, .is_too_much = true, .where = AT(3)},
                 {.asked_bytes = 8, .is_too_much = true, .where = AT(3)},
                 AFZ_VAIN_NOT},
                {{.asked_bytes = 9, .taken_bytes = 1000, .where = AT(3)},
                 {.asked_bytes = 9, .taken_bytes = 900, .where = AT(3)},
                 AFZ_VAIN_NOT},
                {{.asked_bytes = 9, .is_too_much = true},
                 {.asked_bytes = 9, .is_too_much = true},
                 AFZ_VAIN_NOT},
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(rows); i++)
                if (afz_hindsight_vain(&rows[i].before, &rows[i].now) != rows[i].want)
                        fail_msg("row %zu", i);
}

static void words(void **state)
{
        (void)state;
        struct afz_hindsight h = {.asked_bytes = UINT64_C(4) << 30, .where = AT(3)};
        char buf[128], small[12];
        assert_words(afz_vain_words(AFZ_VAIN_LEAK, &h, buf, sizeof buf), "it leaks (b.py:3), and");
        assert_words(afz_vain_words(AFZ_VAIN_MODEL, &h, buf, sizeof buf), "does not fit (b.py:3)");
        assert_words(afz_vain_words(AFZ_VAIN_REQUEST, &h, buf, sizeof buf),
                     "it asked for 4.0G at once (b.py:3)");
        assert_words(afz_vain_words(AFZ_VAIN_SAME, &h, buf, sizeof buf), "the same 4.0G (b.py:3)");
        assert_string_equal(afz_vain_words(AFZ_VAIN_NOT, &h, buf, sizeof buf), "");
        h.where.line = 0;
        assert_words(afz_vain_words(AFZ_VAIN_LEAK, &h, buf, sizeof buf), "it leaks, and");
        assert_string_equal(afz_vain_words(AFZ_VAIN_LEAK, &h, small, sizeof small), "it leaks, a");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(leaks),        TEST(leaks_a_little), TEST(leaks_on_a_gpu),
                TEST(too_large),    TEST(asks),           TEST(asks_no_more),
                TEST(asked_before), TEST(vain),           TEST(words),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
