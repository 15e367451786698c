/* The keeper's reading of books that somebody may have written anything into. */
#include <sys/mman.h>
#include <unistd.h>

#include "book_fixture.h"
#include "keeper_blocks.h"
#include "keeper_inside.h"
#include "keeper_names.h"

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
        put_text(b, 8, "a\033[31m\n\177b\302\23331m\303\244"); /* the last: an umlaut */
        assert_string_equal(afz_book_text(b, 8, text), "a?[31m??b??31m\303\244");
        put_text(b, 8, "");
        assert_string_equal(afz_book_text(b, 8, text), "?");
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

static void test_live_blocks(void **state)
{
        struct afz_book *b = *state;
        struct afz_book_live block;
        unsigned cursor = 0;
        uint64_t mega = (UINT64_C(1) << 20) >> 4;
        b->address[0] = 1; /* being filled */
        b->block[0].site_size = AFZ_BLOCK_LARGE | mega;
        b->address[5] = 0x7000;
        b->block[5].site_size = AFZ_BLOCK_LARGE | UINT64_C(3) << 48 | mega;
        b->block[5].weight_bytes = UINT64_MAX; /* nobody has that much */
        b->block[5].born = UINT64_C(7) << 32 | 9;
        b->address[6] = 0x8000; /* estimated, not counted */
        b->block[6].site_size = UINT64_C(3) << 48 | 1;
        b->block[6].weight_bytes = 1 << 20;
        b->address[7] = 0x9000; /* no such site */
        b->block[7].site_size = AFZ_BLOCK_LARGE | UINT64_C(0x7fff) << 48 | mega;
        b->address[8] = UINT64_MAX - 5; /* beyond the end of all memory */
        b->block[8].site_size = AFZ_BLOCK_LARGE | mega;
        b->address[9] = 0xa000;
        b->block[9].site_size = AFZ_BLOCK_LARGE; /* of no bytes */
        assert_true(afz_book_next_live(b, &cursor, &block));
        assert_int_equal(block.at, 0x7000);
        assert_int_equal(block.bytes, 1 << 20);
        assert_int_equal(block.weight_bytes, 0);
        assert_int_equal(block.site, 3);
        assert_int_equal(block.born_step, 7);
        assert_int_equal(block.born_s, 9);
        assert_true(block.large);
        assert_true(afz_book_next_live(b, &cursor, &block));
        assert_int_equal(block.at, 0x8000);
        assert_int_equal(block.weight_bytes, 1 << 20);
        assert_false(block.large);
        assert_false(afz_book_next_live(b, &cursor, &block));
}

/* How old what is live is, by weight; a block that is younger than now is new. */
static void test_ages(void **state)
{
        struct afz_book *b = *state;
        struct afz_block_sums *sums = calloc(1, sizeof *sums);
        const struct afz_block_clock clock = {.age_s = 100, .step = 50, .early_s = 100};
        unsigned reads = 0;
        static const struct {
                uint64_t weight, step, s;
        } blocks[] = {{3000, 10, 20}, {1000, 50, 100}, {1000, UINT32_MAX, UINT32_MAX}};
        for (unsigned i = 0; i < 3; i++) {
                b->address[i] = 0x1000 * (i + 1);
                b->block[i].site_size = UINT64_C(4) << 48 | 1;
                b->block[i].weight_bytes = blocks[i].weight;
                b->block[i].born = blocks[i].step << 32 | blocks[i].s;
        }
        afz_blocks_look(sums, b, &clock, NULL, &reads);
        assert_true((uint64_t)sums->bytes[4] == 5000);
        assert_true((uint64_t)sums->bytes_s[4] == 3000 * 80);
        assert_true((uint64_t)sums->bytes_steps[4] == 3000 * 40);
        assert_true((uint64_t)sums->early_bytes[4] == 3000);
        assert_true((uint64_t)sums->bytes[5] == 0);
        free(sums);
}

/* The marks are read, checked, and set to what is live. */
static void test_water(void **state)
{
        struct afz_book *b = *state;
        struct afz_book_site *s = &b->site[7];
        static const struct {
                uint64_t high, low, ret_high, ret_low;
        } cases[] = {
                {900, 100, 900, 100}, {500, 500, 500, 500},
                {0, 0, 500, 0},                                         /* never set */
                {400, 600, 500, 500}, {UINT64_MAX, UINT64_MAX, 500, 0}, /* no such figures */
        };
        for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
                uint64_t high, low;
                s->high_bytes = cases[i].high;
                s->low_bytes = cases[i].low;
                afz_book_water(b, 7, 500, &high, &low);
                assert_int_equal(high, cases[i].ret_high);
                assert_int_equal(low, cases[i].ret_low);
                assert_int_equal(s->high_bytes, 500);
                assert_int_equal(s->low_bytes, 500);
        }
}

static void test_inside(void **state)
{
        struct afz_book *b = *state;
        struct afz_inside in = {0};
        b->step = 12;
        b->wait_ns = 34;
        b->live_bytes = 1000;
        b->high_bytes = 4000;
        b->heap_taken_bytes = 700;
        b->heap_used_bytes = 800; /* more than was taken */
        afz_inside_look(&in, b);
        assert_int_equal(in.now.step, 12);
        assert_false(in.now.heap_known);
        b->heap_ns = 1;
        b->high_bytes = 4000;
        afz_inside_look(&in, b);
        afz_inside_there(&in, 600, 1000);
        assert_int_equal(in.now.high_bytes, 3600);
        assert_int_equal(in.live_bytes, 600);
        assert_true(in.now.heap_known);
        assert_int_equal(in.now.heap_used_bytes, 700);
        assert_int_equal(b->high_bytes, 1000);
        b->step = 3; /* no clock runs back */
        b->wait_ns = 0;
        b->heap_taken_bytes = UINT64_MAX;
        afz_inside_look(&in, b);
        assert_int_equal(in.now.step, 12);
        assert_int_equal(in.now.wait_ns, 34);
        assert_false(in.now.heap_known);
}

/* Noise from a fixed generator in all of a book: every index is checked, every text ends. */
static void test_noise(void **state)
{
        struct afz_book *b = *state;
        struct afz_book_look look;
        struct afz_book_live block;
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
                for (unsigned cursor = 0; afz_book_next_live(b, &cursor, &block);)
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
        struct afz_block_sums *sums = calloc(1, sizeof *sums);
        const struct afz_block_clock clock = {0};
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
                afz_blocks_look(sums, b, &clock, r, &reads);
                assert_true(r->share[5] > 0.4f && r->share[5] < 0.6f);
                assert_true(r->share[6] > 0.99f);
                assert_true(reads < 1000);
                reads = 3; /* not enough for one block: what was known stays */
                memset(map, 1, bytes);
                afz_blocks_look(sums, b, &clock, r, &reads);
                assert_true(r->share[5] < 0.6f);
        }
        afz_resident_close(r);
        munmap(map, bytes);
        free(sums);
        free(r);
}

/* Many blocks, and more than may be asked for: a large reservation is found at once, and the others
 * have their turn. */
static void test_resident_of_many(void **state)
{
        enum { BLOCKS = 64, BIG = 256 << 20 };
        struct afz_book *b = *state;
        struct afz_resident *r = calloc(1, sizeof *r);
        struct afz_block_sums *sums = calloc(1, sizeof *sums);
        const struct afz_block_clock clock = {0};
        char *map = mmap(NULL, BIG, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert_ptr_not_equal(map, MAP_FAILED);
        for (unsigned i = 0; i < BLOCKS; i++) { /* none of it is there; each is a site of its own */
                b->address[i] = (uintptr_t)map + (uint64_t)i * (1 << 20);
                b->block[i].site_size = AFZ_BLOCK_LARGE | (uint64_t)i << 48 | (1 << 20) >> 4;
        }
        b->address[7] = UINT64_C(0xb400) << 48; /* an address that no process has */
        b->address[BLOCKS] = (uintptr_t)map;
        b->block[BLOCKS].site_size = AFZ_BLOCK_LARGE | (uint64_t)BLOCKS << 48 | BIG >> 4;
        afz_resident_open(r, getpid());
        for (int look = 0; r->fd >= 0 && look < 8; look++) {
                unsigned reads = 48;
                afz_blocks_look(sums, b, &clock, r, &reads);
                assert_true(r->share[BLOCKS] < 0.01f);
                assert_true(look > 0 || r->share[BLOCKS - 1] > 0.99f);
        }
        for (unsigned i = 0; r->fd >= 0 && i < BLOCKS; i++)
                assert_true(i == 7 ? r->share[i] > 0.99f : r->share[i] < 0.01f);
        afz_resident_close(r);
        munmap(map, BIG);
        free(sums);
        free(r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                BOOK_TEST(test_whole),
                BOOK_TEST(test_hostile_sites),
                BOOK_TEST(test_figures_are_sane),
                BOOK_TEST(test_texts),
                BOOK_TEST(test_modules),
                BOOK_TEST(test_live_blocks),
                BOOK_TEST(test_ages),
                BOOK_TEST(test_water),
                BOOK_TEST(test_inside),
                BOOK_TEST(test_noise),
                BOOK_TEST(test_resident),
                BOOK_TEST(test_resident_of_many),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
