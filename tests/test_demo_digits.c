/* The drawn digits: the same for the same seed, different else, balanced, and really digits of ten
 * kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "digits.h"

enum { SAMPLES = 1000 };

static bool same(const float *a, const float *b)
{
        return memcmp(a, b, AFZ_DIGIT_PIXELS * sizeof(*a)) == 0;
}

static void deterministic(void **state)
{
        float one[AFZ_DIGIT_PIXELS], two[AFZ_DIGIT_PIXELS];

        (void)state;
        for (uint64_t i = 0; i < 50; i++) {
                afz_digit_draw(7, AFZ_DIGITS_TRAINING, i, one);
                afz_digit_draw(7, AFZ_DIGITS_TRAINING, 999 - i, two);
                assert_false(same(one, two));
                afz_digit_draw(7, AFZ_DIGITS_TRAINING, i, two);
                assert_true(same(one, two));
        }
}

static void seed_set_and_index_all_matter(void **state)
{
        float base[AFZ_DIGIT_PIXELS], other[AFZ_DIGIT_PIXELS];

        (void)state;
        for (uint64_t i = 0; i < 50; i++) {
                afz_digit_draw(7, AFZ_DIGITS_TRAINING, i, base);
                afz_digit_draw(8, AFZ_DIGITS_TRAINING, i, other);
                assert_false(same(base, other));
                afz_digit_draw(7, AFZ_DIGITS_HELD_OUT, i, other);
                assert_false(same(base, other));
                afz_digit_draw(7, AFZ_DIGITS_TRAINING, i + AFZ_DIGIT_CLASSES, other);
                assert_false(same(base, other));
        }
}

static void balanced(void **state)
{
        size_t count[AFZ_DIGIT_CLASSES] = {0};

        (void)state;
        for (uint64_t i = 0; i < SAMPLES; i++)
                count[afz_digit_label(i)]++;
        for (size_t c = 0; c < AFZ_DIGIT_CLASSES; c++)
                assert_int_equal(count[c], SAMPLES / AFZ_DIGIT_CLASSES);
}

static void ink_within_bounds(void **state)
{
        float pixels[AFZ_DIGIT_PIXELS];

        (void)state;
        for (uint64_t i = 0; i < SAMPLES; i++) {
                float sum = 0, darkest = 0;

                afz_digit_draw(3, AFZ_DIGITS_TRAINING, i, pixels);
                for (size_t j = 0; j < AFZ_DIGIT_PIXELS; j++) {
                        assert_true(pixels[j] >= 0 && pixels[j] <= 1);
                        darkest = pixels[j] > darkest ? pixels[j] : darkest;
                        sum += pixels[j];
                }
                assert_true(darkest > .5F);                             /* there is a stroke */
                assert_true(sum > 10 && sum < AFZ_DIGIT_PIXELS / 2.0F); /* and there is paper */
        }
}

/* The nearest class mean tells far more than chance (10 %), or the pictures would not depend on
 * their labels. */
static void classes_differ(void **state)
{
        static float mean[AFZ_DIGIT_CLASSES][AFZ_DIGIT_PIXELS];
        float pixels[AFZ_DIGIT_PIXELS];
        size_t correct = 0;

        (void)state;
        for (uint64_t i = 0; i < SAMPLES; i++) {
                afz_digit_draw(5, AFZ_DIGITS_TRAINING, i, pixels);
                for (size_t j = 0; j < AFZ_DIGIT_PIXELS; j++)
                        mean[afz_digit_label(i)][j] += pixels[j] * AFZ_DIGIT_CLASSES / SAMPLES;
        }
        for (uint64_t i = 0; i < SAMPLES; i++) {
                size_t best = 0;
                float nearest = 1e9F;

                afz_digit_draw(5, AFZ_DIGITS_HELD_OUT, i, pixels);
                for (size_t c = 0; c < AFZ_DIGIT_CLASSES; c++) {
                        float distance = 0;

                        for (size_t j = 0; j < AFZ_DIGIT_PIXELS; j++)
                                distance += (pixels[j] - mean[c][j]) * (pixels[j] - mean[c][j]);
                        if (distance < nearest) {
                                nearest = distance;
                                best = c;
                        }
                }
                correct += best == afz_digit_label(i);
        }
        assert_in_range(correct, SAMPLES * 35 / 100, SAMPLES * 90 / 100);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(deterministic),  cmocka_unit_test(seed_set_and_index_all_matter),
                cmocka_unit_test(balanced),       cmocka_unit_test(ink_within_bounds),
                cmocka_unit_test(classes_differ),
        };

        return cmocka_run_group_tests_name("demo_digits", tests, NULL, NULL);
}
