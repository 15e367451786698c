/* What a run that goes on is said to do just now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "count_of.h"
#include "flight_fixture.h"
#include "why_now.h"

#define S UINT64_C(1000000000)

static struct afz_flight flight;

static int start(void **state)
{
        (void)state;
        afz_flight_init(&flight);
        return 0;
}

static int stop(void **state)
{
        (void)state;
        afz_flight_done(&flight);
        return 0;
}

static const char *words(uint64_t budget_bytes, bool braked)
{
        static char buf[AFZ_WHY_NOW_CAP];
        struct afz_run_known known = {.page = {.budget_bytes = budget_bytes, .braked = braked},
                                      .duration_ns = 41 * S};
        known.page.need_bytes = (uint64_t)FLY_GB(1);
        return afz_why_now(&known, &flight, buf);
}

static void fly(double need_per_s, double cores)
{
        fly_line(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, fly_every(0, 41000, 100), FLY_GB(1),
                 need_per_s);
        fly_line(&flight, AFZ_KIND_JOB, 0, AFZ_JOB_CPU, fly_every(0, 41000, 1000), 0, cores * 1e9);
}

static void test_without_a_recording(void **state)
{
        (void)state;
        assert_string_equal(words(0, false), "still running after 41 s: it needs 1.0G");
        assert_string_equal(words(UINT64_C(2) << 30, true),
                            "still running after 41 s: it needs 1.0G of the 2.0G it may use; it is "
                            "slowed down just now");
}

static void test_what_it_does(void **state)
{
        static const struct {
                double need_per_s, cores;
                const char *text;
        } cases[] = {
                {0, 0, ", and waits"},
                {0, 1, ", and computes on 1.0 core"},
                {0, 3.5, ", and computes on 3.5 cores"},
                {20 << 20, 0, ", grows by 20M a second"}, /* who grows does not wait */
                {20 << 20, 1.5, ", grows by 20M a second, and computes on 1.5 cores"},
                {-(10 << 20), 1.5, ", shrinks by 10M a second, and computes on 1.5 cores"},
                {1 << 19, 1.5, ", and computes on 1.5 cores"}, /* it breathes */
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(cases); i++) {
                start(state);
                fly(cases[i].need_per_s, cases[i].cores);
                const char *text = words(0, false);
                assert_string_equal(text + strlen("still running after 41 s: it needs 1.0G"),
                                    cases[i].text);
                stop(state);
        }
        start(state);
}

static void test_a_gpu_that_works(void **state)
{
        (void)state;
        fly(0, 0);
        fly_line(&flight, AFZ_KIND_GPU, 0, AFZ_GPU_UTIL, fly_every(0, 41000, 1000), 9000, 0);
        assert_string_equal(words(0, false), "still running after 41 s: it needs 1.0G");
}

static void test_a_disk_that_is_waited_for(void **state)
{
        (void)state;
        fly(0, 0);
        fly_line(&flight, AFZ_KIND_JOB, 0, AFZ_JOB_DISK_WAIT, fly_every(0, 41000, 1000), 1, 0);
        assert_string_equal(words(0, false),
                            "still running after 41 s: it needs 1.0G, and waits for a disk");
}

/* Too early to compare two stretches. */
static void test_the_first_seconds(void **state)
{
        (void)state;
        fly_line(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, fly_every(0, 3000, 100), 0, 100 << 20);
        fly_point(&flight, AFZ_KIND_JOB, 0, AFZ_JOB_CPU, 0, 0);
        assert_string_equal(words(0, false), "still running after 41 s: it needs 1.0G");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
                TEST(test_without_a_recording), TEST(test_what_it_does),
                TEST(test_a_gpu_that_works),    TEST(test_a_disk_that_is_waited_for),
                TEST(test_the_first_seconds),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
