/* The live view: whole frames against golden files, and frames that must merely come out harmless.
 *
 * The golden files are in tests/golden. AFZ_GOLDEN_WRITE=1 in the environment writes them anew;
 * look at the difference before you keep it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "key.h"
#include "live.h"
#include "view_fixture.h"

enum { TEXT_CAP = 1 << 18 };

struct frame {
        const char *golden; /* file name; NULL: only drawn */
        int width, height;
        enum afz_depth depth;
        bool utf8;
        struct fix_want want;
        const char *keys;  /* pressed before */
        uint64_t line_gib; /* the line, 0: none */
        bool events, ended;
        const struct afz_lines_now *lines;
};

/* What a run's keeper tells. */
static const struct afz_lines_now some_lines = {
        .known = true,
        .live_bytes = 4080218931,
        .step = 1240,
        .growth_s = 60,
        .processes = 5,
        .rows = 5,
        .words =
                "the probe is in 5 processes, CPython 3.11; of one the small objects of Python are "
                "not seen: PYTHONMALLOC names an allocator",
        .row = {{"train.py:118 in train_step()", UINT64_C(2) << 30, 220200960, "heap", 1},
                {"data.py:41 in load()", 943718400, 0, "mapped", 5},
                {"model.py:9 in Net.__init__()", 314572800, -52428800, "heap", 1},
                {"a_module_with_a_long_name.py:1234 in some_class.some_method_of_it_that_goes_on()",
                 73400320, 1048576, "Python objects", 1},
                {"everywhere else", 600000000, 104857600, "", 0}},
};

/* The same, of a framework that tells what its memory is for; a step goes in four parts. */
static const struct afz_lines_now some_uses = {
        .known = true,
        .live_bytes = 4080218931,
        .step = 1240,
        .growth_s = 60,
        .processes = 1,
        .rows = 1,
        .row = {{"train.py:118 in train_step()", UINT64_C(2) << 30, 220200960, "heap", 1}},
        .uses = {3, 4},
        .use = {{{"parameters", 1 << 20}, {"batch", 200 << 20}, {"fetched ahead", 800 << 20}},
                {{"parameters", 440 << 20},
                 {"gradients", 440 << 20},
                 {"optimizer", 880 << 20},
                 {"activations", UINT64_C(5) << 30}}},
        .gpu_peak_bytes = UINT64_C(7) << 30,
        .batch = 64,
        .micro = 16,
        .ooms = 2,
};

static const struct afz_event oom = {.t_ns = FIX_T0 - 65 * FIX_S,
                                     .kind = AFZ_EVENT_OOM_KILL,
                                     .code = 99,
                                     .text = "Out of memory: Killed process 99 (python3)"};

/* Draws a frame and gives its text; also encodes it, so that the sanitizers see that path too. */
static void draw(const struct frame *f, char *text)
{
        static char bytes[TEXT_CAP];
        struct fix *fix = fix_new(&f->want);
        struct afz_screen screen;
        struct afz_live_state live = {.host = "lab-3",
                                      .clock = "12:03:11",
                                      .job_start_ns = FIX_START,
                                      .line_bytes = f->line_gib << 30,
                                      .interval_ns = FIX_S,
                                      .lines = f->lines,
                                      .job_ended = f->ended};
        struct afz_out out = afz_out_to(-1, text, TEXT_CAP - 1);
        struct afz_out encoded = afz_out_to(-1, bytes, sizeof bytes);

        if (f->events)
                fix->window.event[fix->window.events++] = oom;
        afz_screen_init(&screen, f->depth, f->utf8);
        assert_int_equal(afz_screen_resize(&screen, f->width, f->height), 0);
        assert_int_equal(afz_live_init(&live), 0);
        for (const char *key = f->keys; key && *key; key++)
                afz_live_key(&live, *key);
        afz_screen_clear(&screen);
        afz_live_draw(&screen, &fix->window, &live);
        afz_screen_text(&screen, &out);
        afz_screen_encode(&screen, &encoded);
        text[out.len] = 0;
        assert_int_equal(out.err, 0);
        assert_int_equal(encoded.err, 0);
        afz_live_done(&live);
        afz_screen_done(&screen);
        fix_free(fix);
}

static void golden_path(const char *name, char *path, size_t cap)
{
        const char *fixtures = getenv("AFZ_FIXTURES"), *slash = strrchr(__FILE__, '/');
        if (fixtures)
                snprintf(path, cap, "%s/../golden/%s", fixtures, name);
        else
                snprintf(path, cap, "%.*s/golden/%s", slash ? (int)(slash - __FILE__) : 1,
                         slash ? __FILE__ : ".", name);
}

static void check_golden(const char *name, const char *text)
{
        static char want[TEXT_CAP];
        char path[512];
        golden_path(name, path, sizeof path);
        if (getenv("AFZ_GOLDEN_WRITE")) {
                FILE *file = fopen(path, "w");
                assert_non_null(file);
                fputs(text, file);
                fclose(file);
                return;
        }
        FILE *file = fopen(path, "r");
        if (!file)
                fail_msg("no %s", path);
        want[fread(want, 1, sizeof want - 1, file)] = 0;
        fclose(file);
        if (strcmp(text, want) != 0)
                fail_msg("%s differs; this was drawn:\n%s", name, text);
}

#define USUAL .depth = AFZ_DEPTH_NONE, .utf8 = true

static const struct frame golden[] = {
        {"live-80x24.txt", 80, 24, USUAL, .want = {.gpus = 1, .procs = 6, .cores = 8},
         .line_gib = 13},
        {"live-80x24-ascii.txt", 80, 24, AFZ_DEPTH_NONE, false,
         .want = {.gpus = 8, .procs = 300, .cores = 64}, .line_gib = 13, .events = true},
        {"live-80x24-absent.txt", 80, 24, USUAL,
         .want = {.gpus = 1, .procs = 5, .cores = 4, .blank = 1, .unseen = 1}},
        {"live-80x24-first.txt", 80, 24, USUAL,
         .want = {.gpus = 0, .procs = 4, .cores = 4, .no_before = 1}},
        {"live-80x24-machine.txt", 80, 24, USUAL,
         .want = {.gpus = 0, .procs = 12, .cores = 4, .no_job = 1}},
        {"live-80x24-ended.txt", 80, 24, USUAL, .want = {.cores = 4}, .ended = true},
        {"live-80x24-help.txt", 80, 24, USUAL, .want = {.gpus = 1, .procs = 6, .cores = 8},
         .keys = "h"},
        {"live-80x24-info.txt", 80, 24, USUAL,
         .want = {.gpus = 0, .procs = 6, .cores = 8, .unseen = 1}, .keys = "i", .events = true},
        {"live-80x24-gpus.txt", 80, 24, USUAL, .want = {.gpus = 8, .procs = 6, .cores = 8},
         .keys = "gj"},
        {"live-80x24-cpu.txt", 80, 24, USUAL, .want = {.gpus = 1, .procs = 30, .cores = 8},
         .keys = "ssp"},
        {"live-200x50.txt", 200, 50, USUAL, .want = {.gpus = 1, .procs = 12, .cores = 16},
         .line_gib = 13, .events = true},
        {"live-200x50-8gpus.txt", 200, 50, USUAL, .want = {.gpus = 8, .procs = 300, .cores = 128},
         .line_gib = 13},
        {"live-80x24-lines.txt", 80, 24, USUAL, .want = {.gpus = 1, .procs = 6, .cores = 8},
         .line_gib = 13, .lines = &some_lines},
        {"live-80x24-lines-page.txt", 80, 24, USUAL, .want = {.procs = 6, .cores = 8}, .keys = "l",
         .lines = &some_lines},
        {"live-80x24-lines-none.txt", 80, 24, USUAL, .want = {.procs = 6, .cores = 8}, .keys = "l"},
        {"live-200x50-lines.txt", 200, 50, USUAL, .want = {.gpus = 1, .procs = 12, .cores = 16},
         .line_gib = 13, .lines = &some_lines},
        {"live-80x24-uses.txt", 80, 24, USUAL, .want = {.gpus = 1, .procs = 6, .cores = 8},
         .line_gib = 13, .lines = &some_uses},
        {"live-200x50-uses.txt", 200, 50, USUAL, .want = {.gpus = 1, .procs = 12, .cores = 16},
         .line_gib = 13, .lines = &some_uses},
        {"live-40x10.txt", 40, 10, USUAL, .want = {.gpus = 1, .procs = 5, .cores = 8}},
};

static void test_golden_frames(void **state)
{
        static char text[TEXT_CAP];
        (void)state;
        for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
                draw(&golden[i], text);
                check_golden(golden[i].golden, text);
        }
}

/* Colours change nothing in what stands where, bars aside. */
static void test_every_size_and_page(void **state)
{
        static const char *const keys[] = {"", "h", "i", "g", "s", "ss", "jjjjjjjj", "l"};
        static char text[TEXT_CAP];
        (void)state;
        for (int width = 0; width <= 220; width += width < 64 ? 3 : 31)
                for (int height = 0; height <= 60; height += height < 16 ? 1 : 11)
                        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
                                struct frame f = {.width = width,
                                                  .height = height,
                                                  .depth = AFZ_DEPTH_RGB,
                                                  .utf8 = true,
                                                  .want = {.gpus = (unsigned)(k % 3) * 4,
                                                           .procs = 9,
                                                           .cores = 96},
                                                  .keys = keys[k],
                                                  .line_gib = 13,
                                                  .lines = k % 3 == 1   ? &some_lines
                                                           : k % 3 == 2 ? &some_uses
                                                                        : NULL,
                                                  .events = true};
                                draw(&f, text);
                        }
}

/* What a process calls itself must neither reach the terminal as a command nor move a column. */
static void test_hostile_names(void **state)
{
        static const char *const names[] = {
                "\033[2J\033[31mx",
                "\x9b"
                "31mfoo",
                "a\rb\nc\td\a",
                "foo) Z ",
                "训练模型训练模型",
                "🔥🔥🔥",
                "\u202etxt.exe",
                "\xff\xfe\xfd",
                "e\u0301e\u0301",
                "",
                "\033]0;title\007",
                "\xc2\x9b"
                "2J",
                "─│█",
                "\xe6\x97",
        };
        static char text[TEXT_CAP];
        (void)state;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                struct afz_lines_now lines = some_lines;
                snprintf(lines.row[0].name, sizeof lines.row[0].name, "%s", names[i]);
                lines.row[1].live_bytes = UINT64_MAX, lines.row[1].growth_bytes = INT64_MIN;
                lines.row[2].growth_bytes = INT64_MAX, lines.growth_s = 1;
                struct frame f = {.width = 80,
                                  .height = 24,
                                  .depth = AFZ_DEPTH_NONE,
                                  .utf8 = true,
                                  .want = {.gpus = 1,
                                           .procs = 5,
                                           .cores = 4,
                                           .name = names[i],
                                           .detail = names[i],
                                           .note = names[i]},
                                  .lines = &lines};
                int rows = 0;
                draw(&f, text);
                for (char *row = text, *end; (end = strchr(row, '\n')); row = end + 1, rows++) {
                        *end = 0;
                        for (const char *c = row; *c; c++)
                                if ((unsigned char)*c < 0x20 || *c == 0x7f ||
                                    ((unsigned char)*c == 0xc2 && (unsigned char)c[1] < 0xa0))
                                        fail_msg("name %zu: control byte in: %s", i, row);
                        assert_in_range(afz_glyph_columns(row), 0, 80);
                }
                assert_int_equal(rows, 24);
        }
}

/* A circle of parents, which a pid used again can make, must not hang the view. */
static void test_circle_of_parents(void **state)
{
        struct fix_want want = {.procs = 5, .cores = 1};
        struct fix *fix = fix_new(&want);
        struct afz_screen screen;
        struct afz_live_state live = {0};
        (void)state;
        for (size_t i = 0; i < fix->now->count; i++) {
                struct afz_sample *s = &fix->now->sample[i];
                if (s->subject.kind == AFZ_KIND_PROC && s->subject.id > 4242)
                        afz_sample_set(s, AFZ_PROC_PPID, s->subject.id == 4246 ? 4243 : 4246);
        }
        afz_screen_init(&screen, AFZ_DEPTH_NONE, true);
        afz_screen_resize(&screen, 80, 24);
        assert_int_equal(afz_live_init(&live), 0);
        afz_live_draw(&screen, &fix->window, &live);
        afz_live_done(&live);
        afz_screen_done(&screen);
        fix_free(fix);
}

static void test_keys(void **state)
{
        struct afz_live_state live = {.interval_ns = FIX_S};
        (void)state;
        assert_int_equal(afz_live_key(&live, 'h'), AFZ_LIVE_REDRAW);
        assert_true(live.help);
        assert_int_equal(afz_live_key(&live, 'q'), AFZ_LIVE_REDRAW); /* leaves the help first */
        assert_false(live.help);
        assert_int_equal(afz_live_key(&live, 'i'), AFZ_LIVE_REDRAW);
        assert_int_equal(live.page, AFZ_LIVE_INFO);
        assert_int_equal(afz_live_key(&live, AFZ_KEY_ESCAPE), AFZ_LIVE_REDRAW);
        assert_int_equal(live.page, AFZ_LIVE_MAIN);
        assert_int_equal(afz_live_key(&live, AFZ_KEY_ESCAPE), AFZ_LIVE_NOTHING);
        assert_int_equal(afz_live_key(&live, 'p'), AFZ_LIVE_REDRAW);
        assert_true(live.paused);
        assert_int_equal(afz_live_key(&live, AFZ_KEY_UP), AFZ_LIVE_REDRAW);
        assert_int_equal(live.scroll, 0);
        for (int i = 0; i < 3; i++)
                afz_live_key(&live, AFZ_KEY_END);
        assert_in_range(live.scroll, 1, INT32_MAX / 2);
        for (int i = 0; i < 20; i++)
                afz_live_key(&live, '-');
        assert_int_equal(live.interval_ns, FIX_S / 10);
        for (int i = 0; i < 20; i++)
                afz_live_key(&live, '+');
        assert_int_equal(live.interval_ns, 10 * FIX_S);
        assert_int_equal(afz_live_key(&live, 12), AFZ_LIVE_REPAINT);
        assert_int_equal(afz_live_key(&live, 26), AFZ_LIVE_SUSPEND);
        assert_int_equal(afz_live_key(&live, 3), AFZ_LIVE_QUIT);
        assert_int_equal(afz_live_key(&live, 'q'), AFZ_LIVE_QUIT);
        assert_int_equal(afz_live_key(&live, AFZ_KEY_OTHER), AFZ_LIVE_NOTHING);
}

/* Scrolling stops at the last row, and comes back at once. */
static void test_scroll_is_kept_within(void **state)
{
        struct fix_want want = {.procs = 300, .cores = 4};
        struct fix *fix = fix_new(&want);
        struct afz_screen screen;
        struct afz_live_state live = {0};
        char text[8192];
        (void)state;
        afz_screen_init(&screen, AFZ_DEPTH_NONE, true);
        afz_screen_resize(&screen, 80, 24);
        assert_int_equal(afz_live_init(&live), 0);
        for (int sort = 0; sort < AFZ_LIVE_SORTS; sort++) {
                struct afz_out out = afz_out_to(-1, text, sizeof text - 1);
                live.sort = (enum afz_live_sort)sort;
                afz_live_key(&live, AFZ_KEY_END);
                afz_screen_clear(&screen);
                afz_live_draw(&screen, &fix->window, &live);
                assert_in_range(live.scroll, 250, 299);
                afz_screen_text(&screen, &out);
                text[out.len] = 0;
                assert_non_null(strstr(text, "↑ "));
                if (sort == AFZ_LIVE_BY_TREE)
                        assert_non_null(strstr(text, " 4541 ")); /* the last */
                if (sort == AFZ_LIVE_BY_NEED)
                        assert_non_null(strstr(text, " 4243 ")); /* the least */
        }
        afz_live_done(&live);
        afz_screen_done(&screen);
        fix_free(fix);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_golden_frames), cmocka_unit_test(test_every_size_and_page),
                cmocka_unit_test(test_hostile_names), cmocka_unit_test(test_circle_of_parents),
                cmocka_unit_test(test_keys),          cmocka_unit_test(test_scroll_is_kept_within),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
