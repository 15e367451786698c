/* A loader over rows that say which they are: each epoch has every sample once, in an order that
 * depends on nothing but the seed; and it can be left and taken up again anywhere. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config.h"
#include "loader_rows.h"
#include "parts.h"
#include <sys/wait.h>
#if AFZ_HAVE_BLOSC
#include <blosc.h>
#endif

static int64_t ids[SAMPLES + 64], other[SAMPLES + 64];

static void test_budgets(void **state)
{
        static const uint64_t budgets[] = {512 * KIB, 1 * MIB, 2 * MIB, 16 * MIB};
        (void)state;
        for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
                struct afz_loader_options options = rows_options();
                struct afz_loader_facts facts;
                options.budget_bytes = budgets[i];
                struct afz_loader *loader = open_ok(&options);
                afz_loader_facts(loader, &facts);
                assert_int_equal(facts.samples, SAMPLES);
                assert_int_equal(facts.batches, (SAMPLES + 31) / 32);
                assert_true(facts.floor_bytes <= budgets[i]);
                assert_true((facts.group_samples == SAMPLES) == (i == 3));
                assert_true((facts.shuffle_quality == 1) == (i == 3));
                for (int epoch = 0; epoch < 3; epoch++) {
                        assert_all_once(ids, take_epoch(loader, WIDTH, ids), SAMPLES);
                        if (epoch)
                                assert_memory_not_equal(ids, other, sizeof *ids * SAMPLES);
                        memcpy(other, ids, sizeof ids);
                }
                afz_loader_close(loader);
        }
}

static void test_threads_change_nothing(void **state)
{
        (void)state;
        for (uint32_t threads = 1; threads <= 5; threads += 2) {
                struct afz_loader_options options = rows_options();
                options.budget_bytes = 2 * MIB;
                options.threads = threads;
                struct afz_loader *loader = open_ok(&options);
                assert_int_equal(take_epoch(loader, WIDTH, ids), SAMPLES);
                assert_int_equal(take_epoch(loader, WIDTH, ids), SAMPLES);
                if (threads > 1)
                        assert_memory_equal(ids, other, sizeof *ids * SAMPLES);
                memcpy(other, ids, sizeof ids);
                afz_loader_close(loader);
        }
}

static void test_kinds_of_shuffle(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_loader_facts facts;
        (void)state;
        options.shuffle = AFZ_SHUFFLE_NONE;
        options.budget_bytes = 2 * MIB;
        struct afz_loader *loader = open_ok(&options);
        assert_int_equal(take_epoch(loader, WIDTH, ids), SAMPLES);
        for (int64_t i = 0; i < SAMPLES; i++)
                assert_int_equal(ids[i], i);
        afz_loader_close(loader);

        options.shuffle = AFZ_SHUFFLE_GLOBAL; /* which does not fit: samples are read one by one */
        loader = open_ok(&options);
        afz_loader_facts(loader, &facts);
        assert_true(facts.shuffle_quality > 0.99);
        assert_all_once(ids, take_epoch(loader, WIDTH, ids), SAMPLES);
        afz_loader_close(loader);
}

/* Leaves after `batches`, takes it up with other options, and compares with the whole of it in
 * `ids`. */
static void leave_and_resume(const struct afz_loader_options *first,
                             const struct afz_loader_options *then, uint64_t batches)
{
        uint8_t state[AFZ_LOADER_STATE_BYTES];
        char why[AFZ_WHY_MAX];
        uint64_t count = 0;
        struct afz_loader *loader = open_ok(first);
        for (uint64_t i = 0; i < batches; i++)
                count += (uint64_t)take_batch(loader, WIDTH, other + count);
        afz_loader_state(loader, state);
        afz_loader_close(loader);
        loader = open_ok(then);
        if (afz_loader_seek(loader, state, why) < 0)
                fail_msg("%s", why);
        count += take_epoch(loader, WIDTH, other + count);
        assert_all_once(other, count, SAMPLES);
        if (first->budget_bytes == then->budget_bytes && first->batch == then->batch) {
                assert_memory_equal(ids, other, sizeof *ids * SAMPLES);
                assert_all_once(other, take_epoch(loader, WIDTH, other), SAMPLES);
        }
        afz_loader_close(loader);
}

static void test_resume(void **state)
{
        static const uint64_t budgets[] = {512 * KIB, 2 * MIB, 16 * MIB};
        (void)state;
        for (size_t b = 0; b < 3; b++) {
                struct afz_loader_options first = rows_options(), then = rows_options();
                first.budget_bytes = then.budget_bytes = budgets[b];
                then.threads = 3;
                struct afz_loader *loader = open_ok(&first);
                assert_int_equal(take_epoch(loader, WIDTH, ids), SAMPLES);
                afz_loader_close(loader);
                static const uint64_t at[] = {0, 1, 2, 63, 64, 65, 200, 600, 625, 626};
                for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
                        then.batch = first.batch;
                        leave_and_resume(&first, &then, at[i]);
                        then.batch = 57; /* then groups may be of another size, too */
                        leave_and_resume(&first, &then, at[i]);
                }
        }
}

static void test_resume_with_another_budget(void **state)
{
        (void)state;
        for (uint64_t batches = 1; batches < 600; batches += 97) {
                struct afz_loader_options small = rows_options(), large = rows_options();
                small.budget_bytes = 1 * MIB;
                large.budget_bytes = 16 * MIB;
                leave_and_resume(&small, &large, batches);
                large.budget_bytes = 96 * MIB; /* where chunks are of another size */
                leave_and_resume(&small, &large, batches);
                small.budget_bytes = 16 * MIB; /* where all fits, in both */
                leave_and_resume(&large, &small, batches);
        }
        /* A group that does not fit is told of, and the loader is as it was. */
        struct afz_loader_options large = rows_options(), small = rows_options();
        uint8_t place[AFZ_LOADER_STATE_BYTES];
        char why[AFZ_WHY_MAX];
        large.budget_bytes = 16 * MIB;
        small.budget_bytes = 1 * MIB;
        struct afz_loader *a = open_ok(&large), *b = open_ok(&small);
        take_batch(a, WIDTH, ids);
        afz_loader_state(a, place);
        uint64_t n = (uint64_t)take_batch(b, WIDTH, ids);
        assert_int_equal(afz_loader_seek(b, place, why), -ENOSPC);
        assert_non_null(strstr(why, "needs a budget of at least"));
        n += take_epoch(b, WIDTH, ids + n);
        assert_all_once(ids, n, SAMPLES);
        afz_loader_close(a);
        afz_loader_close(b);
}

/* What a seek that fails leaves behind is what was there before: the same groups, in the same
 * order, though the state was of chunks of another size. */
static void test_seek_that_fails(void **state)
{
        static const enum afz_shuffle ways[] = {AFZ_SHUFFLE_WINDOW, AFZ_SHUFFLE_NONE};
        (void)state;
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
                struct afz_loader_options large = rows_options(), small = rows_options();
                uint8_t place[AFZ_LOADER_STATE_BYTES];
                char why[AFZ_WHY_MAX];
                struct afz_loader_facts before, after;
                large.budget_bytes = 96 * MIB;
                small.budget_bytes = 1792472; /* of which nothing is left over in the arena */
                large.shuffle = small.shuffle = ways[w];
                struct afz_loader *a = open_ok(&large), *b = open_ok(&small);
                take_batch(a, WIDTH, ids);
                afz_loader_state(a, place);
                afz_loader_close(a);
                assert_int_equal(take_epoch(b, WIDTH, ids), SAMPLES);
                assert_int_equal(take_epoch(b, WIDTH, ids), SAMPLES);
                afz_loader_close(b);
                b = open_ok(&small);
                assert_int_equal(take_epoch(b, WIDTH, other), SAMPLES);
                afz_loader_facts(b, &before);
                assert_int_equal(afz_loader_seek(b, place, why), -ENOSPC);
                assert_non_null(strstr(why, "needs a budget of at least"));
                afz_loader_facts(b, &after);
                assert_int_equal(after.group_samples, before.group_samples);
                assert_int_equal(after.floor_bytes, before.floor_bytes);
                assert_int_equal(take_epoch(b, WIDTH, other), SAMPLES);
                assert_memory_equal(ids, other, sizeof *ids * SAMPLES);
                afz_loader_close(b);
        }
}

static void test_seek_within(void **state)
{
        struct afz_loader_options options = rows_options();
        uint8_t place[AFZ_LOADER_STATE_BYTES];
        char why[AFZ_WHY_MAX];
        (void)state;
        options.budget_bytes = 2 * MIB;
        struct afz_loader *loader = open_ok(&options);
        for (int i = 0; i < 100; i++)
                take_batch(loader, WIDTH, other);
        afz_loader_state(loader, place);
        uint64_t rest = take_epoch(loader, WIDTH, ids);
        for (int i = 0; i < 30; i++) {
                assert_int_equal(afz_loader_seek(loader, place, why), 0);
                if (i % 3 == 0) {
                        assert_int_equal(take_epoch(loader, WIDTH, other), rest);
                        assert_memory_equal(ids, other, rest * sizeof *ids);
                }
        }
        place[40] ^= 1;
        assert_int_equal(afz_loader_seek(loader, place, why), -EBADMSG);
        afz_loader_close(loader);
}

static void test_ranks(void **state)
{
        static const uint32_t ranks[] = {1, 2, 3, 7};
        uint8_t *seen = malloc(SAMPLES);
        (void)state;
        for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++) {
                uint64_t batches = 0, all = 0;
                memset(seen, 0, SAMPLES);
                for (uint32_t rank = 0; rank < ranks[r]; rank++) {
                        struct afz_loader_options options = rows_options();
                        options.budget_bytes = 1 * MIB;
                        options.rank = rank;
                        options.ranks = ranks[r];
                        struct afz_loader *loader = open_ok(&options);
                        uint64_t mine = 0;
                        for (int64_t n; (n = take_batch(loader, WIDTH, ids)) >= 0; mine++) {
                                for (int64_t i = 0; i < n; i++)
                                        assert_int_equal(seen[ids[i]]++, 0);
                                all += (uint64_t)n;
                        }
                        assert_true(rank == 0 ||
                                    mine == batches); /* or those with fewer would be waited for */
                        batches = mine;
                        afz_loader_close(loader);
                }
                assert_int_equal(all, SAMPLES);
        }
        free(seen);
}

/* 3 ranks leave in mid-epoch, 2 go on. */
static void test_ranks_change(void **state)
{
        uint8_t place[3][AFZ_LOADER_STATE_BYTES];
        uint64_t count = 0;
        (void)state;
        struct afz_loader_options options = rows_options();
        options.budget_bytes = 1 * MIB;
        options.ranks = 3;
        for (options.rank = 0; options.rank < 3; options.rank++) {
                struct afz_loader *loader = open_ok(&options);
                for (int i = 0; i < 77; i++)
                        count += (uint64_t)take_batch(loader, WIDTH, ids + count);
                afz_loader_state(loader, place[options.rank]);
                afz_loader_close(loader);
        }
        options.ranks = 2;
        options.batch = 50;
        for (options.rank = 0; options.rank < 2; options.rank++) {
                char why[AFZ_WHY_MAX];
                struct afz_loader *loader = open_ok(&options);
                assert_int_equal(afz_loader_seek(loader, place[2 * options.rank], why),
                                 0); /* any rank's will do */
                count += take_epoch(loader, WIDTH, ids + count);
                afz_loader_close(loader);
        }
        assert_all_once(ids, count, SAMPLES);
}

static void test_last_batch(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_loader *loader;
        char why[AFZ_WHY_MAX];
        (void)state;
        options.is_last_dropped = 1;
        loader = open_ok(&options);
        assert_int_equal(take_epoch(loader, WIDTH, ids), SAMPLES / 32 * 32);
        assert_int_equal(take_epoch(loader, WIDTH, ids), SAMPLES / 32 * 32);
        afz_loader_close(loader);
        options.batch = SAMPLES + 1;
        options.budget_bytes = 64 * MIB;
        assert_int_equal(afz_loader_open(&options, &loader, why), -EINVAL);
        options.is_last_dropped = 0;
        loader = open_ok(&options);
        assert_int_equal(take_epoch(loader, WIDTH, ids), SAMPLES);
        afz_loader_close(loader);
}

static void test_part(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_loader *loader;
        char why[AFZ_WHY_MAX];
        (void)state;
        options.budget_bytes = 1 * MIB;
        options.start = 1234;
        options.stop = 9999;
        loader = open_ok(&options);
        uint64_t count = take_epoch(loader, WIDTH, ids);
        for (uint64_t i = 0; i < count; i++)
                ids[i] -= 1234;
        assert_all_once(ids, count, 9999 - 1234);
        afz_loader_close(loader);
        options.stop = SAMPLES + 1;
        assert_int_equal(afz_loader_open(&options, &loader, why), -EINVAL);
}

static void test_floor(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_loader_facts facts;
        struct afz_loader *loader;
        char why[AFZ_WHY_MAX];
        (void)state;
        options.budget_bytes = 100 * KIB;
        assert_int_equal(afz_loader_open(&options, &loader, why), -ENOSPC);
        assert_non_null(strstr(why, "needs at least"));
        assert_non_null(strstr(why, "for batches of 32"));
        options.budget_bytes = 1 * MIB;
        loader = open_ok(&options);
        afz_loader_facts(loader, &facts);
        afz_loader_close(loader);
        options.budget_bytes = facts.floor_bytes;
        loader = open_ok(&options);
        assert_all_once(ids, take_epoch(loader, WIDTH, ids), SAMPLES);
        afz_loader_close(loader);
}

/* A Zarr without chunks yet. */
static struct afz_loader_options zarr_options(const char *codec, const char *shape, char path[128])
{
        static const char *paths[1];
        char text[512], name[160];
        snprintf(path, 128, "%s/%s.zarr", fixture_dir, codec);
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        snprintf(name, sizeof name, "%s/.zarray", path);
        int n = snprintf(text, sizeof text,
                         "{\"zarr_format\": 2, \"shape\": %s, \"chunks\": %s, \"dtype\": \"|u1\", "
                         "\"compressor\": {\"id\": \"%s\"}, \"fill_value\": 7, \"order\": \"C\", "
                         "\"filters\": null}",
                         shape, shape, codec);
        write_file(name, text, (size_t)n);
        paths[0] = path;
        return (struct afz_loader_options){.paths = paths, .path_count = 1, .batch = 2};
}

/* The arena and what codecs take from the heap stay within the budget together. */
static void test_heap_is_in_the_budget(void **state)
{
        char path[128], why[AFZ_WHY_MAX];
        (void)state;
        struct afz_loader_options options = zarr_options("zlib", "[10, 24]", path);
        for (uint64_t budget = 512 * KIB; budget < 6 * MIB; budget += 300 * KIB) {
                struct afz_loader *l;
                options.budget_bytes = budget;
                if (afz_loader_open(&options, &l, why) < 0)
                        continue; /* below the floor, or there is no zlib */
                uint64_t heap = l->needs.scratch_bytes - l->raw_bytes - l->decode_bytes;
                assert_true(heap > 0);
                assert_true(l->arena.bytes + l->plan.threads * heap + l->dataset[0].index_bytes <=
                            budget);
                afz_loader_close(l);
        }
}

#if AFZ_HAVE_BLOSC && AFZ_HAVE_JANSSON
/* Blosc takes three of its blocks from the heap, however large a file says that they are. */
static void test_large_blosc_blocks(void **state)
{
        enum { ALL = 16 << 20 };
        static const size_t blocks[] = {16 << 20, 4 << 20};
        char path[128], name[160], why[AFZ_WHY_MAX];
        uint8_t *plain = calloc(1, ALL), *encoded = malloc(ALL);
        struct afz_batch batch;
        (void)state;
        struct afz_loader_options options = zarr_options("blosc", "[16, 1048576]", path);
        options.budget_bytes = 256 * MIB;
        options.threads = 1;
        snprintf(name, sizeof name, "%s/0.0", path);
        for (size_t i = 0; i < 2; i++) {
                int n = blosc_compress_ctx(5, 0, 1, ALL, plain, encoded, ALL, "zstd", blocks[i],
                                           1); /* other codecs choose less by themselves */
                assert_true(n > 0);
                write_file(name, encoded, (size_t)n);
                struct afz_loader *l = open_ok(&options);
                assert_int_equal(afz_loader_next(l, &batch, why), i == 0 ? -EBADMSG : 1);
                assert_true(i > 0 || strstr(why, "blocksize"));
                if (i > 0)
                        afz_loader_release(l, batch.lease);
                afz_loader_close(l);
        }
        free(plain);
        free(encoded);
}
#endif

static void test_hoarder(void **state)
{
        enum { HELD = 40 };
        struct afz_loader_options options = rows_options();
        struct afz_loader_times times;
        struct afz_batch batch[HELD];
        char why[AFZ_WHY_MAX];
        int64_t first[HELD];
        (void)state;
        options.budget_bytes = 2 * MIB;
        struct afz_loader *loader = open_ok(&options);
        for (int i = 0; i < HELD; i++) {
                assert_int_equal(afz_loader_next(loader, &batch[i], why), 1);
                assert_int_equal(batch[i].is_copy, i >= AFZ_LEASES_MAX);
                assert_int_equal(batch[i].index, i);
                first[i] = *(int64_t *)batch[i].data[0];
        }
        afz_loader_times(loader, &times);
        assert_int_equal(times.held, HELD);
        assert_int_equal(times.copies, HELD - AFZ_LEASES_MAX);
        afz_loader_release(loader, batch[3].lease);
        afz_loader_release(loader, batch[3].lease); /* twice is once */
        afz_loader_release(loader, 12345678);
        afz_loader_times(loader, &times);
        assert_int_equal(times.held, HELD - 1);
        afz_loader_close(loader);
        for (int i = 0; i < HELD; i++) { /* the others stay as they were */
                if (i == 3)
                        continue;
                assert_int_equal(*(int64_t *)batch[i].data[0], first[i]);
                afz_loader_release(loader, batch[i].lease);
        }
}

static void test_less(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_loader_facts facts;
        uint64_t count = 0;
        (void)state;
        options.budget_bytes = 16 * MIB; /* all of it */
        struct afz_loader *loader = open_ok(&options);
        for (int i = 0; i < 50; i++)
                count += (uint64_t)take_batch(loader, WIDTH, ids + count);
        afz_loader_facts(loader, &facts);
        assert_int_equal(afz_loader_ask(loader, facts.floor_bytes + 512 * KIB), 0);
        count += take_epoch(loader, WIDTH, ids + count);
        assert_all_once(ids, count, SAMPLES);
        for (int epoch = 0; epoch < 3; epoch++) {
                assert_int_equal(afz_loader_ask(loader, epoch ? 1 : 2 * MIB), epoch ? -ENOSPC : 0);
                assert_all_once(ids, take_epoch(loader, WIDTH, ids), SAMPLES);
        }
        afz_loader_facts(loader, &facts);
        assert_true(facts.group_samples < SAMPLES);
        assert_int_equal(afz_loader_ask(loader, UINT64_MAX), 0);
        for (int epoch = 0; epoch < 3; epoch++)
                assert_all_once(ids, take_epoch(loader, WIDTH, ids), SAMPLES);
        afz_loader_close(loader);
}

/* Among ranks the order stays as it is, and the groups with it. */
static void test_less_among_ranks(void **state)
{
        struct afz_loader_options options = rows_options();
        (void)state;
        options.ranks = 2;
        struct afz_loader *loader = open_ok(&options);
        uint64_t all = take_epoch(loader, WIDTH, ids);
        afz_loader_close(loader);
        loader = open_ok(&options);
        uint64_t count = (uint64_t)take_batch(loader, WIDTH, other);
        assert_int_equal(afz_loader_ask(loader, 1 * MIB), -ENOSPC);
        count += take_epoch(loader, WIDTH, other + count);
        assert_int_equal(count, all);
        assert_memory_equal(ids, other, sizeof *ids * all);
        assert_int_equal(afz_loader_ask(loader, options.budget_bytes), 0);
        afz_loader_close(loader);
}

/* Less stays less, also where a state makes another plan of the arena. */
static void test_less_and_seek(void **state)
{
        struct afz_loader_options large = rows_options(), options = rows_options();
        struct afz_loader_facts facts;
        uint8_t place[AFZ_LOADER_STATE_BYTES];
        char why[AFZ_WHY_MAX];
        (void)state;
        large.budget_bytes = 96 * MIB;
        options.budget_bytes = 16 * MIB;
        struct afz_loader *loader = open_ok(&large);
        uint64_t count = (uint64_t)take_batch(loader, WIDTH, ids);
        afz_loader_state(loader, place);
        afz_loader_close(loader);
        loader = open_ok(&options);
        assert_int_equal(afz_loader_ask(loader, 2 * MIB), 0);
        assert_int_equal(afz_loader_seek(loader, place, why), 0);
        afz_loader_facts(loader, &facts);
        assert_true(facts.group_samples < SAMPLES);
        count += take_epoch(loader, WIDTH, ids + count);
        assert_all_once(ids, count, SAMPLES);
        assert_all_once(ids, take_epoch(loader, WIDTH, ids), SAMPLES);
        afz_loader_close(loader);
}

/* Who holds batches when less is asked for has all that may be made in their hands. */
static void test_less_while_held(void **state)
{
        enum { HELD = 6 };
        struct afz_loader_options options = rows_options();
        struct afz_batch batch[HELD];
        char why[AFZ_WHY_MAX];
        uint64_t count = 0;
        (void)state;
        options.budget_bytes = 16 * MIB;
        struct afz_loader *loader = open_ok(&options);
        for (int i = 0; i < HELD; i++) {
                assert_int_equal(afz_loader_next(loader, &batch[i], why), 1);
                for (uint32_t j = 0; j < batch[i].count; j++)
                        ids[count++] = ((int64_t *)batch[i].data[0])[j * WIDTH];
        }
        assert_int_equal(afz_loader_ask(loader, 1), -ENOSPC);
        for (int64_t n; (n = take_batch(loader, WIDTH, ids + count)) >= 0;) {
                count += (uint64_t)n;
                while (afz_loader_wait(loader, 20000) == 0)
                        fail_msg("nothing comes after %llu samples", (unsigned long long)count);
        }
        assert_all_once(ids, count, SAMPLES);
        for (int i = 0; i < HELD; i++)
                afz_loader_release(loader, batch[i].lease);
        assert_all_once(ids, take_epoch(loader, WIDTH, ids), SAMPLES);
        afz_loader_close(loader);
}

static void test_forked(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_loader *loader = open_ok(&options);
        (void)state;
        take_batch(loader, WIDTH, ids);
        pid_t child = fork();
        if (child == 0) {
                struct afz_batch batch;
                struct afz_loader_facts facts;
                char why[AFZ_WHY_MAX];
                int r = afz_loader_next(loader, &batch, why);
                afz_loader_facts(loader, &facts);
                afz_loader_release(loader, 256);
                afz_loader_close(loader);
                _exit(r == -EPERM && strstr(why, "fork") && facts.samples == SAMPLES ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        afz_loader_close(loader);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_budgets),
                cmocka_unit_test(test_threads_change_nothing),
                cmocka_unit_test(test_kinds_of_shuffle),
                cmocka_unit_test(test_resume),
                cmocka_unit_test(test_resume_with_another_budget),
                cmocka_unit_test(test_seek_that_fails),
                cmocka_unit_test(test_seek_within),
                cmocka_unit_test(test_ranks),
                cmocka_unit_test(test_ranks_change),
                cmocka_unit_test(test_last_batch),
                cmocka_unit_test(test_part),
                cmocka_unit_test(test_floor),
                cmocka_unit_test(test_heap_is_in_the_budget),
#if AFZ_HAVE_BLOSC && AFZ_HAVE_JANSSON
                cmocka_unit_test(test_large_blosc_blocks),
#endif
                cmocka_unit_test(test_hoarder),
                cmocka_unit_test(test_less),
                cmocka_unit_test(test_less_and_seek),
                cmocka_unit_test(test_less_among_ranks),
                cmocka_unit_test(test_less_while_held),
                cmocka_unit_test(test_forked),
        };
        return cmocka_run_group_tests(tests, make_rows, fixture_remove);
}
