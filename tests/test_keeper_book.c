/* The keeper's reading of books that somebody may have written anything into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "keeper_book.h"
#include "keeper_names.h"
#include "keeper_resident.h"
#include "keeper_sites.h"

static int make(void **state)
{
        *state = calloc(1, AFZ_BOOK_BYTES);
        return *state ? 0 : -1;
}

static int drop(void **state)
{
        free(*state);
        return 0;
}

static uint64_t python(uint32_t line, uint32_t file, uint32_t function)
{
        return AFZ_FRAME_PYTHON | (uint64_t)line << 36 | (uint64_t)(file / 4) << 18 | function / 4;
}

/* A whole site at a place: load() of train.py, called by main(). */
static void write_site(struct afz_book *b, unsigned place)
{
        struct afz_book_site *s = &b->site[place];
        strcpy(b->texts, "?");
        strcpy(b->texts + 4, "/home/me/train.py");
        strcpy(b->texts + 24, "load");
        strcpy(b->texts + 32, "main");
        b->frame[0] = python(33, 4, 24);
        b->frame[1] = python(40, 4, 32);
        s->frame = 0;
        s->frames = 2;
        s->first_ns = 1000;
        s->live_bytes = 5 << 20;
        s->live_blocks = 5;
        s->total_bytes = 9 << 20;
        s->kind = AFZ_SITE_HEAP;
}

static void test_whole(void **state)
{
        struct afz_book *b = *state;
        struct afz_book_look look;
        char text[AFZ_BOOK_TEXT_CAP];
        write_site(b, 7);
        assert_true(afz_book_look(b, 7, true, &look));
        assert_int_equal(look.live_bytes, 5 << 20);
        assert_int_equal(look.frames, 2);
        assert_int_equal(AFZ_FRAME_LINE(look.frame[0]), 33);
        assert_string_equal(afz_book_text(b, AFZ_FRAME_FILE(look.frame[0]), text),
                            "/home/me/train.py");
        assert_false(afz_book_look(b, 8, true, &look));
}

static void test_hostile_sites(void **state)
{
        struct afz_book *b = *state;
        struct afz_book_look look;
        static const struct {
                uint32_t kind, frame, frames;
        } bad[] = {
                {AFZ_SITE_KINDS, 0, 2},
                {UINT32_MAX, 0, 2},
                {AFZ_SITE_FREE, 0, 2},
                {AFZ_SITE_HEAP, 0, AFZ_STACK_MAX + 1},
                {AFZ_SITE_HEAP, 0, UINT32_MAX},
                {AFZ_SITE_HEAP, AFZ_BOOK_FRAMES - 1, 2},
                {AFZ_SITE_HEAP, AFZ_BOOK_FRAMES + 1, 0},
                {AFZ_SITE_HEAP, UINT32_MAX, 2},
                {AFZ_SITE_HEAP, UINT32_MAX - 1, AFZ_STACK_MAX},
        };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                write_site(b, 0);
                b->site[0].kind = bad[i].kind;
                b->site[0].frame = bad[i].frame;
                b->site[0].frames = bad[i].frames;
                assert_false(afz_book_look(b, 0, true, &look));
        }
        write_site(b, 0);
        b->site[0].frame = AFZ_BOOK_FRAMES - 2;
        assert_true(afz_book_look(b, 0, true, &look));
}

static void test_figures_are_sane(void **state)
{
        struct afz_book *b = *state;
        struct afz_book_look look;
        write_site(b, 0);
        b->site[0].early_bytes = b->site[0].large_bytes = UINT64_MAX / 2;
        b->site[0].total_bytes = UINT64_MAX;
        b->site[0].live_blocks = UINT64_MAX - 1; /* one free too many */
        assert_true(afz_book_look(b, 0, true, &look));
        assert_int_equal(look.total_bytes, 0);
        assert_int_equal(look.live_blocks, 0);
        assert_true(look.early_bytes <= look.live_bytes && look.large_bytes <= look.live_bytes);
        b->site[0].early_bytes = b->site[0].large_bytes = 6 << 20;
        assert_true(afz_book_look(b, 0, true, &look));
        assert_int_equal(look.early_bytes, 5 << 20);
        assert_int_equal(look.large_bytes, 5 << 20);
}

static void test_texts(void **state)
{
        struct afz_book *b = *state;
        char text[AFZ_BOOK_TEXT_CAP];
        memset(b->texts, 'x', sizeof b->texts); /* none ends */
        assert_int_equal(strlen(afz_book_text(b, 0, text)), AFZ_BOOK_TEXT_CAP - 1);
        assert_int_equal(strlen(afz_book_text(b, AFZ_BOOK_TEXT - 10, text)), 9);
        assert_string_equal(afz_book_text(b, AFZ_BOOK_TEXT - 1, text), "?");
        assert_string_equal(afz_book_text(b, AFZ_BOOK_TEXT, text), "?");
        assert_string_equal(afz_book_text(b, UINT32_MAX, text), "?");
        strcpy(b->texts + 8, "a\033[31m\n\177b");
        assert_string_equal(afz_book_text(b, 8, text), "a?[31m??b");
        strcpy(b->texts + 8, "");
        assert_string_equal(afz_book_text(b, 8, text), "?");
}

static void set_module(struct afz_book *b, unsigned at, uint64_t base, uint64_t since_ns,
                       const char *path)
{
        b->module[at].end = base + 0x1000;
        b->module[at].shift = base;
        b->module[at].since_ns = since_ns;
        strcpy(b->module[at].path, path);
        b->module[at].base = base;
}

static void test_modules(void **state)
{
        struct afz_book *b = *state;
        struct afz_book_place place;
        set_module(b, 0, 0x10000, 10, "/lib/old.so");
        set_module(b, 1, 0x10000, 500, "/lib/new.so");
        set_module(b, 2, 0x20000, 10, "/lib/other.so");
        b->modules = 3;
        assert_true(afz_book_place(b, 0x10010, 1000, &place));
        assert_string_equal(place.path, "/lib/new.so");
        assert_int_equal(place.address, 0x10);
        assert_true(afz_book_place(b, 0x10010, 400, &place));
        assert_string_equal(place.path, "/lib/old.so");
        assert_false(afz_book_place(b, 0x11000, 1000, &place));
        assert_false(afz_book_place(b, 0x20010, 5, &place));
        b->modules = UINT32_MAX; /* it ran past the end */
        memset(b->module[2].path, 'p', sizeof b->module[2].path);
        b->module[2].build_id_bytes = UINT32_MAX;
        assert_true(afz_book_place(b, 0x20010, 1000, &place));
        assert_int_equal(strlen(place.path), AFZ_BOOK_MODULE_PATH - 1);
        assert_int_equal(place.build_id_bytes, AFZ_BOOK_BUILD_ID);
}

static void test_large_blocks(void **state)
{
        struct afz_book *b = *state;
        struct afz_book_large block;
        unsigned cursor = 0, found = 0;
        uint64_t mega = (UINT64_C(1) << 20) >> 4;
        b->address[0] = 1; /* being filled */
        b->block[0].site_size = AFZ_BLOCK_LARGE | mega;
        b->address[5] = 0x7000;
        b->block[5].site_size = AFZ_BLOCK_LARGE | UINT64_C(3) << 48 | mega;
        b->address[6] = 0x8000; /* estimated, not counted */
        b->block[6].site_size = UINT64_C(3) << 48 | mega;
        b->address[7] = 0x9000; /* no such site */
        b->block[7].site_size = AFZ_BLOCK_LARGE | UINT64_C(0x7fff) << 48 | mega;
        b->address[8] = UINT64_MAX - 5; /* beyond the end of all memory */
        b->block[8].site_size = AFZ_BLOCK_LARGE | mega;
        b->address[9] = 0xa000;
        b->block[9].site_size = AFZ_BLOCK_LARGE; /* of no bytes */
        for (; afz_book_next_large(b, &cursor, &block); found++) {
                assert_int_equal(block.at, 0x7000);
                assert_int_equal(block.bytes, 1 << 20);
                assert_int_equal(block.site, 3);
        }
        assert_int_equal(found, 1);
}

/* Of two processes that stand at the same lines, one site; names in any order of the texts. */
static void test_one_site_for_all(void **state)
{
        struct afz_book *b = *state, *other = calloc(1, AFZ_BOOK_BYTES);
        struct afz_book_look look;
        struct afz_sites *sites;
        char stack[AFZ_SITE_STACK_CAP];
        write_site(b, 7);
        write_site(other, 9);
        strcpy(other->texts + 400, "load");
        other->frame[100] = python(33, 4, 400);
        other->frame[101] = python(40, 4, 32);
        other->site[9].frame = 100;
        assert_int_equal(afz_sites_new(&sites), 0);
        assert_true(afz_book_look(b, 7, true, &look));
        uint32_t number = afz_sites_number(sites, b, &look);
        assert_int_not_equal(number, 0);
        assert_true(afz_book_look(other, 9, true, &look));
        assert_int_equal(afz_sites_number(sites, other, &look), number);
        look.kind = AFZ_SITE_OBJECT;
        assert_int_not_equal(afz_sites_number(sites, other, &look), number);
        look.kind = AFZ_SITE_HEAP;
        look.frame[1] = python(41, 4, 32);
        assert_int_not_equal(afz_sites_number(sites, other, &look), number);

        afz_sites_begin(sites);
        afz_sites_add(sites, number, &(struct afz_site_count){.live_bytes = 3, .total_bytes = 4});
        afz_sites_add(sites, number, &(struct afz_site_count){.live_bytes = 5, .total_bytes = 6});
        struct afz_site *site = &sites->site[number];
        assert_int_equal(site->now.live_bytes, 8);
        assert_int_equal(site->processes, 2);
        afz_sites_gone(sites, number, 6);
        afz_sites_begin(sites);
        assert_int_equal(site->now.total_bytes, 6);
        assert_int_equal(site->now.live_bytes, 0);

        afz_site_set_name(sites, site, NULL, stack);
        assert_string_equal(site->name, "train.py:33 in load()");
        assert_string_equal(site->where, "/home/me/train.py:33");
        assert_string_equal(site->function, "load");
        assert_string_equal(stack, "train.py:33 in load()\ntrain.py:40 in main()");
        afz_sites_free(sites);
        free(other);
}

static void name_one(struct afz_book *b, const uint64_t *frame, unsigned frames, char *ret,
                     size_t cap)
{
        struct afz_book_look look = {.kind = AFZ_SITE_HEAP, .first_ns = 1000, .frames = frames};
        struct afz_sites *sites;
        char stack[AFZ_SITE_STACK_CAP];
        memcpy(look.frame, frame, frames * sizeof *frame);
        assert_int_equal(afz_sites_new(&sites), 0);
        uint32_t number = afz_sites_number(sites, b, &look);
        afz_site_set_name(sites, &sites->site[number], NULL, stack);
        snprintf(ret, cap, "%s", sites->site[number].name);
        afz_sites_free(sites);
}

/* Which frame a site is called by. */
static void test_names(void **state)
{
        struct afz_book *b = *state;
        char name[96];
        static const char *const texts[] = {
                "/home/me/train.py",
                "/usr/lib/python3/dist-packages/numpy/core/numeric.py",
                "/usr/lib/python3.11/json/decoder.py",
                "<string>",
                "<module>",
                "outer.<locals>.inner",
                "step.<locals>.<listcomp>",
                "ones",
        };
        enum {
                USER = 4,
                LIBRARY = 260,
                STANDARD = 516,
                TEXT = 772,
                MODULE = 1028,
                INNER = 1284,
                LIST = 1540,
                ONES = 1796
        };
        for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
                strcpy(b->texts + 4 + i * 256, texts[i]);
        set_module(b, 0, 0x10000, 10, "/usr/lib/x86_64-linux-gnu/libc.so.6");
        set_module(b, 1, 0x20000, 10, "/home/me/trainer");
        set_module(b, 2, 0x30000, 10, "/usr/lib/x86_64-linux-gnu/libblas.so.3");
        b->modules = 3;
        const struct {
                uint64_t frame[4];
                unsigned frames;
                const char *name;
        } cases[] = {
                {{python(5, LIBRARY, ONES), python(9, USER, MODULE)}, 2, "train.py:9"},
                {{python(5, USER, INNER), python(9, USER, MODULE)}, 2, "train.py:5 in inner()"},
                {{python(5, USER, LIST)}, 1, "train.py:5 in step()"},
                {{python(5, STANDARD, ONES)}, 1, "decoder.py:5 in ones()"},
                {{python(1, TEXT, MODULE)}, 1, "<string>:1"},
                {{python(1, TEXT, MODULE), python(7, STANDARD, ONES)}, 2, "decoder.py:7 in ones()"},
                {{0x10010, 0x30010, 0x20010}, 3, "trainer+0x10"},
                {{0x10010, 0x30010}, 2, "libblas.so.3+0x10"},
                {{0x10010, python(9, USER, ONES)}, 2, "train.py:9 in ones()"},
                {{0x20010, python(9, USER, ONES)}, 2, "train.py:9 in ones()"},
                {{0x20010, python(5, LIBRARY, ONES)}, 2, "trainer+0x10"},
                {{0x99999}, 1, "code that was made at run time"},
                {{0}, 0, "places that could not be told"},
        };
        for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
                name_one(b, cases[i].frame, cases[i].frames, name, sizeof name);
                assert_string_equal(name, cases[i].name);
        }
}

/* Noise from a fixed generator in all of a book: every index is checked, every text ends. */
static void test_noise(void **state)
{
        struct afz_book *b = *state;
        struct afz_book_look look;
        struct afz_book_large block;
        struct afz_sites *sites;
        char stack[AFZ_SITE_STACK_CAP], words[192];
        uint64_t word = 88172645463325252;
        assert_int_equal(afz_sites_new(&sites), 0);
        for (int round = 0; round < 4; round++) {
                for (size_t i = 0; i + 8 <= AFZ_BOOK_BYTES; i += 8) {
                        word ^= word << 13, word ^= word >> 7, word ^= word << 17;
                        memcpy((char *)b + i, &word, 8);
                }
                for (unsigned i = 0; i < AFZ_BOOK_SITES; i++) {
                        b->site[i].kind = b->site[i].kind % (AFZ_SITE_KINDS + 1U);
                        b->site[i].frames %= AFZ_STACK_MAX + 2;
                        b->site[i].frame %= AFZ_BOOK_FRAMES + AFZ_STACK_MAX;
                        if (i % 8 == 0 && afz_book_look(b, i, true, &look))
                                (void)afz_sites_number(sites, b, &look);
                }
                for (unsigned cursor = 0; afz_book_next_large(b, &cursor, &block);)
                        assert_true(block.site < AFZ_BOOK_SITES);
                afz_book_words(b->why, sizeof words, words);
                assert_true(strlen(words) < sizeof words);
        }
        assert_true(sites->sites > 100);
        for (uint32_t i = 0; i < sites->sites; i++) {
                afz_site_set_name(sites, &sites->site[i], NULL, stack);
                assert_true(strlen(stack) < sizeof stack);
                assert_true(strlen(sites->site[i].name) > 0);
        }
        afz_sites_free(sites);
}

/* Of a mapping of our own, half of it touched. */
static void test_resident(void **state)
{
        struct afz_book *b = *state;
        struct afz_resident *r = calloc(1, sizeof *r);
        const size_t bytes = 64 << 20;
        unsigned reads = 1000;
        char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(map, MAP_FAILED);
        (void)madvise(map, bytes, MADV_NOHUGEPAGE);
        memset(map, 1, bytes / 2);
        b->address[0] = (uintptr_t)map;
        b->block[0].site_size = AFZ_BLOCK_LARGE | UINT64_C(5) << 48 | bytes >> 4;
        afz_resident_open(r, getpid());
        assert_true(r->share[5] > 0.99f && r->share[6] > 0.99f);
        if (r->fd >= 0) { /* a sandbox may refuse it */
                afz_resident_look(r, b, &reads);
                assert_true(r->share[5] > 0.4f && r->share[5] < 0.6f);
                assert_true(r->share[6] > 0.99f);
                assert_true(reads < 1000);
                reads = 3; /* not enough for one block: what was known stays */
                memset(map, 1, bytes);
                afz_resident_look(r, b, &reads);
                assert_true(r->share[5] < 0.6f);
        }
        afz_resident_close(r);
        munmap(map, bytes);
        free(r);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)
        const struct CMUnitTest tests[] = {
                TEST(test_whole),    TEST(test_hostile_sites),    TEST(test_figures_are_sane),
                TEST(test_texts),    TEST(test_modules),          TEST(test_large_blocks),
                TEST(test_names),    TEST(test_one_site_for_all), TEST(test_noise),
                TEST(test_resident),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
