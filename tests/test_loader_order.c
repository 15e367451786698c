/* Permutations, groups, the plan of a budget, and places as bytes: arithmetic alone. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "order.h"
#include "plan.h"
#include "state.h"

#define MIB (UINT64_C(1) << 20)

static void test_permutation(void **state)
{
        static const uint64_t counts[] = {1, 2, 3, 5, 63, 64, 65, 1000, 4097, 100000};
        (void)state;
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                struct afz_permutation p;
                uint8_t *seen = calloc(1, counts[c]);
                afz_permutation_init(&p, counts[c], 42 + c);
                for (uint64_t i = 0; i < counts[c]; i++) {
                        uint64_t thing = afz_permutation_at(&p, i);
                        assert_true(thing < counts[c] && !seen[thing]);
                        seen[thing] = 1;
                        assert_int_equal(afz_permutation_place(&p, thing), i);
                }
                free(seen);
        }
}

/* Over many keys each thing comes to each place about as often: chi-square, with room for bad luck.
 */
static void test_permutation_is_fair(void **state)
{
        enum { THINGS = 7, KEYS = 20000 };
        uint32_t hits[THINGS][THINGS] = {0};
        double chi = 0, expected = (double)KEYS / THINGS;
        (void)state;
        for (uint64_t key = 0; key < KEYS; key++) {
                struct afz_permutation p;
                afz_permutation_init(&p, THINGS, afz_mix(key, 1, 2));
                for (uint64_t i = 0; i < THINGS; i++)
                        hits[i][afz_permutation_at(&p, i)]++;
        }
        for (int i = 0; i < THINGS; i++)
                for (int k = 0; k < THINGS; k++)
                        chi += (hits[i][k] - expected) * (hits[i][k] - expected) / expected;
        assert_true(chi < 90); /* 36 degrees of freedom: by chance once in a million */
}

/* Neighbours do not stay neighbours. */
static void test_permutation_scatters(void **state)
{
        enum { THINGS = 50000 };
        struct afz_permutation p;
        double sum = 0;
        uint32_t next_door = 0;
        (void)state;
        afz_permutation_init(&p, THINGS, 9);
        for (uint64_t i = 0; i + 1 < THINGS; i++) {
                double far =
                        (double)afz_permutation_at(&p, i + 1) - (double)afz_permutation_at(&p, i);
                sum += far < 0 ? -far : far;
                next_door += far == 1 || far == -1;
        }
        assert_true(sum / THINGS > THINGS * 0.32 && sum / THINGS < THINGS * 0.347); /* a third */
        assert_true(next_door < 12);                                                /* about 2 */
}

static void check_epoch(const struct afz_order *order, uint64_t epoch, uint32_t group_chunks,
                        uint64_t *ret)
{
        struct afz_permutation chunks;
        struct afz_group_order group;
        uint64_t at = 0;
        uint8_t *seen = calloc(1, order->samples);
        afz_order_epoch(order, epoch, &chunks);
        for (uint64_t first = 0; first < order->chunks; first += group_chunks) {
                uint64_t left = order->chunks - first;
                afz_order_group(order, epoch, &chunks, first,
                                left < group_chunks ? (uint32_t)left : group_chunks, &group);
                assert_int_equal(group.start, at);
                for (uint64_t i = 0; i < group.samples; i++) {
                        uint32_t chunk, row;
                        afz_group_at(&group, i, &chunk, &row);
                        assert_true(chunk < group.chunks);
                        uint64_t number = afz_permutation_at(&chunks, first + chunk);
                        assert_true(row < afz_order_chunk_samples(order, number));
                        uint64_t sample = number * order->chunk_samples + row;
                        assert_false(seen[sample]);
                        seen[sample] = 1;
                        ret[at++] = sample;
                }
        }
        assert_int_equal(at, order->samples);
        free(seen);
}

static void test_every_sample_once(void **state)
{
        static const struct {
                uint64_t samples, chunk;
                uint32_t group;
        } cases[] = {{1, 1, 1},     {10, 3, 1},   {10, 3, 2},  {10, 3, 4},
                     {1000, 7, 13}, {999, 1, 50}, {64, 64, 1}, {65, 64, 1}};
        uint64_t ids[1000], again[1000];
        (void)state;
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
                for (uint64_t epoch = 0; epoch < 5; epoch++) {
                        struct afz_order order;
                        afz_order_init(&order, 3, cases[c].samples, cases[c].chunk, true);
                        check_epoch(&order, epoch, cases[c].group, ids);
                        check_epoch(&order, epoch, cases[c].group, again);
                        assert_memory_equal(ids, again, cases[c].samples * sizeof *ids);
                        afz_order_init(&order, 3, cases[c].samples, cases[c].chunk, false);
                        check_epoch(&order, epoch, cases[c].group, ids);
                        for (uint64_t i = 0; i < cases[c].samples; i++)
                                assert_int_equal(ids[i], i);
                }
}

static void test_quality(void **state)
{
        struct afz_order order;
        (void)state;
        afz_order_init(&order, 1, 100000, 100, true);
        assert_true(afz_order_quality(&order, 1000, 64) == 1); /* all in one group */
        double few = afz_order_quality(&order, 4, 64), some = afz_order_quality(&order, 64, 64),
               many = afz_order_quality(&order, 900, 64);
        assert_true(0 < few && few < 0.1 && few < some && some < many && many < 1);
        assert_true(some > 0.45 &&
                    some < 0.55); /* as many chunks as samples in a batch: twice the variance */
        afz_order_init(&order, 1, 100000, 1, true);
        assert_true(afz_order_quality(&order, 1000, 64) > 0.999); /* samples one by one */
        afz_order_init(&order, 1, 100000, 100, false);
        assert_true(afz_order_quality(&order, 1000, 64) == 0);
}

static void test_plan(void **state)
{
        struct afz_plan plan;
        struct afz_plan_needs needs = {.index_bytes = 4096,
                                       .scratch_bytes = MIB,
                                       .batch_bytes = MIB,
                                       .table_bytes = 8,
                                       .slot_bytes = MIB,
                                       .chunks = 1000,
                                       .threads = 4,
                                       .is_kept = true};
        (void)state;
        assert_int_equal(afz_plan_make(&needs, MIB, &plan), -ENOSPC);
        uint64_t floor = plan.floor_bytes;
        assert_in_range(floor, 6 * MIB, 6 * MIB + 8192);
        assert_int_equal(afz_plan_make(&needs, floor - 1, &plan), -ENOSPC);
        for (uint64_t budget = floor; budget < 2000 * MIB; budget += budget / 7) {
                assert_int_equal(afz_plan_make(&needs, budget, &plan), 0);
                assert_true(plan.bytes + needs.index_bytes <= budget);
                assert_true(plan.threads >= 1 && plan.threads <= 4);
                assert_true(plan.batches >= AFZ_BATCHES_LEAST && plan.batches <= AFZ_BATCHES_MAX);
                assert_true(plan.group >= 1 && plan.slots >= plan.group);
                assert_true(plan.is_whole ? plan.slots == 1000 : plan.slots >= 2 * plan.group);
                assert_true(plan.is_whole == (budget > 1025 * MIB) ||
                            (budget > 1000 * MIB && budget < 1030 * MIB));
        }
        needs.is_one_group = true;
        assert_int_equal(afz_plan_make(&needs, 512 * MIB, &plan), -ENOSPC);
        assert_true(plan.floor_bytes > 1000 * MIB && plan.floor_bytes < 1010 * MIB);
        needs.is_kept = false; /* drawn anew in each epoch */
        assert_int_equal(afz_plan_make(&needs, 1100 * MIB, &plan), 0);
        assert_true(plan.group == 1000 && plan.slots == 1000 && !plan.is_whole);
}

static void test_plan_hostile(void **state)
{
        struct afz_plan plan;
        struct afz_plan_needs needs = {.index_bytes = UINT64_MAX / 2,
                                       .scratch_bytes = UINT64_MAX / 2,
                                       .batch_bytes = UINT64_MAX / 4,
                                       .table_bytes = 8,
                                       .slot_bytes = UINT64_MAX / 4,
                                       .chunks = UINT64_MAX,
                                       .threads = 16};
        (void)state;
        assert_int_equal(afz_plan_make(&needs, UINT64_MAX, &plan), -EOVERFLOW);
}

static void test_groups_are_even(void **state)
{
        struct afz_plan plan;
        struct afz_plan_needs needs = {.batch_bytes = 4096,
                                       .table_bytes = 8,
                                       .slot_bytes = MIB,
                                       .chunks = 101,
                                       .threads = 1,
                                       .is_kept = true};
        (void)state;
        assert_int_equal(afz_plan_make(&needs, 100 * MIB, &plan), 0);
        assert_int_equal(plan.group, 34); /* 34, 34, 33, and not 49, 49, 3 */
}

static void test_place(void **state)
{
        uint8_t bytes[AFZ_LOADER_STATE_BYTES];
        struct afz_place got, place = {.seed = UINT64_MAX,
                                       .samples = 1000,
                                       .start = 5,
                                       .chunk_samples = 30,
                                       .shuffle = AFZ_SHUFFLE_WINDOW,
                                       .epoch = 3,
                                       .first = 12,
                                       .group = 4,
                                       .offset = 77,
                                       .batches = 9,
                                       .draws = 76,
                                       .chosen = 11,
                                       .before = {20, 40},
                                       .before_size = {8, 4},
                                       .size = 2};
        (void)state;
        afz_place_pack(&place, bytes);
        assert_int_equal(afz_place_unpack(bytes, &got), -EBADMSG); /* behind the epoch's end */
        place.draws = 77;
        afz_place_pack(&place, bytes);
        assert_int_equal(afz_place_unpack(bytes, &got), 0);
        assert_int_equal(got.draws, 77);
        assert_int_equal(got.chosen, 11);
        assert_int_equal(got.seed, UINT64_MAX);
        assert_int_equal(got.first, 12);
        assert_int_equal(got.offset, 77);
        assert_memory_equal(got.before, place.before, sizeof got.before);
        assert_memory_equal(got.before_size, place.before_size, sizeof got.before_size);
        assert_int_equal(got.size, 2);
        for (int i = 0; i < AFZ_LOADER_STATE_BYTES; i++) {
                bytes[i] ^= 0x10;
                assert_int_equal(afz_place_unpack(bytes, &got), -EBADMSG);
                bytes[i] ^= 0x10;
        }
        static const struct afz_place wrong[] = {
                {.samples = 0, .chunk_samples = 1},
                {.samples = 10, .chunk_samples = 0},
                {.samples = 10, .chunk_samples = 5, .first = 3},
                {.samples = 10, .chunk_samples = 5, .first = 1, .group = 2},
                {.samples = 10, .chunk_samples = 5, .offset = 11},
                {.samples = 10, .chunk_samples = 5, .shuffle = 3},
                {.samples = 10, .chunk_samples = 5, .draws = 3},
                {.samples = 10, .chunk_samples = 5, .chosen = 3},
                {.samples = 10, .chunk_samples = 5, .chosen = 3, .draws = UINT64_MAX},
                {.samples = UINT64_MAX, .chunk_samples = 5},
                {.samples = 10, .chunk_samples = 5, .size = 3},
                {.samples = 10, .chunk_samples = 5, .before = {1}},
                {.samples = 10, .chunk_samples = 5, .before_size = {1}},
                {.samples = 10, .chunk_samples = 5, .before = {1}, .before_size = {3}},
                {.samples = 10, .chunk_samples = 5, .before = {0, 1}, .before_size = {0, 1}},
                {.samples = 10, .chunk_samples = 5, .before = {2, 2}, .before_size = {1, 1}},
                {.samples = 10, .chunk_samples = 5, .before = {UINT64_MAX}, .before_size = {1}},
        };
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                afz_place_pack(&wrong[i], bytes);
                assert_int_equal(afz_place_unpack(bytes, &got), -EBADMSG);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_permutation),
                cmocka_unit_test(test_permutation_is_fair),
                cmocka_unit_test(test_permutation_scatters),
                cmocka_unit_test(test_every_sample_once),
                cmocka_unit_test(test_quality),
                cmocka_unit_test(test_plan),
                cmocka_unit_test(test_plan_hostile),
                cmocka_unit_test(test_groups_are_even),
                cmocka_unit_test(test_place),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
