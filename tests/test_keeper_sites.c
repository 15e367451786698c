/* What stacks are called, which line they belong to, and what is told to who asks. */
#include "book_fixture.h"
#include "keeper_answer.h"
#include "keeper_names.h"

/* Of two processes that stand at the same lines, one site; names in any order of the texts. */
static void test_one_site_for_all(void **state)
{
        struct afz_book *b = *state, *other = calloc(1, AFZ_BOOK_BYTES);
        struct afz_book_look look;
        struct afz_sites *sites;
        char stack[AFZ_SITE_STACK_CAP];
        write_site(b, 7);
        write_site(other, 9);
        put_text(other, 400, "load");
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
                put_text(b, 4 + i * 256, texts[i]);
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
                {{python(5, STANDARD, ONES)}, 1, "python3.11/json/decoder.py:5 in ones()"},
                {{python(1, TEXT, MODULE)}, 1, "<string>:1"},
                {{python(1, TEXT, MODULE), python(7, STANDARD, ONES)},
                 2,
                 "python3.11/json/decoder.py:7 in ones()"},
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

/* Stacks that differ only in what the user did not write are one line. */
static void test_lines(void **state)
{
        struct afz_book *b = *state;
        struct afz_sites *s;
        char stack[AFZ_SITE_STACK_CAP];
        put_text(b, 4, "/home/me/train.py");
        put_text(b, 260, "/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py");
        put_text(b, 516, "<frozen importlib._bootstrap>");
        put_text(b, 772, "step");
        put_text(b, 1028, "/opt/env/lib/python3.11/site-packages/mine/train.py");
        put_text(b, 1284, "<frozen runpy>");
        enum { USER = 4, LIBRARY = 260, IMPORT = 516, STEP = 772, MINE = 1028, RUN = 1284 };
        const struct {
                uint64_t frame[3];
                const char *name; /* NULL: none */
        } cases[] = {
                {{0x10, python(7, LIBRARY, STEP), python(33, USER, STEP)}, "train.py:33 in step()"},
                {{0x20, python(8, LIBRARY, STEP), python(33, USER, STEP)}, "train.py:33 in step()"},
                {{python(9, LIBRARY, STEP), python(33, USER, STEP), python(1, USER, STEP)},
                 "train.py:33 in step()"},
                {{0x10, python(7, LIBRARY, STEP), python(8, LIBRARY, STEP)},
                 "torch/nn/modules/module.py:7 in step()"},
                {{0x10, python(7, LIBRARY, STEP), python(1, IMPORT, STEP)}, "imports of modules"},
                {{python(7, LIBRARY, STEP), python(5, MINE, STEP), python(1, RUN, STEP)},
                 "mine/train.py:5 in step()"}, /* an installed program, started by its name */
                {{python(7, LIBRARY, STEP), python(5, MINE, STEP), python(1, USER, STEP)},
                 "train.py:1 in step()"},
                {{0x10, 0x20, 0x30}, NULL},
        };
        uint32_t line[8];
        assert_int_equal(afz_sites_new(&s), 0);
        for (unsigned i = 0; i < 8; i++) {
                struct afz_book_look look = {.kind = AFZ_SITE_HEAP, .frames = 3};
                memcpy(look.frame, cases[i].frame, sizeof cases[i].frame);
                struct afz_site *site = &s->site[afz_sites_number(s, b, &look)];
                line[i] = afz_site_find_line(s, site);
                afz_site_set_name(s, site, NULL, stack);
                assert_int_equal(line[i] == 0, cases[i].name == NULL);
                if (line[i] == 0)
                        continue;
                afz_site_set_name(s, &s->site[line[i]], NULL, stack);
                assert_string_equal(s->site[line[i]].name, cases[i].name);
                if (s->site[line[i]].frames > 0) /* the stack is called by the same */
                        assert_string_equal(site->name, cases[i].name);
        }
        assert_int_equal(line[0], line[1]);
        assert_int_equal(line[0], line[2]);
        assert_string_equal(s->site[line[0]].where, "/home/me/train.py:33");
        afz_sites_free(s);
}

/* Every kind has words for what has no stack. */
static void test_unknown(void **state)
{
        struct afz_book *b = *state;
        struct afz_sites *s;
        char stack[AFZ_SITE_STACK_CAP];
        assert_int_equal(afz_sites_new(&s), 0);
        for (unsigned kind = AFZ_SITE_FREE + 1; kind < AFZ_SITE_KINDS; kind++) {
                const struct afz_book_look look = {.kind = (enum afz_site_kind)kind};
                uint32_t number = afz_sites_number(s, b, &look);
                afz_site_set_name(s, &s->site[number], NULL, stack);
                assert_non_null(strstr(s->site[number].name, "could not be told"));
        }
        afz_sites_free(s);
}

/* ---- the answer to who asks ---- */

static void set_named(struct afz_sites *s, const char *name, uint64_t live, bool recorded)
{
        struct afz_site *site = &s->site[s->sites++];
        *site = (struct afz_site){.id = s->sites, .kind = AFZ_SITE_HEAP, .recorded = recorded};
        site->now.live_bytes = live;
        site->processes = 1;
        snprintf(site->name, sizeof site->name, "%s", name);
}

#define SECOND UINT64_C(1000000000)

static void test_answer(void **state)
{
        struct afz_sites *s;
        struct afz_past past = {0};
        struct afz_keeper_answer a = {0};
        (void)state;
        assert_int_equal(afz_sites_new(&s), 0);
        strcpy(s->site[0].name, "everywhere else");
        set_named(s, "a.py:1", 100, true);
        set_named(s, "a.py:1", 300, true); /* another way to the same line */
        set_named(s, "b.py:2", 350, true);
        set_named(s, "", 50, false);
        s->site[0].now.live_bytes = 50; /* the recorder's sum of what it does not tell apart */
        afz_past_keep(&past, s, 1000 * SECOND);
        afz_keeper_answer(s, &past, 1000 * SECOND, &a);
        assert_int_equal(a.growth_s, 0);
        assert_int_equal(a.rows, 3);
        assert_int_equal(a.live_bytes, 800);
        assert_string_equal(a.row[0].name, "a.py:1");
        assert_int_equal(a.row[0].live_bytes, 400);
        assert_int_equal(a.row[0].growth_bytes, 0);
        assert_string_equal(a.row[1].name, "b.py:2");
        assert_string_equal(a.row[2].name, "everywhere else");

        /* It grows by 1 a second, and what is unnamed shrinks. What came at the start does not
         * count, and what came long ago neither. */
        for (unsigned t = 1; t <= 200; t++) {
                s->site[1].now.live_bytes++;
                afz_past_keep(&past, s, (1000 + t) * SECOND);
                afz_keeper_answer(s, &past, (1000 + t) * SECOND, &a);
                if (a.growth_s > 70 || (t < 15) != (a.growth_s == 0) ||
                    a.row[0].growth_bytes != (int64_t)a.growth_s)
                        fail_msg("after %u s: %d in %u s", t, (int)a.row[0].growth_bytes,
                                 a.growth_s);
        }
        s->site[0].now.live_bytes = 20;
        afz_keeper_answer(s, &past, 1200 * SECOND, &a);
        assert_int_equal(a.growth_s, 60);
        assert_int_equal(a.row[0].live_bytes, 600);
        assert_int_equal(a.row[0].growth_bytes, 60);
        assert_int_equal(a.row[2].growth_bytes, -30);

        /* More than there is room for is the rest. */
        for (unsigned i = 0; i < 40; i++) {
                char name[16];
                snprintf(name, sizeof name, "c.py:%u", i);
                set_named(s, name, 1000 + i, true);
        }
        afz_keeper_answer(s, &past, 1200 * SECOND, &a);
        assert_int_equal(a.rows, AFZ_KEEPER_ROWS);
        assert_string_equal(a.row[0].name, "c.py:39");
        assert_string_equal(a.row[AFZ_KEEPER_ROWS - 1].name, "everywhere else");
        uint64_t sum = 0;
        for (unsigned i = 0; i < a.rows; i++)
                sum += a.row[i].live_bytes;
        assert_int_equal(sum, a.live_bytes);
        afz_sites_free(s);
}

static void test_answer_is_checked(void **state)
{
        static struct afz_keeper_answer good, a;
        (void)state;
        good = (struct afz_keeper_answer){.magic = afz_keeper_ask_magic, .rows = AFZ_KEEPER_ROWS};
        memset(good.words, 'w', sizeof good.words);
        strcpy(good.row[0].name, "a\033[2Jb\n\302\2332J");
        memset(good.row[1].name, 'n', sizeof good.row[1].name);
        a = good;
        assert_int_equal(afz_keeper_answer_check(&a, sizeof a), 0);
        assert_int_equal(strlen(a.words), sizeof a.words - 1);
        assert_string_equal(a.row[0].name, "a?[2Jb???2J");
        assert_int_equal(strlen(a.row[1].name), sizeof a.row[1].name - 1);
        assert_int_equal(afz_keeper_answer_check(&a, sizeof a - 1), -EPROTO);
        assert_int_equal(afz_keeper_answer_check(&a, 0), -EPROTO);
        a = good, a.rows = AFZ_KEEPER_ROWS + 1;
        assert_int_equal(afz_keeper_answer_check(&a, sizeof a), -EPROTO);
        a = good, a.magic++;
        assert_int_equal(afz_keeper_answer_check(&a, sizeof a), -EPROTO);
        a = good, a.row[3].kind = AFZ_SITE_KINDS;
        assert_int_equal(afz_keeper_answer_check(&a, sizeof a), -EPROTO);
        a = good, a.row[15].live_bytes = UINT64_MAX;
        assert_int_equal(afz_keeper_answer_check(&a, sizeof a), -EPROTO);
}

static void test_socket_path(void **state)
{
        char path[32];
        (void)state;
        assert_true(afz_keeper_socket_path("/run/7.sock", path, sizeof path));
        assert_string_equal(path, "/run/7.probe");
        assert_false(afz_keeper_socket_path("", path, sizeof path));
        assert_false(afz_keeper_socket_path(".sock", path, sizeof path));
        assert_false(afz_keeper_socket_path("/run/7.sock.d", path, sizeof path));
        assert_false(afz_keeper_socket_path("/a/long/runtime/folder/is/1234.sock", path, 30));
        struct afz_keeper_answer a;
        assert_int_equal(afz_keeper_ask("/nowhere/7.probe", 10, &a), -ENOENT);
        assert_int_equal(afz_keeper_ask("", 10, &a), -ENOENT);
}

/* What processes tell is added up; what none told is 0. */
static void what_it_is_for(void **state)
{
        struct afz_keeper_answer a = {0};
        uint64_t told[AFZ_TOLD_COUNT];
        (void)state;
        for (unsigned i = 0; i < AFZ_TOLD_COUNT; i++)
                told[i] = AFZ_TOLD_NOT;
        afz_keeper_answer_told(told, &a);
        assert_int_equal(a.use[0].parameters + a.use[1].activations + a.batch_count, 0);
        told[AFZ_TOLD_PARAMETERS] = 100;
        told[AFZ_TOLD_GPU_ACTIVATIONS] = 7;
        told[AFZ_TOLD_BATCH] = 64;
        told[AFZ_TOLD_MICRO] = 16;
        afz_keeper_answer_told(told, &a);
        afz_keeper_answer_told(told, &a); /* two ranks */
        assert_int_equal(a.use[0].parameters, 200);
        assert_int_equal(a.use[1].activations, 14);
        assert_int_equal(a.batch_count, 64);
        assert_int_equal(a.micro_count, 16);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_it_is_for),
                BOOK_TEST(test_one_site_for_all),
                BOOK_TEST(test_names),
                BOOK_TEST(test_lines),
                BOOK_TEST(test_unknown),
                cmocka_unit_test(test_answer),
                cmocka_unit_test(test_answer_is_checked),
                cmocka_unit_test(test_socket_path),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
