/* Sampling by bytes: what is drawn must add up to what was allocated, for every size and every
 * seed on average, and no further off than the mathematics says (docs/sampling.md). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "probe.h"

/* As a hook does it. */
static struct afz_draw pass(struct afz_sampler *s, uint64_t size, uint64_t mean)
{
        if (size > (uint64_t)s->left_bytes)
                return afz_sample_draw(s, size, mean);
        s->left_bytes -= (int64_t)size;
        return (struct afz_draw){0, 0};
}

enum { SEEDS = 200, BLOCKS = 4000, CLASSES = 7 };
#define MEAN 65536.0

static const uint64_t sizes[CLASSES] = {1, 48, 700, 5000, 66000, 1048575, 1048576};

struct sums {
        double truth[CLASSES], estimate[CLASSES], variance[CLASSES];
};

/* Sizes in an order that is the same for all seeds. */
static void run_seed(uint64_t seed, struct sums *ret)
{
        struct afz_sampler s = {0};
        uint64_t order = 12345;
        afz_sample_begin(&s, seed, (uint64_t)MEAN);
        for (int i = 0; i < BLOCKS; i++) {
                order = order * 6364136223846793005u + 1442695040888963407u;
                int class = (int)(order >> 33) % CLASSES;
                double size = (double)sizes[class];
                double p = sizes[class] < AFZ_LARGE_BYTES ? -expm1(-size / MEAN) : 1;
                ret->truth[class] += size;
                ret->variance[class] += size * size * (1 - p) / p;
                struct afz_draw d = pass(&s, sizes[class], (uint64_t)MEAN);
                assert_true(s.left_bytes < AFZ_LARGE_BYTES && s.left_bytes >= 0);
                if (d.sampled)
                        ret->estimate[class] += (double)d.weight_bytes;
                else
                        assert_true(sizes[class] < AFZ_LARGE_BYTES);
        }
}

static void test_unbiased_over_seeds(void **state)
{
        struct sums all = {0};
        (void)state;
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                run_seed(seed * 7919, &all);
        for (int i = 0; i < CLASSES; i++) {
                double off = all.estimate[i] - all.truth[i], error = sqrt(all.variance[i]);
                if (fabs(off) > 3.5 * error + 1e-5 * all.truth[i])
                        fail_msg("blocks of %llu bytes: %.0f instead of %.0f (error %.0f)",
                                 (unsigned long long)sizes[i], all.estimate[i], all.truth[i],
                                 error);
        }
}

/* And neither nearer than chance allows: the spread over the seeds is the predicted one. */
static void test_spread_is_as_predicted(void **state)
{
        double squares = 0;
        (void)state;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                struct sums one = {0};
                double off = 0, variance = 0;
                run_seed(seed * 104729, &one);
                for (int i = 0; i < CLASSES; i++) {
                        off += one.estimate[i] - one.truth[i];
                        variance += one.variance[i];
                }
                squares += off * off / variance;
        }
        /* Chi-squared of 200: 1 on average, with a deviation of 0.1. */
        assert_true(squares / SEEDS > 0.65 && squares / SEEDS < 1.4);
}

static void test_large_blocks_do_not_move_the_distance(void **state)
{
        struct afz_sampler s = {0};
        (void)state;
        afz_sample_begin(&s, 42, 1 << 20);
        int64_t left = s.left_bytes, later = s.later_bytes;
        for (int i = 0; i < 5; i++) {
                struct afz_draw d = pass(&s, UINT64_C(3) << 30, 1 << 20);
                assert_true(d.sampled);
                assert_int_equal(d.weight_bytes, UINT64_C(3) << 30);
                assert_int_equal(s.left_bytes, left);
                assert_int_equal(s.later_bytes, later);
        }
}

static void test_same_seed_same_samples(void **state)
{
        struct afz_sampler a = {0}, b = {0}, c = {0};
        int differs = 0;
        (void)state;
        afz_sample_begin(&a, 5, 4096);
        afz_sample_begin(&b, 5, 4096);
        afz_sample_begin(&c, 9, 4096);
        for (int i = 0; i < 10000; i++) {
                struct afz_draw one = pass(&a, 100, 4096), two = pass(&b, 100, 4096);
                assert_int_equal(one.sampled, two.sampled);
                differs |= pass(&c, 100, 4096).sampled != one.sampled;
        }
        assert_true(differs);
}

/* Distances far over a MiB are kept in two parts. */
static void test_long_distances(void **state)
{
        const uint64_t mean = UINT64_C(64) << 20;
        struct afz_sampler s = {0};
        int sampled = 0;
        (void)state;
        afz_sample_begin(&s, 3, mean);
        for (int i = 0; i < 2000000; i++)
                sampled += pass(&s, 100000, mean).sampled;
        /* 200 GB by 67 MB each: some 2980, with a deviation of 55. */
        assert_in_range(sampled, 2980 - 200, 2980 + 200);
}

static void test_every_byte(void **state)
{
        struct afz_sampler s = {0};
        (void)state;
        afz_sample_begin(&s, 3, 1);
        for (int i = 0; i < 1000; i++) {
                struct afz_draw d = pass(&s, 64, 1);
                assert_true(d.sampled);
                assert_int_equal(d.weight_bytes, 64);
        }
        assert_false(pass(&s, 0, 1).sampled);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_unbiased_over_seeds),
                cmocka_unit_test(test_spread_is_as_predicted),
                cmocka_unit_test(test_large_blocks_do_not_move_the_distance),
                cmocka_unit_test(test_same_seed_same_samples),
                cmocka_unit_test(test_long_distances),
                cmocka_unit_test(test_every_byte),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
