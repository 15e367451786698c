/* Figures of an epoch, and whom they name; then real epochs, whose figures must add up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "loader_fixture.h"
#include "slowest.h"

#define S(seconds) ((uint64_t)((seconds)*1e9))

static const struct {
        struct afz_loader_times times;
        uint32_t threads;
        const char *things;
        enum afz_side side;
        const char *words;
} rows[] = {
        {{0}, 2, "samples", AFZ_SIDE_NONE, ""},
        {{.waited_ns = S(3), .copies = 1}, 2, "samples", AFZ_SIDE_NONE, ""},
        {{.epoch_ns = S(10), .idle_ns = S(9.3), .waited_ns = S(0.1), .read_ns = S(5)},
         2,
         "samples",
         AFZ_SIDE_CONSUMER,
         "your training step: batches waited for it 93 % of the time"},
        {{.epoch_ns = S(10), .idle_ns = S(0.9), .waited_ns = S(0.9)},
         2,
         "samples",
         AFZ_SIDE_CONSUMER,
         "your training step, though the loader is hardly faster"},
        /* Just below a tenth, and just at it. */
        {{.epoch_ns = S(10), .waited_ns = S(0.99), .idle_ns = S(2), .starved_ns = S(1)},
         1,
         "samples",
         AFZ_SIDE_CONSUMER,
         "your training step: batches waited for it 20 % of the time"},
        {{.epoch_ns = S(10),
          .waited_ns = S(1),
          .starved_ns = S(1),
          .read_ns = S(9),
          .decode_ns = S(1),
          .read_bytes = 2120 * MIB,
          .loading_ns = S(10),
          .loads = 100,
          .load_waits = 25},
         4,
         "samples",
         AFZ_SIDE_DISK,
         "the disk: 212M/s; the program waited for data 10 % of the time"},
        /* Nothing had to wait for it: it was in memory. */
        {{.epoch_ns = S(10),
          .waited_ns = S(7.1),
          .starved_ns = S(8),
          .gather_ns = S(2),
          .read_ns = S(9),
          .read_bytes = 41 * 1024 * MIB,
          .loading_ns = S(10),
          .loads = 100,
          .load_waits = 24},
         4,
         "samples",
         AFZ_SIDE_CACHE,
         "reading from the page cache: 4.1G/s; the program waited for data 71 % of the "
         "time"},
        {{.epoch_ns = S(10),
          .waited_ns = S(8),
          .starved_ns = S(8),
          .gather_ns = S(1),
          .read_ns = S(1),
          .decode_ns = S(19),
          .loaded = 13400,
          .loading_ns = S(10)},
         2,
         "pictures",
         AFZ_SIDE_DECODE,
         "decoding: 1,340 pictures/s on 2 threads; the program waited for data 80 % of "
         "the time"},
        {{.epoch_ns = S(10),
          .waited_ns = S(8),
          .starved_ns = S(8),
          .decode_ns = S(9),
          .loaded = 125,
          .loading_ns = S(10)},
         1,
         "samples",
         AFZ_SIDE_DECODE,
         "decoding: 12.5 samples/s on 1 thread; the program waited for data 80 % of the "
         "time"},
        {{.epoch_ns = S(10),
          .waited_ns = S(9),
          .starved_ns = S(1),
          .gather_ns = S(8),
          .read_ns = S(1),
          .gather_bytes = 24 * 1024 * MIB},
         2,
         "samples",
         AFZ_SIDE_GATHER,
         "putting batches together: 3.0G/s; the program waited for data 90 % of the time"},
        /* All of it in memory: nothing is loaded any more. */
        {{.epoch_ns = S(1), .waited_ns = S(0.5), .gather_ns = S(0.5), .gather_bytes = 512},
         2,
         "samples",
         AFZ_SIDE_GATHER,
         "putting batches together: 1.0K/s; the program waited for data 50 % of the time"},
        /* Too many are held: said of whoever is the slowest. */
        {{.epoch_ns = S(10), .idle_ns = S(5), .copies = 41, .held = 3, .held_most = 12},
         2,
         "samples",
         AFZ_SIDE_CONSUMER,
         "your training step: batches waited for it 50 % of the time; you hold 12 batches, "
         "so that 41 had to be copied"},
        /* Time that began before the epoch did. */
        {{.epoch_ns = S(1), .waited_ns = S(2), .starved_ns = S(9), .decode_ns = S(9)},
         2,
         "samples",
         AFZ_SIDE_DECODE,
         "decoding: 0.0 samples/s on 2 threads; the program waited for data 100 % of the "
         "time"},
        {{.epoch_ns = 1,
          .waited_ns = UINT64_MAX,
          .starved_ns = UINT64_MAX,
          .decode_ns = 1,
          .loaded = UINT64_MAX,
          .loading_ns = 1,
          .copies = UINT64_MAX,
          .held_most = UINT64_MAX},
         UINT32_MAX,
         "samples",
         AFZ_SIDE_DECODE,
         NULL},
        {{.epoch_ns = 1,
          .waited_ns = 1,
          .starved_ns = 1,
          .read_ns = 1,
          .read_bytes = UINT64_MAX,
          .loading_ns = 1},
         1,
         "samples",
         AFZ_SIDE_DISK,
         NULL},
};

static void test_figures(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                char words[AFZ_WHY_MAX];
                assert_int_equal(afz_slowest_of(&rows[i].times), rows[i].side);
                assert_int_equal(
                        afz_slowest_say(&rows[i].times, rows[i].threads, rows[i].things, words),
                        rows[i].side);
                if (rows[i].words)
                        assert_string_equal(words, rows[i].words);
                assert_true(strlen(words) < sizeof words / 2);
        }
}

/* ---- real epochs ---- */

enum { SAMPLES = 20000, WIDTH = 64 }; /* of 512 bytes: 10 MB */

static int make(void **state)
{
        fixture_make(state);
        write_rows(fixture_path, SAMPLES, WIDTH);
        return 0;
}

/* Goes through an epoch, and sleeps for so long at each batch. */
static void play(struct afz_loader *loader, long sleep_ns)
{
        const struct timespec nap = {.tv_nsec = sleep_ns};
        struct afz_batch batch;
        char why[AFZ_WHY_MAX];
        while (afz_loader_next(loader, &batch, why) > 0) {
                if (sleep_ns)
                        nanosleep(&nap, NULL);
                afz_loader_release(loader, batch.lease);
        }
}

static void test_slow_program(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_loader_times times;
        char words[AFZ_WHY_MAX] = "nothing";
        (void)state;
        options.batch = 1000;
        struct afz_loader *loader = open_ok(&options);
        assert_int_equal(afz_loader_slowest(loader, words), AFZ_SIDE_NONE);
        assert_string_equal(words, "");
        play(loader, 20000000);
        play(loader, 20000000); /* the first has to wait for the first chunks */
        afz_loader_times(loader, &times);
        assert_true(times.epoch_ns >= S(0.02 * SAMPLES / 1000));
        assert_true(times.waited_ns + times.idle_ns <= times.epoch_ns);
        assert_int_equal(afz_loader_slowest(loader, words), AFZ_SIDE_CONSUMER);
        assert_non_null(strstr(words, "your training step: "));
        afz_loader_close(loader);
}

static void test_figures_add_up(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_loader_times times;
        (void)state;
        options.budget_bytes = 2 * MIB;
        struct afz_loader *loader = open_ok(&options);
        for (int epoch = 0; epoch < 3; epoch++)
                play(loader, 0);
        afz_loader_times(loader, &times);
        assert_int_equal(times.held, 0);
        assert_int_equal(times.held_most, 1);
        assert_int_equal(times.epoch, 2);
        /* What is gathered ahead of the next epoch's beginning is not this one's. */
        uint64_t bytes = (uint64_t)SAMPLES * WIDTH * 8;
        assert_true(times.gather_bytes >= bytes / 2 && times.gather_bytes <= 2 * bytes);
        assert_true(times.loaded >= SAMPLES / 2 && times.loaded <= 2 * SAMPLES);
        assert_true(times.loads > 0);
        assert_true(times.loading_ns > 0 &&
                    times.loading_ns <= times.read_ns + times.decode_ns + times.epoch_ns);
        afz_loader_close(loader);
}

static void test_hoarder(void **state)
{
        struct afz_loader_options options = rows_options();
        struct afz_batch batch[12];
        char words[AFZ_WHY_MAX];
        (void)state;
        struct afz_loader *loader = open_ok(&options);
        for (int i = 0; i < 12; i++)
                assert_int_equal(afz_loader_next(loader, &batch[i], words), 1);
        (void)afz_loader_slowest(loader, words);
        assert_non_null(strstr(words, "; you hold 12 batches, so that "));
        for (int i = 0; i < 12; i++)
                afz_loader_release(loader, batch[i].lease);
        play(loader, 0);
        play(loader, 0);
        (void)afz_loader_slowest(loader, words);
        assert_null(strstr(words, "you hold"));
        afz_loader_close(loader);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_figures),
                cmocka_unit_test(test_slow_program),
                cmocka_unit_test(test_figures_add_up),
                cmocka_unit_test(test_hoarder),
        };
        return cmocka_run_group_tests(tests, make, fixture_remove);
}
