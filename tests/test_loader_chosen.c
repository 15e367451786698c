/* Some of the samples, or draws by weight: the arithmetic, and loaders that go by it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chosen.h"
#include "loader_fixture.h"
#include "order.h"

enum { SAMPLES = 6000, WIDTH = 32, DRAWS = 40000 };

static int64_t ids[2 * DRAWS], other[2 * DRAWS];
static uint32_t seen[SAMPLES];

static void count_samples(const int64_t *of, uint64_t count)
{
        memset(seen, 0, sizeof seen);
        for (uint64_t i = 0; i < count; i++) {
                assert_in_range(of[i], 0, SAMPLES - 1);
                seen[of[i]]++;
        }
}

/* ---- arithmetic ---- */

static void test_masses(void **state)
{
        const double weights[] = {0, 1, 3, 0, 4, 0};
        uint64_t list[6], bad = 0;
        struct afz_chosen c;
        (void)state;
        assert_int_equal(afz_chosen_weights(&c, list, weights, 6, 16, &bad), 0);
        assert_int_equal(afz_chosen_mass(&c, 0, 6), c.total);
        assert_int_equal(afz_chosen_mass(&c, 0, 1), 0);
        assert_int_equal(afz_chosen_mass(&c, 1, 3), afz_chosen_mass(&c, 4, 5));
        for (uint64_t epoch = 0; epoch < 20; epoch++) {
                assert_int_equal(afz_chosen_marks(&c, 0, 1, epoch), 0);
                assert_int_equal(afz_chosen_marks(&c, c.total, 1, epoch), 16);
                assert_int_equal(afz_chosen_marks(&c, c.total / 2, 1, epoch), 8);
        }
        for (uint64_t n = 0; n < 1000; n++) { /* what has no weight never comes */
                uint64_t sample = afz_chosen_sample(&c, afz_chosen_at(&c, 0), 0, 6, n, 5);
                assert_true(sample == 1 || sample == 2 || sample == 4);
                assert_int_equal(afz_chosen_sample(&c, afz_chosen_at(&c, 3), 3, 6, n, 5), 4);
        }
        const uint64_t subset[] = {5, 2, 2, 9};
        assert_int_equal(afz_chosen_subset(&c, list, subset, 4, 10, &bad), 0);
        assert_int_equal(afz_chosen_mass(&c, 2, 3), 2);
        assert_int_equal(afz_chosen_mass(&c, 3, 9), 1);
        assert_int_equal(afz_chosen_marks(&c, 3, 1, 7), 3);
        assert_int_equal(afz_chosen_sample(&c, afz_chosen_at(&c, 3), 3, 10, 1, 0), 9);
}

static void test_extreme_weights(void **state)
{
        static const struct {
                double weights[3];
                int r;
                uint64_t bad;
        } cases[] = {
                {{1, -1, 1}, -EINVAL, 1},
                {{1, 1, NAN}, -EINVAL, 2},
                {{INFINITY, 1, 1}, -EINVAL, 0},
                {{0, 0, -0.0}, -EINVAL, 3},
                {{1e300, 1e-300, 0}, 0, 0},
                {{5e-324, 0, 5e-324}, 0, 0},
                {{1.7e308, 1.7e308, 1.7e308}, 0, 0},
        };
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                uint64_t list[3], bad = 0;
                struct afz_chosen c;
                assert_int_equal(afz_chosen_weights(&c, list, cases[i].weights, 3, 9, &bad),
                                 cases[i].r);
                assert_int_equal(bad, cases[i].bad);
                for (uint64_t k = 0; cases[i].r == 0 && k < 3; k++)
                        assert_int_equal(afz_chosen_mass(&c, k, k + 1) > 0,
                                         cases[i].weights[k] > 0);
        }
}

/* All groups of an epoch, one after the other: their starts meet, and they make the epoch. */
static void test_groups_meet(void **state)
{
        static double weights[SAMPLES];
        static uint64_t list[SAMPLES];
        struct afz_chosen c;
        struct afz_order order;
        struct afz_permutation chunks;
        uint64_t bad;
        (void)state;
        for (uint64_t i = 0; i < SAMPLES; i++)
                weights[i] = i % 500 < 100 ? 0 : (double)(i % 7);
        assert_int_equal(afz_chosen_weights(&c, list, weights, SAMPLES, 777, &bad), 0);
        afz_order_init(&order, 3, SAMPLES, 100, true);
        order.chosen = &c;
        for (uint64_t epoch = 0; epoch < 5; epoch++) {
                uint64_t mass = 0, at = 0;
                afz_order_epoch(&order, epoch, &chunks);
                for (uint64_t first = 0; first < order.chunks; first += 4) {
                        struct afz_group_order group;
                        struct afz_chosen_chunk table[5];
                        assert_int_equal(afz_order_mass(&order, &chunks, first), mass);
                        afz_order_group(&order, epoch, &chunks, first, 4, &group);
                        mass = afz_order_choose(&order, epoch, &chunks, mass, table, &group);
                        assert_int_equal(group.start, at);
                        at += group.samples;
                        for (uint64_t i = 0; i < group.samples; i++) {
                                uint32_t chunk, row;
                                afz_group_at(&group, i, &chunk, &row);
                                uint64_t sample =
                                        afz_permutation_at(&chunks, first + chunk) * 100 + row;
                                assert_in_range(row, 0, 99);
                                assert_true(weights[sample] > 0);
                        }
                }
                assert_int_equal(at, 777);
                assert_int_equal(mass, c.total);
        }
}

/* ---- loaders ---- */

static void test_subset(void **state)
{
        static const uint64_t budgets[] = {512 * KIB, 2 * MIB, 16 * MIB};
        static uint64_t subset[SAMPLES];
        uint64_t count = 0;
        (void)state;
        for (uint64_t i = 0; i < 2000; i++) /* not in order, with gaps, and one twice */
                subset[count++] = (i * 997) % 2000 * 2 + 1000;
        subset[count++] = 1000;
        for (size_t b = 0; b < 3; b++)
                for (enum afz_shuffle kind = 0; kind <= AFZ_SHUFFLE_GLOBAL; kind++) {
                        struct afz_loader_options options = rows_options();
                        struct afz_loader_facts facts;
                        options.budget_bytes = budgets[b];
                        options.shuffle = kind;
                        options.subset = subset;
                        options.subset_count = count;
                        struct afz_loader *loader = open_ok(&options);
                        afz_loader_facts(loader, &facts);
                        assert_int_equal(facts.samples, count);
                        assert_int_equal(facts.batches, (count + 31) / 32);
                        for (int epoch = 0; epoch < 3; epoch++) {
                                assert_int_equal(take_epoch(loader, WIDTH, ids), count);
                                count_samples(ids, count);
                                for (uint64_t i = 0; i < SAMPLES; i++)
                                        assert_int_equal(seen[i],
                                                         (i >= 1000 && i < 5000 && i % 2 == 0) +
                                                                 (i == 1000));
                                for (uint64_t i = 1; kind == AFZ_SHUFFLE_NONE && i < count; i++)
                                        assert_true(ids[i - 1] <= ids[i]);
                        }
                        afz_loader_close(loader);
                }
}

static double weight_of(uint64_t sample)
{
        return sample % 3000 < 1000 ? 0 : (double)(1 + sample % 4);
}

static struct afz_loader_options weighted(uint64_t budget_bytes)
{
        static double weights[SAMPLES];
        struct afz_loader_options options = rows_options();
        for (uint64_t i = 0; i < SAMPLES; i++)
                weights[i] = weight_of(i);
        options.budget_bytes = budget_bytes;
        options.weights = weights;
        options.weight_count = SAMPLES;
        options.draws = DRAWS;
        return options;
}

/* Of the draws with putting back, how far from what the weights say: chi-square over all samples.
 * Chunks have what they are worth, which can only bring it down a little. */
static void test_weights(void **state)
{
        static const uint64_t budgets[] = {512 * KIB, 2 * MIB, 16 * MIB};
        (void)state;
        for (size_t b = 0; b < 3; b++) {
                struct afz_loader_options options = weighted(budgets[b]);
                struct afz_loader *loader = open_ok(&options);
                for (int epoch = 0; epoch < 2; epoch++) {
                        double all = 0, chi = 0, kinds = 0;
                        assert_int_equal(take_epoch(loader, WIDTH, ids), DRAWS);
                        count_samples(ids, DRAWS);
                        for (uint64_t i = 0; i < SAMPLES; i++)
                                all += weight_of(i);
                        for (uint64_t i = 0; i < SAMPLES; i++) {
                                double expected = weight_of(i) / all * DRAWS;
                                if (weight_of(i) > 0) {
                                        chi += (seen[i] - expected) * (seen[i] - expected) /
                                               expected;
                                        kinds++;
                                } else {
                                        assert_int_equal(seen[i], 0);
                                }
                        }
                        double apart = 4 * sqrt(2 * kinds);
                        if (chi > kinds + apart || chi < kinds - 3 * apart)
                                fail_msg("chi-square %.0f of %.0f", chi, kinds);
                }
                /* another epoch has other draws */
                assert_int_equal(take_epoch(loader, WIDTH, other), DRAWS);
                assert_memory_not_equal(ids, other, sizeof *ids * DRAWS);
                afz_loader_close(loader);
        }
}

/* What an epoch goes on with is what it would have had, for any number of threads. */
static void test_resume(void **state)
{
        static const uint64_t budgets[] = {768 * KIB, 2 * MIB, 16 * MIB};
        char why[AFZ_WHY_MAX];
        uint8_t place[AFZ_LOADER_STATE_BYTES];
        (void)state;
        for (size_t b = 0; b < 3; b++) {
                struct afz_loader_options options = weighted(budgets[b]);
                options.draws = SAMPLES;
                struct afz_loader *loader = open_ok(&options);
                assert_int_equal(take_epoch(loader, WIDTH, ids), SAMPLES);
                assert_int_equal(take_epoch(loader, WIDTH, ids + SAMPLES), SAMPLES);
                afz_loader_close(loader);
                for (uint64_t batches = 0; batches <= 187; batches += 17) {
                        uint64_t count = 0;
                        options.threads = 1;
                        loader = open_ok(&options);
                        for (uint64_t i = 0; i < batches; i++)
                                count += (uint64_t)take_batch(loader, WIDTH, other + count);
                        afz_loader_state(loader, place);
                        afz_loader_close(loader);
                        options.threads = 4;
                        loader = open_ok(&options);
                        if (afz_loader_seek(loader, place, why) < 0)
                                fail_msg("%s", why);
                        count += take_epoch(loader, WIDTH, other + count);
                        count += take_epoch(loader, WIDTH, other + count);
                        assert_int_equal(count, 2 * SAMPLES);
                        assert_memory_equal(ids, other, sizeof *ids * count);
                        afz_loader_close(loader);
                }
                options = weighted(budgets[b]); /* with other weights, or none: another order */
                options.draws = SAMPLES;
                double *weights = (double *)options.weights;
                weights[5999] += 1;
                loader = open_ok(&options);
                assert_int_equal(afz_loader_seek(loader, place, why), -EINVAL);
                afz_loader_close(loader);
                options = rows_options();
                options.budget_bytes = budgets[b];
                loader = open_ok(&options);
                assert_int_equal(afz_loader_seek(loader, place, why), -EINVAL);
                afz_loader_close(loader);
        }
}

static void test_ranks(void **state)
{
        struct afz_loader_options options = weighted(2 * MIB);
        (void)state;
        options.draws = 5000;
        struct afz_loader *loader = open_ok(&options);
        assert_int_equal(take_epoch(loader, WIDTH, ids), 5000);
        afz_loader_close(loader);
        options.ranks = 3;
        for (options.rank = 0; options.rank < 3; options.rank++) {
                uint64_t batch = 0;
                loader = open_ok(&options);
                for (int64_t n; (n = take_batch(loader, WIDTH, other)) >= 0; batch++)
                        if (n == 32)
                                assert_memory_equal(other, ids + (batch * 3 + options.rank) * 32,
                                                    32 * sizeof *ids);
                assert_int_equal(batch, 53);
                afz_loader_close(loader);
        }
}

static void test_refused(void **state)
{
        static const double zeros[SAMPLES];
        static const uint64_t beyond[] = {1, SAMPLES};
        struct afz_loader *loader;
        char why[AFZ_WHY_MAX];
        struct afz_loader_options options = weighted(2 * MIB);
        (void)state;
        options.weight_count--;
        assert_int_equal(afz_loader_open(&options, &loader, why), -EINVAL);
        assert_string_equal(why, "there are 5999 weights and 6000 samples");
        options.weight_count++;
        options.weights = zeros;
        assert_int_equal(afz_loader_open(&options, &loader, why), -EINVAL);
        assert_string_equal(why, "all weights are 0");
        options.subset = beyond;
        options.subset_count = 2;
        assert_int_equal(afz_loader_open(&options, &loader, why), -EINVAL);
        options.weights = NULL;
        options.draws = 0;
        assert_int_equal(afz_loader_open(&options, &loader, why), -EINVAL);
        assert_string_equal(why, "the subset has sample 6000; there are 6000, from 0 on");
        options.subset_count = 0;
        assert_int_equal(afz_loader_open(&options, &loader, why), -EINVAL);
        options.subset = NULL;
        options.draws = 7;
        assert_int_equal(afz_loader_open(&options, &loader, why), -EINVAL);
        options = weighted(32 * KIB); /* the list alone is more */
        assert_int_equal(afz_loader_open(&options, &loader, why), -ENOMEM);
        options = weighted(100 * KIB);
        assert_int_equal(afz_loader_open(&options, &loader, why), -ENOSPC);
}

static int make(void **state)
{
        fixture_make(state);
        write_rows(fixture_path, SAMPLES, WIDTH);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_masses),      cmocka_unit_test(test_extreme_weights),
                cmocka_unit_test(test_groups_meet), cmocka_unit_test(test_subset),
                cmocka_unit_test(test_weights),     cmocka_unit_test(test_resume),
                cmocka_unit_test(test_ranks),       cmocka_unit_test(test_refused),
        };
        return cmocka_run_group_tests(tests, make, fixture_remove);
}
