/* Many threads at once, with all that may be called from any of them: for the thread sanitizer, and
 * for every sample once all the same. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loader_fixture.h"

enum { SAMPLES = 4000, WIDTH = 32, HANDS = 3, QUEUE = 16 };

static struct afz_loader *loader;
static atomic_int is_over;

/* Leases that other threads are to end. */
static struct {
        pthread_mutex_t lock;
        uint64_t lease[QUEUE];
        int count;
} shelf = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *end_leases(void *unused)
{
        (void)unused;
        while (!atomic_load(&is_over)) {
                uint64_t lease = 0;
                pthread_mutex_lock(&shelf.lock);
                if (shelf.count > 0)
                        lease = shelf.lease[--shelf.count];
                pthread_mutex_unlock(&shelf.lock);
                if (lease)
                        afz_loader_release(loader, lease);
                else
                        usleep(50);
        }
        return NULL;
}

static void *ask_around(void *unused)
{
        struct afz_loader_times times;
        struct afz_loader_facts facts;
        uint32_t turn = 0;
        (void)unused;
        while (!atomic_load(&is_over)) {
                afz_loader_ask(loader, (turn++ * 7 % 10) * 256 * KIB);
                afz_loader_times(loader, &times);
                afz_loader_facts(loader, &facts);
                usleep(200);
        }
        return NULL;
}

static void put_off(uint64_t lease)
{
        pthread_mutex_lock(&shelf.lock);
        bool is_put = shelf.count < QUEUE;
        if (is_put)
                shelf.lease[shelf.count++] = lease;
        pthread_mutex_unlock(&shelf.lock);
        if (!is_put)
                afz_loader_release(loader, lease);
}

/* An epoch, of which a part is gone back over now and then. */
static void go_through(uint8_t *seen, uint32_t epoch)
{
        uint8_t place[AFZ_LOADER_STATE_BYTES];
        char why[AFZ_WHY_MAX];
        struct afz_batch batch;
        uint32_t turn = 0;
        memset(seen, 0, SAMPLES);
        for (int r; (r = afz_loader_next(loader, &batch, why)) != 0; turn++) {
                if (r < 0)
                        fail_msg("%s", why);
                const int64_t *rows = batch.data[0];
                for (uint32_t i = 0; i < batch.count; i++) {
                        int64_t id = rows[i * WIDTH];
                        assert_int_equal(rows[i * WIDTH + WIDTH - 1], id + WIDTH - 1);
                        assert_int_equal(seen[id]++, 0);
                }
                put_off(batch.lease);
                if (turn % 17 == epoch) { /* a look ahead that is taken back */
                        afz_loader_state(loader, place);
                        if (afz_loader_next(loader, &batch, why) == 1)
                                put_off(batch.lease);
                        if (afz_loader_seek(loader, place, why) < 0)
                                fail_msg("%s", why);
                }
        }
        for (uint32_t i = 0; i < SAMPLES; i++)
                assert_int_equal(seen[i], 1);
}

static void test_all_at_once(void **state)
{
        pthread_t hand[HANDS], asker;
        uint8_t *seen = malloc(SAMPLES);
        (void)state;
        write_rows(fixture_path, SAMPLES, WIDTH);
        struct afz_loader_options options = rows_options();
        options.budget_bytes = 2 * MIB;
        options.threads = 6;
        loader = open_ok(&options);
        for (int i = 0; i < HANDS; i++)
                assert_int_equal(pthread_create(&hand[i], NULL, end_leases, NULL), 0);
        assert_int_equal(pthread_create(&asker, NULL, ask_around, NULL), 0);
        for (uint32_t epoch = 0; epoch < 12; epoch++)
                go_through(seen, epoch);
        atomic_store(&is_over, 1);
        for (int i = 0; i < HANDS; i++)
                pthread_join(hand[i], NULL);
        pthread_join(asker, NULL);
        for (int i = 0; i < shelf.count; i++)
                afz_loader_release(loader, shelf.lease[i]);
        afz_loader_close(loader);
        free(seen);
}

/* However often less and more are asked for: one of several ranks has the order of all, and one
 * alone each sample once. */
static void test_less_and_more(void **state)
{
        static int64_t ids[2][SAMPLES];
        (void)state;
        write_rows(fixture_path, SAMPLES, WIDTH);
        for (uint32_t ranks = 1; ranks <= 2; ranks++) {
                struct afz_loader_options options = rows_options();
                pthread_t asker;
                options.budget_bytes = 768 * KIB; /* of a megabyte: loading does not end */
                options.ranks = ranks;
                options.threads = 4;
                for (int is_asked = 0; is_asked < 2; is_asked++) {
                        loader = open_ok(&options);
                        atomic_store(&is_over, !is_asked);
                        assert_int_equal(pthread_create(&asker, NULL, ask_around, NULL), 0);
                        for (int epoch = 0; epoch < 40; epoch++) {
                                uint64_t count = take_epoch(loader, WIDTH, ids[is_asked]);
                                assert_int_equal(count, SAMPLES / ranks);
                                if (ranks == 1)
                                        assert_all_once(ids[is_asked], count, SAMPLES);
                        }
                        atomic_store(&is_over, 1);
                        pthread_join(asker, NULL);
                        afz_loader_close(loader);
                }
                if (ranks > 1)
                        assert_memory_equal(ids[0], ids[1], sizeof **ids * (SAMPLES / 2));
        }
        atomic_store(&is_over, 0);
}

/* Opened and closed at any moment of its life, with leases out. */
static void test_open_close(void **state)
{
        struct afz_batch batch[8];
        char why[AFZ_WHY_MAX];
        (void)state;
        write_rows(fixture_path, SAMPLES, WIDTH);
        for (uint32_t i = 0; i < 60; i++) {
                struct afz_loader_options options = rows_options();
                options.budget_bytes = (1 + i % 3) * 768 * KIB;
                options.threads = 1 + i % 5;
                struct afz_loader *mine = open_ok(&options);
                for (uint32_t k = 0; k < i % 8; k++)
                        assert_int_equal(afz_loader_next(mine, &batch[k], why), 1);
                afz_loader_close(mine);
                for (uint32_t k = 0; k < i % 8; k++)
                        afz_loader_release(mine, batch[k].lease);
        }
        afz_loader_close(NULL);
}

/* Batches of several pieces, which threads copy side by side, of data of which a part is gone:
 * every row is whole, and those that are left are there once. */
static void test_pieces(void **state)
{
        enum { MANY = 24000, LEFT = 20000 };
        static int64_t ids[MANY];
        static uint8_t seen[MANY];
        struct afz_loader_times times;
        (void)state;
        write_rows(fixture_path, MANY, WIDTH);
        struct afz_loader_options options = rows_options();
        options.budget_bytes = 8 * MIB;
        options.batch = 3000; /* 750 KiB */
        options.on_error = AFZ_ERROR_SKIP;
        struct afz_loader *mine = open_ok(&options);
        assert_int_equal(truncate(fixture_path, 128 + LEFT * WIDTH * (int64_t)sizeof *ids), 0);
        assert_true(take_epoch(mine, WIDTH, ids) >= LEFT); /* some were read before */
        for (int epoch = 0; epoch < 4; epoch++) {
                memset(seen, 0, sizeof seen);
                /* What was read ahead of it may still have been whole. */
                uint64_t count = take_epoch(mine, WIDTH, ids);
                afz_loader_times(mine, &times);
                assert_int_equal(count + times.skipped, MANY);
                assert_true(epoch == 0 || count == LEFT);
                for (uint64_t i = 0; i < count; i++)
                        assert_int_equal(seen[ids[i]]++, 0);
        }
        afz_loader_close(mine);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_at_once),
                cmocka_unit_test(test_less_and_more),
                cmocka_unit_test(test_open_close),
                cmocka_unit_test(test_pieces),
        };
        return cmocka_run_group_tests(tests, fixture_make, fixture_remove);
}
