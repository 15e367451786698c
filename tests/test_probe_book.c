/* The book: what goes in comes out, from many threads at once, and a full table drops and counts.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "probe.h"

static int open_book(void **state)
{
        struct afz_book *book = calloc(1, sizeof *book);
        if (!book)
                return -1;
        book->magic = AFZ_BOOK_MAGIC;
        book->mean_bytes = 1 << 20;
        book->opened_ns = afz_now_ns();
        afz_book_prepare(book);
        *state = book;
        return 0;
}

static int close_book(void **state)
{
        free(*state);
        return 0;
}

static uint64_t live_bytes(const struct afz_book *book)
{
        uint64_t sum = 0;
        for (unsigned i = 0; i < AFZ_BOOK_SITES; i++)
                sum += book->site[i].live_bytes;
        return sum;
}

static unsigned filtered(const struct afz_book *book)
{
        unsigned n = 0;
        for (unsigned i = 0; i < AFZ_BOOK_FILTER; i++)
                n += book->filter[i];
        return n;
}

static void test_sites(void **state)
{
        struct afz_book *book = *state;
        uint64_t stack[3] = {0x401000, 0x402000, 0x403000};
        unsigned heap = afz_book_site(book, AFZ_SITE_HEAP, stack, 3, 16);
        assert_int_equal(afz_book_site(book, AFZ_SITE_HEAP, stack, 3, 16), heap);
        assert_int_not_equal(afz_book_site(book, AFZ_SITE_MAP, stack, 3, 16), heap);
        assert_int_not_equal(afz_book_site(book, AFZ_SITE_HEAP, stack, 2, 16), heap);
        assert_int_equal(book->site[heap].kind, AFZ_SITE_HEAP);
        assert_int_equal(book->site[heap].frames, 3);
        assert_memory_equal(book->frame + book->site[heap].frame, stack, sizeof stack);
}

static void test_blocks(void **state)
{
        struct afz_book *book = *state;
        unsigned site = afz_book_site(book, AFZ_SITE_HEAP, NULL, 0, 16);
        const uint64_t at = 0x7f0000001010;
        afz_book_add(book, site, at, 100, 1000);
        assert_true(book->filter[afz_filter_at(at)]);
        assert_int_equal(live_bytes(book), 1000);
        assert_int_equal(book->site[site].early_bytes, 1000);
        struct afz_taken t = afz_book_take(book, at);
        assert_int_equal(t.site, site);
        assert_int_equal(t.size_bytes, 112); /* in 16s */
        assert_int_equal(t.weight_bytes, 1000);
        assert_int_equal(live_bytes(book), 0);
        assert_false(book->filter[afz_filter_at(at)]);
        assert_int_equal(afz_book_take(book, at).site, -1); /* freed twice */
        afz_book_put_back(book, at, &t);
        assert_int_equal(live_bytes(book), 1000);
        assert_int_equal(book->frees, 0);
        /* The same address again, without a free that we saw: the old one is no more. */
        afz_book_add(book, site, at, 64, 500);
        assert_int_equal(live_bytes(book), 500);
        assert_int_equal(book->site[site].live_blocks, 1);
        assert_int_equal(book->site[site].total_bytes, 1500);
}

/* The filter cannot tell NULL from an address like this one, so free(NULL) gets as far as this. */
static void test_null_is_no_block(void **state)
{
        struct afz_book *book = *state;
        const uint64_t at = 0x7f2640500000;
        assert_int_equal(afz_filter_at(at), afz_filter_at(0));
        afz_book_add(book, afz_book_site(book, AFZ_SITE_HEAP, NULL, 0, 16), at, 600, 1000);
        assert_int_equal(afz_book_take(book, 0).site, -1);
        assert_int_equal(afz_book_take(book, 1).site, -1);
        assert_int_equal(live_bytes(book), 1000);
        assert_int_equal(book->filter[afz_filter_at(at)], 1);
        assert_int_equal(book->frees, 0);
}

static void test_early_and_large(void **state)
{
        struct afz_book *book = *state;
        unsigned site = afz_book_site(book, AFZ_SITE_HEAP, NULL, 0, 16);
        afz_book_add(book, site, 0x1000, 1 << 20, 1 << 20);
        atomic_store(&book->step, 3);
        afz_book_add(book, site, 0x2000, (1 << 20) - 1, 1 << 21); /* rounds up, and is none */
        assert_int_equal(book->site[site].early_bytes, 1 << 20);
        assert_int_equal(book->site[site].large_bytes, 1 << 20);
        assert_int_equal(afz_book_take(book, 0x2000).born >> 32, 3);
        assert_int_equal(book->site[site].large_bytes, 1 << 20);
        (void)afz_book_take(book, 0x1000);
        assert_int_equal(book->site[site].large_bytes, 0);
        assert_int_equal(book->site[site].early_bytes, 0);
}

static void test_high_and_low(void **state)
{
        struct afz_book *book = *state;
        unsigned site = afz_book_site(book, AFZ_SITE_HEAP, NULL, 0, 16);
        struct afz_book_site *s = &book->site[site];
        afz_book_add(book, site, 0x1000, 64, 300);
        afz_book_add(book, site, 0x2000, 64, 500);
        struct afz_taken t = afz_book_take(book, 0x2000);
        assert_int_equal(s->high_bytes, 800);
        assert_int_equal(s->low_bytes, 0);
        /* As the keeper does it, from 300. */
        s->high_bytes = s->low_bytes = s->live_bytes;
        afz_book_put_back(book, 0x2000, &t);
        assert_int_equal(s->high_bytes, 800);
        (void)afz_book_take(book, 0x2000);
        (void)afz_book_take(book, 0x1000);
        assert_int_equal(s->low_bytes, 0);
        assert_int_equal(book->live_bytes, 0);
        assert_int_equal(book->high_bytes, 800);
        /* It read 0 and writes that down when 900 are there: they come to light when they go. */
        afz_book_add(book, site, 0x3000, 64, 900);
        s->high_bytes = s->low_bytes = book->high_bytes = 0;
        (void)afz_book_take(book, 0x3000);
        assert_int_equal(s->high_bytes, 900);
        assert_int_equal(book->high_bytes, 900);
}

static void test_names(void **state)
{
        struct afz_book *book = *state;
        char longest[400];
        uint32_t a = afz_book_name(book, "train.py"), b = afz_book_name(book, "model.py");
        assert_int_not_equal(a, b);
        assert_int_equal(afz_book_name(book, "train.py"), a);
        assert_string_equal(book->texts + 4 * (size_t)a, "train.py");
        assert_string_equal(book->texts + 4 * (size_t)b, "model.py");
        memset(longest, 'x', sizeof longest - 1);
        longest[sizeof longest - 1] = '\0';
        uint32_t c = afz_book_name(book, longest);
        assert_int_equal(strlen(book->texts + 4 * (size_t)c), 255);
        assert_int_equal(afz_book_name(book, longest), c);
}

static void test_full_of_names(void **state)
{
        struct afz_book *book = *state;
        char name[200];
        for (int i = 0; i < 20000; i++) {
                snprintf(name, sizeof name, "%0150d", i);
                uint32_t at = afz_book_name(book, name);
                assert_true((size_t)at * 4 + 256 <= AFZ_BOOK_TEXT);
                assert_string_equal(book->texts + (size_t)at * 4, at ? name : "?");
        }
        assert_true(book->dropped_frames > 0);
}

static void test_full_of_sites(void **state)
{
        struct afz_book *book = *state;
        unsigned unknown = afz_book_site(book, AFZ_SITE_MAP, NULL, 0, 16), met = 0;
        for (uint64_t i = 0; i < 3 * AFZ_BOOK_SITES; i++) {
                uint64_t stack[AFZ_STACK_MAX];
                for (unsigned f = 0; f < AFZ_STACK_MAX; f++)
                        stack[f] = i * 1000 + f + 1;
                unsigned site =
                        afz_book_site(book, AFZ_SITE_MAP, stack, AFZ_STACK_MAX, AFZ_LARGE_BYTES);
                met += site == unknown;
                assert_true(book->site[site].frame + book->site[site].frames <= AFZ_BOOK_FRAMES);
        }
        assert_int_equal(met, book->dropped_sites + book->dropped_frames);
        assert_true(met > 0);
}

/* Small samples from ever new places, under a few of the program's own lines, if any. */
static void fill_stack(uint64_t i, bool own_lines, uint64_t stack[30])
{
        for (unsigned f = 0; f < 30; f++)
                stack[f] = f < 10 ? i * 100 + f + 1 : i % 50 * 1000 + f + 1;
        for (unsigned f = 5; own_lines && f < 30; f++)
                stack[f] |= AFZ_FRAME_PYTHON | (f < 12 ? AFZ_FRAME_LIBRARY : 0);
}

static void test_crowded(void **state)
{
        struct afz_book *book = *state;
        uint64_t stack[30];
        for (uint64_t i = 0; i < 20 * AFZ_BOOK_SITES; i++) {
                unsigned left = i % 2 ? 18 : 12;
                fill_stack(i, i % 2, stack);
                unsigned site = afz_book_site(book, AFZ_SITE_OBJECT, stack, 30, 100);
                const struct afz_book_site *s = &book->site[site];
                assert_true(s->frames == 30 || s->frames == left);
                assert_memory_equal(book->frame + s->frame + s->frames - left, stack + 30 - left,
                                    left * sizeof stack[0]);
        }
        assert_int_equal(book->dropped_sites + book->dropped_frames, 0);
        /* A large block has room for its whole stack, as has one whose stack is known. */
        unsigned large = afz_book_site(book, AFZ_SITE_HEAP, stack, 30, AFZ_LARGE_BYTES);
        assert_int_equal(book->site[large].frames, 30);
        assert_int_equal(afz_book_site(book, AFZ_SITE_HEAP, stack, 30, 100), large);
}

static void test_full_of_blocks(void **state)
{
        struct afz_book *book = *state;
        unsigned site = afz_book_site(book, AFZ_SITE_HEAP, NULL, 0, 16);
        const uint64_t tried = 2 * AFZ_BOOK_BLOCKS;
        for (uint64_t i = 1; i <= tried; i++)
                afz_book_add(book, site, i << 12, 16, 10);
        assert_int_equal(book->samples + book->dropped_blocks, tried);
        assert_true(book->samples > AFZ_BOOK_BLOCKS / 2);
        assert_int_equal(live_bytes(book), 10 * book->samples);
        for (uint64_t i = 1; i <= tried; i++)
                (void)afz_book_take(book, i << 12);
        assert_int_equal(live_bytes(book), 0);
}

static void test_say(void **state)
{
        struct afz_book *book = *state;
        afz_book_say(book, "One.");
        afz_book_say(book, "Two.");
        afz_book_say(book, "One.");
        assert_string_equal(book->why, "One. Two.");
        for (int i = 0; i < 100; i++) {
                char more[16];
                snprintf(more, sizeof more, "Number %d.", i);
                afz_book_say(book, more);
        }
        assert_true(strnlen(book->why, sizeof book->why) < sizeof book->why);
}

/* ---- many at once ---- */

enum { THREADS = 8, TURNS = 3000 };

struct worker {
        struct afz_book *book;
        uint64_t nth;
        _Atomic int done;
};

static void *work(void *data)
{
        struct worker *w = data;
        for (uint64_t i = 0; i < TURNS; i++) {
                uint64_t stack[4] = {i % 50 + 1, 2, 3, 4}; /* the same ones in all threads */
                uint64_t at = (w->nth * TURNS + i + 1) << 8;
                char name[32];
                snprintf(name, sizeof name, "file%d.py", (int)(i % 50));
                unsigned site = afz_book_site(w->book, AFZ_SITE_HEAP, stack, 4, 64);
                uint32_t text = afz_book_name(w->book, name);
                afz_book_add(w->book, site, at, 64, 100);
                if (i % 3 != 0 && afz_book_take(w->book, at).site != (int)site)
                        return data;
                if (text == 0 || strcmp(w->book->texts + 4 * (size_t)text, name) != 0)
                        return data;
        }
        return NULL;
}

/* Sets the marks anew, and looks whether they hold what is live between them. */
static void *keep_marks(void *data)
{
        struct worker *w = data;
        while (!w->done)
                for (unsigned i = 0; i < AFZ_BOOK_SITES; i++) {
                        struct afz_book_site *s = &w->book->site[i];
                        uint64_t live = atomic_load(&s->live_bytes);
                        if (s->high_bytes > UINT64_C(100) * THREADS * TURNS ||
                            s->low_bytes > UINT64_C(100) * THREADS * TURNS)
                                return data;
                        atomic_store(&s->high_bytes, live);
                        atomic_store(&s->low_bytes, live);
                }
        return NULL;
}

static void test_threads(void **state)
{
        struct afz_book *book = *state;
        pthread_t thread[THREADS], keeper;
        struct worker worker[THREADS], reader = {.book = book};
        unsigned sites = 0;
        assert_int_equal(pthread_create(&keeper, NULL, keep_marks, &reader), 0);
        for (uint64_t i = 0; i < THREADS; i++) {
                worker[i] = (struct worker){.book = book, .nth = i};
                assert_int_equal(pthread_create(&thread[i], NULL, work, &worker[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
                void *failed;
                pthread_join(thread[i], &failed);
                assert_null(failed);
        }
        void *failed;
        reader.done = 1;
        pthread_join(keeper, &failed);
        assert_null(failed);
        for (unsigned i = 0; i < AFZ_BOOK_SITES; i++)
                sites += book->site[i].kind == AFZ_SITE_HEAP && book->site[i].frames == 4;
        assert_int_equal(sites, 50);
        assert_int_equal(live_bytes(book), 100 * THREADS * TURNS / 3);
        assert_int_equal(book->live_bytes, 100 * THREADS * TURNS / 3);
        assert_in_range(book->high_bytes, book->live_bytes, 100 * THREADS * TURNS);
        assert_int_equal(filtered(book), THREADS * TURNS / 3);
        assert_int_equal(book->samples, THREADS * TURNS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_book, close_book)
        const struct CMUnitTest tests[] = {
                TEST(test_sites),
                TEST(test_blocks),
                TEST(test_early_and_large),
                TEST(test_null_is_no_block),
                TEST(test_high_and_low),
                TEST(test_names),
                TEST(test_full_of_names),
                TEST(test_full_of_sites),
                TEST(test_crowded),
                TEST(test_full_of_blocks),
                TEST(test_say),
                TEST(test_threads),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
