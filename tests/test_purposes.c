/* What memory is for: rows add up, nothing is twice, and what nobody told stays unexplained. */
#include "memory_fixture.h"
#include "purposes.h"

static void tell(enum afz_metric metric, double gib)
{
        fly_flat(&flight, AFZ_KIND_INSIDE, 100, metric, fly_every(STEP_MS, RUN_MS, 1000),
                 FLY_GB(gib));
}

static uint64_t sum_of(const struct afz_purposes *p)
{
        uint64_t sum = 0;
        for (unsigned i = 0; i < AFZ_PURPOSES; i++)
                sum += p->bytes[i];
        return sum;
}

static void the_host(void **state)
{
        struct afz_purposes p;
        (void)state;
        tell_steps();
        tell_need(8);
        fly_point(&flight, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, RUN_MS - 1, FLY_GB(9));
        tell(AFZ_INSIDE_PARAMETERS, 1);
        tell(AFZ_INSIDE_GRADIENTS, 1);
        tell(AFZ_INSIDE_OPTIMIZER, 2);
        tell(AFZ_INSIDE_ACTIVATIONS, 3);
        tell(AFZ_INSIDE_BATCH_BYTES, 0.5);
        assert_true(afz_purposes_peak(&flight, false, &p));
        assert_int_equal(p.whole_bytes, FLY_GB(9));
        assert_int_equal(sum_of(&p), p.whole_bytes);
        assert_int_equal(p.bytes[AFZ_FOR_OPTIMIZER], FLY_GB(2));
        assert_int_equal(p.bytes[AFZ_FOR_ACTIVATIONS], FLY_GB(3));
        assert_int_equal(p.bytes[AFZ_FOR_UNEXPLAINED], FLY_GB(1.5));
        assert_true(afz_purposes_now(&flight, false, &p));
        assert_int_equal(p.whole_bytes, FLY_GB(8));
        assert_false(afz_purposes_peak(&flight, true, &p));
}

/* The data set by its line, from before the first step. */
static void a_data_set(void **state)
{
        struct afz_purposes p;
        (void)state;
        tell_steps();
        tell_need(8);
        tell_site(1, "train.py:3 in load()", "load", NULL);
        tell_loaded(1, 4);
        tell(AFZ_INSIDE_PARAMETERS, 1);
        assert_true(afz_purposes_peak(&flight, false, &p) || afz_purposes_now(&flight, false, &p));
        assert_true(afz_purposes_now(&flight, false, &p));
        assert_int_equal(p.bytes[AFZ_FOR_DATASET], FLY_GB(4));
        assert_int_equal(sum_of(&p), p.whole_bytes);
}

/* Figures of different moments come to more than there is: each is believed as far as it fits. */
static void more_than_there_is(void **state)
{
        struct afz_purposes p;
        (void)state;
        tell_steps();
        tell_need(2);
        tell(AFZ_INSIDE_PARAMETERS, 1);
        tell(AFZ_INSIDE_OPTIMIZER, 5);
        tell(AFZ_INSIDE_ACTIVATIONS, 7);
        assert_true(afz_purposes_now(&flight, false, &p));
        assert_int_equal(sum_of(&p), FLY_GB(2));
        assert_int_equal(p.bytes[AFZ_FOR_OPTIMIZER], FLY_GB(1));
        assert_int_equal(p.bytes[AFZ_FOR_ACTIVATIONS], 0);
}

/* The driver says 10, the framework holds 8, 6 of them were in tensors at the peak. */
static void a_gpu(void **state)
{
        struct afz_purposes p;
        (void)state;
        tell_steps();
        tell(AFZ_INSIDE_GPU_PARAMETERS, 1);
        tell(AFZ_INSIDE_GPU_ACTIVATIONS, 4);
        tell(AFZ_INSIDE_GPU_ALLOCATED, 1.5);
        tell(AFZ_INSIDE_GPU_ALLOCATED_PEAK, 6);
        tell(AFZ_INSIDE_GPU_RESERVED, 8);
        fly_flat(&flight, AFZ_KIND_GPU_PROC, 100, AFZ_GPU_PROC_IN_JOB, whole, 1);
        fly_flat(&flight, AFZ_KIND_GPU_PROC, 100, AFZ_GPU_PROC_MEM, whole, FLY_GB(10));
        assert_true(afz_purposes_peak(&flight, true, &p));
        assert_int_equal(p.whole_bytes, FLY_GB(10));
        assert_int_equal(p.bytes[AFZ_FOR_CONTEXT], FLY_GB(2));
        assert_int_equal(p.bytes[AFZ_FOR_CACHE], FLY_GB(2));
        assert_int_equal(p.bytes[AFZ_FOR_UNEXPLAINED], FLY_GB(1));
        assert_int_equal(sum_of(&p), p.whole_bytes);
        assert_true(afz_purposes_now(&flight, true, &p));
        assert_int_equal(p.bytes[AFZ_FOR_ACTIVATIONS], FLY_GB(0.5));
        assert_int_equal(p.bytes[AFZ_FOR_CACHE], FLY_GB(6.5));
}

static void nobody_tells(void **state)
{
        struct afz_purposes p;
        (void)state;
        assert_false(afz_purposes_peak(&flight, false, &p));
        assert_false(afz_purposes_now(&flight, false, &p));
        tell_need(8);
        tell_steps();
        assert_false(afz_purposes_peak(&flight, false, &p));
        assert_false(afz_purposes_now(&flight, true, &p));
}

static void words(void **state)
{
        (void)state;
        for (unsigned i = 0; i < AFZ_PURPOSES; i++)
                assert_true(afz_purpose_name((enum afz_purpose)i)[0] &&
                            afz_purpose_what((enum afz_purpose)i)[0]);
        assert_string_equal(afz_purpose_name(AFZ_PURPOSES), "");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(the_host), TEST(a_data_set),   TEST(more_than_there_is),
                TEST(a_gpu),    TEST(nobody_tells), TEST(words),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
