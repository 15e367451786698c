/* links: judge */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "restart_plan.h"

#define SECOND UINT64_C(1000000000)

static void halves(void **state)
{
        (void)state;
        static const struct {
                uint64_t batch, accum;
        } want[] = {{64, 1}, {32, 2}, {16, 4}, {8, 8}, {4, 16}, {2, 32}, {1, 64}};
        struct afz_restart_plan plan;
        assert_int_equal(afz_restart_first(64, 99, &plan), 0);
        for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
                assert_int_equal(plan.batch, want[i].batch);
                assert_int_equal(plan.accum, want[i].accum);
                assert_int_equal(plan.attempt, i);
                assert_int_equal(afz_restart_next(&plan, &plan), i + 1 < 7);
        }
}

static void odd_ones(void **state)
{
        (void)state;
        for (uint64_t batch = 1; batch < 3000; batch++) {
                struct afz_restart_plan plan, last;
                assert_int_equal(afz_restart_first(batch, 64, &plan), 0);
                for (last = plan; afz_restart_next(&plan, &plan); last = plan) {
                        assert_true(plan.batch < last.batch); /* never the same plan twice */
                        assert_true(plan.batch >= 1);
                        assert_true(plan.batch * plan.accum >= batch);
                        assert_true(plan.batch * plan.accum - batch < plan.batch);
                }
                assert_int_equal(plan.batch, 1);
        }
}

static void capped(void **state)
{
        (void)state;
        struct afz_restart_plan plan;
        assert_int_equal(afz_restart_first(0, 3, &plan), -EINVAL);
        assert_int_equal(afz_restart_first(UINT64_MAX, 3, &plan), -EINVAL);
        assert_int_equal(afz_restart_first(1024, 0, &plan), 0);
        assert_false(afz_restart_next(&plan, &plan));
        assert_int_equal(afz_restart_first(1024, 2, &plan), 0);
        assert_true(afz_restart_next(&plan, &plan));
        assert_true(afz_restart_next(&plan, &plan));
        assert_false(afz_restart_next(&plan, &plan));
        assert_int_equal(plan.batch, 256);
}

static void backs_off(void **state)
{
        (void)state;
        static const uint64_t want[] = {0, 1, 2, 4, 8, 16, 30, 30, 30};
        for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
                struct afz_restart_plan plan = {.attempt = i};
                assert_int_equal(afz_restart_backoff_ns(&plan), want[i] * SECOND);
        }
        struct afz_restart_plan plan = {.attempt = 4000000000U};
        assert_int_equal(afz_restart_backoff_ns(&plan), 30 * SECOND);
}

static void usable(void **state)
{
        (void)state;
        assert_true(afz_restart_usable((const char *[]){"a", "--bs={batch}", NULL}));
        assert_true(afz_restart_usable((const char *[]){"{batch}", NULL}));
        assert_false(
                afz_restart_usable((const char *[]){"a", "{accum}", "{Batch}", "{batch", NULL}));
        assert_false(afz_restart_usable((const char *[]){NULL}));
}

static void expands(void **state)
{
        (void)state;
        static const struct {
                const char *in, *out;
        } rows[] = {
                {"python", "python"},
                {"{batch}", "12"},
                {"--batch={batch}", "--batch=12"},
                {"{batch}x{accum}", "12x34"},
                {"{{batch}}", "{12}"},
                {"{batch}{batch}", "1212"},
                {"{batc{accum}h}", "{batc34h}"},
                {"{lr} {} { }", "{lr} {} { }"},
                {"{batch", "{batch"},
                {"", ""},
                {"\xff{accum}\x01", "\xff"
                                    "34\x01"},
        };
        enum { N = sizeof(rows) / sizeof(rows[0]) };
        const char *in[N + 1] = {0}, *out[N + 1];
        for (size_t i = 0; i < N; i++)
                in[i] = rows[i].in;
        struct afz_restart_plan plan = {.batch = 12, .accum = 34};
        char buf[256];
        assert_int_equal(afz_restart_expand(in, &plan, out, N + 1, buf, sizeof(buf)), 0);
        for (size_t i = 0; i < N; i++)
                assert_string_equal(out[i], rows[i].out);
        assert_null(out[N]);
        assert_ptr_equal(out[0], in[0]); /* borrowed */
        assert_int_equal(afz_restart_expand(in, &plan, out, N, buf, sizeof(buf)), -ENOSPC);
        assert_int_equal(afz_restart_expand(in, &plan, out, 0, buf, sizeof(buf)), -ENOSPC);
}

/* Every size of buffer: it fits exactly, or it says so and writes nothing beyond. */
static void small_buffers(void **state)
{
        (void)state;
        const char *in[] = {"-b{batch}", "x", "{accum}", NULL}, *out[4];
        struct afz_restart_plan plan = {.batch = 1U << 20, .accum = 7};
        const size_t needs = sizeof("-b1048576") + sizeof("7");
        for (size_t cap = 0; cap <= needs + 1; cap++) {
                char *buf = malloc(cap ? cap : 1);
                assert_non_null(buf);
                int r = afz_restart_expand(in, &plan, out, 4, buf, cap);
                assert_int_equal(r, cap >= needs ? 0 : -ENOSPC);
                if (!r)
                        assert_string_equal(out[0], "-b1048576");
                free(buf);
        }
}

/* Without {batch}: what makes the next attempt another one, and what does not. */
static void leaner(void **state)
{
        (void)state;
        static const struct {
                unsigned attempt, most, lean;
                struct afz_restart_facts facts;
                bool again;
                unsigned then;
        } rows[] = {
                {0, 3, 0, {0}, false, 0},
                {0, 3, 0, {.smaller = true}, true, 1},
                {0, 3, 0, {.smaller = true, .learned = 3}, true, 4},
                {1, 3, 2, {.smaller = true, .learned = 1}, true, 3},
                {0, 3, 0, {.learned = 3}, false, 0},
                {0, 3, 0, {.smaller = true, .learned = 6, .least = true}, false, 0},
                {0, 3, 0, {.smaller = true, .learned = 6, .least = true, .saved = true}, true, 6},
                {0, 3, 0, {.saved = true}, true, 0},
                {1, 3, 2, {.saved = true}, true, 2}, /* it had to be so lean to get there */
                {0, 3, 0, {.saved = true, .learned = 3}, true, 3},
                {0, 3, 0, {.smaller = true, .saved = true}, true, 1},
                {3, 3, 0, {.smaller = true, .saved = true}, false, 0},
                {0, 0, 0, {.smaller = true, .saved = true}, false, 0},
                {0, 3, 15, {.smaller = true}, true, 16},
                {0, 3, 16, {.smaller = true}, false, 0},
                {0, 3, 16, {.smaller = true, .saved = true}, true, 16},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct afz_restart_plan plan, next = {.attempt = 77};
                afz_restart_whole(rows[i].most, &plan);
                assert_int_equal(plan.attempt + plan.lean + plan.batch, 0);
                plan.attempt = rows[i].attempt;
                plan.lean = rows[i].lean;
                if (afz_restart_leaner(&plan, &rows[i].facts, &next) != rows[i].again)
                        fail_msg("row %zu", i);
                assert_int_equal(next.attempt, rows[i].again ? rows[i].attempt + 1 : 77);
                if (rows[i].again)
                        assert_int_equal(next.lean, rows[i].then);
        }
}

static void halvings(void **state)
{
        (void)state;
        static const struct {
                uint64_t batch, micro;
                unsigned n;
        } rows[] = {
                {64, 64, 0},         {64, 32, 1},
                {64, 8, 3},          {64, 1, 6},
                {65, 32, 2},         {64, 33, 1},
                {64, 0, 0},          {0, 0, 0},
                {0, 8, 0},           {8, 64, 0},
                {1, 1, 0},           {3, 2, 1},
                {UINT64_MAX, 1, 16}, {UINT64_MAX, UINT64_MAX - 1, 1},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                assert_int_equal(afz_restart_halvings(rows[i].batch, rows[i].micro), rows[i].n);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(halves),        cmocka_unit_test(odd_ones),
                cmocka_unit_test(capped),        cmocka_unit_test(backs_off),
                cmocka_unit_test(usable),        cmocka_unit_test(expands),
                cmocka_unit_test(small_buffers), cmocka_unit_test(leaner),
                cmocka_unit_test(halvings),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
