/* The step clock: looks once a second at counters, of which one stands for all. */
#include "judge_fixture.h"
#include "step_clock.h"

static void tell(uint64_t pid, uint32_t t_ms, int64_t steps)
{
        fly_point(&flight, AFZ_KIND_INSIDE, pid, AFZ_INSIDE_STEP, t_ms, steps);
}

static void no_clock(void **state)
{
        (void)state;
        uint32_t first_ms;
        struct afz_step_tick tick = {0};
        size_t cursor = 0;
        assert_null(afz_step_column(&flight, 0, UINT32_MAX));
        assert_int_equal(afz_step_count(NULL, 0, UINT32_MAX), 0);
        assert_false(afz_step_next(NULL, &cursor, &tick));
        tell(7, 1000, 0);
        tell(7, 2000, 0);
        assert_null(afz_step_column(&flight, 0, UINT32_MAX));
        assert_false(afz_step_first(afz_flight_steps(&flight), &first_ms));
}

static void ticks_are_rises(void **state)
{
        (void)state;
        struct afz_step_tick tick = {0};
        size_t cursor = 0;
        uint32_t first_ms;
        tell(7, 1000, 0);
        tell(7, 2000, 3);
        tell(7, 3000, 3);
        tell(7, 4000, 2); /* torn, or begun anew: no steps */
        tell(7, 9000, 4);
        const struct afz_column *steps = afz_step_column(&flight, 0, UINT32_MAX);
        assert_non_null(steps);
        assert_true(afz_step_first(steps, &first_ms));
        assert_int_equal(first_ms, 2000);
        assert_true(afz_step_next(steps, &cursor, &tick));
        assert_int_equal(tick.t_ms, 2000);
        assert_int_equal(tick.count, 3);
        assert_true(afz_step_next(steps, &cursor, &tick));
        assert_int_equal(tick.t_ms, 9000);
        assert_false(afz_step_next(steps, &cursor, &tick));
        assert_int_equal(afz_step_count(steps, 0, UINT32_MAX), 4);
        assert_int_equal(afz_step_count(steps, 3000, 9001), 1);
        assert_int_equal(afz_step_count(steps, 9001, 3000), 0);
}

/* A span tells what its counter was at its end. */
static void spans_end(void **state)
{
        (void)state;
        struct afz_step_tick tick = {0};
        size_t cursor = 0;
        fly_span(&flight, AFZ_KIND_INSIDE, 7, AFZ_INSIDE_STEP, 0, 60000, 1, 300, 300);
        assert_true(afz_step_next(afz_step_column(&flight, 0, UINT32_MAX), &cursor, &tick));
        assert_int_equal(tick.t_ms, 60000);
        assert_int_equal(tick.count, 300);
}

/* From the look after step 3, to the last but one: the last may have seen the end. */
static void steady(void **state)
{
        (void)state;
        uint32_t from_ms = 1, last_ms = 2;
        tell(7, 1000, 2);
        tell(7, 2000, 4);
        tell(7, 3000, 6);
        const struct afz_column *steps = afz_step_column(&flight, 0, UINT32_MAX);
        assert_false(afz_step_steady(steps, 3, &from_ms, &last_ms)); /* nothing in between */
        assert_true(from_ms == 1 && last_ms == 2);
        tell(7, 4000, 8);
        assert_true(afz_step_steady(steps, 3, &from_ms, &last_ms));
        assert_int_equal(from_ms, 2001);
        assert_int_equal(last_ms, 3000);
        assert_false(afz_step_steady(steps, 9, &from_ms, &last_ms));
        assert_false(afz_step_steady(NULL, 1, &from_ms, &last_ms));
}

/* A run that was restarted: the first attempt made more steps, and is over. */
static void of_an_attempt(void **state)
{
        (void)state;
        tell(7, 1000, 500);
        tell(7, 9000, 900);
        tell(8, 11000, 1);
        tell(8, 20000, 40);
        assert_int_equal(afz_step_count(afz_step_column(&flight, 0, UINT32_MAX), 0, 20001), 900);
        const struct afz_column *last = afz_step_column(&flight, 10000, UINT32_MAX);
        assert_int_equal(afz_step_count(last, 10000, UINT32_MAX), 40);
}

static void hostile(void **state)
{
        (void)state;
        struct afz_step_tick tick = {0};
        size_t cursor = 0;
        uint32_t first_ms;
        fly_span(&flight, AFZ_KIND_INSIDE, 7, AFZ_INSIDE_STEP, 0, 0, 0, 0, INT64_MIN);
        fly_span(&flight, AFZ_KIND_INSIDE, 7, AFZ_INSIDE_STEP, 5, UINT32_MAX, 0, 0, INT64_MAX);
        fly_span(&flight, AFZ_KIND_INSIDE, 7, AFZ_INSIDE_STEP, 6, 0, 0, 0, INT64_MIN);
        const struct afz_column *steps = afz_flight_one(&flight, AFZ_KIND_INSIDE)->column;
        assert_true(afz_step_next(steps, &cursor, &tick));
        assert_int_equal(tick.t_ms, UINT64_C(5) + UINT32_MAX);
        assert_false(afz_step_next(steps, &cursor, &tick));
        assert_true(afz_step_first(steps, &first_ms));
        assert_int_equal(first_ms, UINT32_MAX);
        assert_int_equal(afz_step_count(steps, 0, UINT32_MAX), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(no_clock), TEST(ticks_are_rises), TEST(spans_end),
                TEST(steady),   TEST(of_an_attempt),   TEST(hostile),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
