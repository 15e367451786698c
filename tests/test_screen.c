/* The cell grid and its encoder. What the encoder writes is played back by a small terminal of our
 * own, which must end up showing the very grid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "figure.h"
#include "glyph.h"
#include "screen.h"

enum { W = 40, H = 8, BIG_W = 64, BIG_H = 12 };

struct shown {
        char glyph[AFZ_GLYPH_BYTES];
        long fg, bg; /* -1 default, else 0xrrggbb */
        int attr;
};

struct terminal {
        int width, height, x, y;
        struct shown pen, cell[BIG_W * BIG_H];
};

static void blank(struct shown *cell)
{
        *cell = (struct shown){.glyph = " ", .fg = -1, .bg = -1};
}

static void start(struct terminal *t, int width, int height)
{
        memset(t, 0, sizeof *t);
        t->width = width;
        t->height = height;
        blank(&t->pen);
        for (int i = 0; i < BIG_W * BIG_H; i++)
                blank(&t->cell[i]);
        t->x = 3; /* wherever it was */
        t->y = 2;
}

static void set_pen(struct terminal *t, const long *p, int n)
{
        for (int i = 0; i < n; i++) {
                if (p[i] == 0) {
                        t->pen.fg = t->pen.bg = -1;
                        t->pen.attr = 0;
                } else if (p[i] == 1) {
                        t->pen.attr |= AFZ_ATTR_BOLD;
                } else if (p[i] == 7) {
                        t->pen.attr |= AFZ_ATTR_REVERSE;
                } else if (p[i] == 38 || p[i] == 48) {
                        assert_true(i + 4 < n && p[i + 1] == 2);
                        long rgb = p[i + 2] << 16 | p[i + 3] << 8 | p[i + 4];
                        *(p[i] == 38 ? &t->pen.fg : &t->pen.bg) = rgb;
                        i += 4;
                } else {
                        fail_msg("unexpected SGR %ld", p[i]);
                }
        }
}

static const char *play_sequence(struct terminal *t, const char *s)
{
        long p[16] = {0};
        int n = 0;
        for (s += 2;; s++) {
                if (*s >= '0' && *s <= '9') {
                        p[n] = p[n] * 10 + (*s - '0');
                } else if (*s == ';') {
                        assert_true(++n < 16);
                } else {
                        break;
                }
        }
        n++;
        switch (*s) {
        case 'H':
                t->y = (int)p[0] - 1;
                t->x = (int)p[1] - 1;
                assert_in_range(t->y, 0, t->height - 1);
                assert_in_range(t->x, 0, t->width - 1);
                break;
        case 'C':
                t->x += (int)p[0];
                break;
        case 'K':
                for (int x = t->x; x < t->width; x++)
                        blank(&t->cell[t->y * t->width + x]);
                break;
        case 'J':
                assert_int_equal(p[0], 2);
                for (int i = 0; i < t->width * t->height; i++)
                        blank(&t->cell[i]);
                break;
        case 'm':
                set_pen(t, p, n);
                break;
        default:
                fail_msg("unexpected sequence ending in %c", *s);
        }
        return s + 1;
}

static const char *play_glyph(struct terminal *t, const char *s, const char *end)
{
        struct shown cell = t->pen;
        int columns = afz_glyph_take(&s, end, cell.glyph);
        assert_in_range(columns, 1, 2);
        assert_true((unsigned char)cell.glyph[0] >= 0x20);
        assert_in_range(t->x, 0, t->width - columns);
        struct shown *at = &t->cell[t->y * t->width + t->x];
        /* A real terminal blanks the half that is left of a wide glyph. */
        if (at[0].glyph[0] == 0 && t->x > 0)
                memcpy(at[-1].glyph, " \0\0", AFZ_GLYPH_BYTES);
        if (t->x + columns < t->width && at[columns].glyph[0] == 0)
                memcpy(at[columns].glyph, " \0\0", AFZ_GLYPH_BYTES);
        at[0] = cell;
        if (columns == 2) {
                at[1] = cell;
                memset(at[1].glyph, 0, AFZ_GLYPH_BYTES);
        }
        t->x += columns;
        /* Behind a glyph that not all terminals draw alike, the encoder may not trust the cursor.
         */
        if (!afz_glyph_is_steady(cell.glyph))
                t->x = t->width + 1;
        return s;
}

static void play(struct terminal *t, const char *s, size_t n)
{
        const char *end = s + n;
        while (s < end)
                s = s[0] == '\033' && s[1] == '[' ? play_sequence(t, s) : play_glyph(t, s, end);
}

static void check_same(const struct terminal *t, const struct afz_screen *s)
{
        static long code[AFZ_COLORS]; /* as first seen; 0: not yet */
        assert_int_equal(t->width, s->width);
        for (int i = 0; i < s->width * s->height; i++) {
                const struct afz_cell *want = &s->next[i];
                const struct shown *have = &t->cell[i];
                long pair[2][2] = {{want->style.fg, have->fg}, {want->style.bg, have->bg}};
                if (memcmp(want->glyph, have->glyph, AFZ_GLYPH_BYTES) != 0)
                        fail_msg("cell %d,%d: '%.4s' instead of '%.4s'", i % s->width, i / s->width,
                                 have->glyph, want->glyph);
                assert_int_equal(want->style.attr, have->attr);
                for (int k = 0; k < 2; k++) {
                        long color = pair[k][0];
                        if (code[color] == 0)
                                code[color] = pair[k][1];
                        assert_int_equal(code[color], pair[k][1]);
                }
        }
}

static void show(struct afz_screen *s, struct terminal *t, size_t *ret_bytes)
{
        static char buf[1 << 16];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf);
        afz_screen_encode(s, &out);
        assert_int_equal(out.err, 0);
        play(t, buf, out.len);
        check_same(t, s);
        /* The pen is left at its default, whatever was drawn. */
        assert_int_equal(t->pen.fg, -1);
        assert_int_equal(t->pen.attr, 0);
        if (ret_bytes)
                *ret_bytes = out.len;
}

static const struct afz_style plain;

static void test_unchanged_frame_is_silent(void **state)
{
        struct afz_screen s;
        struct terminal t;
        size_t bytes;
        (void)state;
        afz_screen_init(&s, AFZ_DEPTH_RGB, true);
        assert_int_equal(afz_screen_resize(&s, W, H), 0);
        start(&t, W, H);
        for (int i = 0; i < 3; i++) {
                afz_screen_clear(&s);
                afz_screen_put(&s, 2, 3, 20, AFZ_BOLD(AFZ_COLOR_WARN), "waiting for disk");
                afz_screen_put(&s, 30, 5, 9, plain, i == 2 ? "97 %" : "98 %");
                show(&s, &t, &bytes);
                if (i == 1)
                        assert_int_equal(bytes, 0);
                if (i == 2)
                        assert_in_range(bytes, 1, 10); /* one move, one digit */
        }
        afz_screen_done(&s);
}

/* Far apart on one row: a jump, rather than all that lies between. */
static void test_jumps_over_what_stays(void **state)
{
        struct afz_screen s;
        struct terminal t;
        size_t bytes;
        (void)state;
        afz_screen_init(&s, AFZ_DEPTH_RGB, true);
        assert_int_equal(afz_screen_resize(&s, W, H), 0);
        start(&t, W, H);
        for (int i = 0; i < 2; i++) {
                afz_screen_clear(&s);
                afz_screen_fill(&s, 0, 4, W, plain, "x");
                afz_screen_put(&s, 0, 4, 1, plain, i ? "1" : "0");
                afz_screen_put(&s, W - 2, 4, 1, plain, i ? "1" : "0");
                show(&s, &t, &bytes);
        }
        assert_in_range(bytes, 2, 16);
        afz_screen_done(&s);
}

static void test_resize_repaints(void **state)
{
        static const int sizes[][2] = {{W, H}, {BIG_W, BIG_H}, {10, 3}, {W, H}, {1, 1}};
        struct afz_screen s;
        (void)state;
        afz_screen_init(&s, AFZ_DEPTH_RGB, true);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                struct terminal t;
                start(&t, sizes[i][0], sizes[i][1]);
                /* What the old frame left behind must go. */
                memcpy(t.cell[0].glyph, "Z\0\0", AFZ_GLYPH_BYTES);
                assert_int_equal(afz_screen_resize(&s, sizes[i][0], sizes[i][1]), 0);
                afz_screen_clear(&s);
                afz_screen_put(&s, 1, 1, 99, AFZ_STYLE(AFZ_COLOR_JOB), "job");
                show(&s, &t, NULL);
        }
        assert_int_equal(afz_screen_resize(&s, 100000, -4), 0);
        assert_int_equal(s.width, AFZ_SCREEN_MAX_WIDTH);
        assert_int_equal(s.height, 0);
        afz_screen_done(&s);
}

static uint32_t next_random(uint32_t *seed)
{
        *seed = *seed * 1664525 + 1013904223;
        return *seed >> 8;
}

static const char *const odd_texts[] = {"python3",
                                        "\033[31mred\033[0m",
                                        "训练模型",
                                        "a\u0301e\u0308",
                                        "\xff\xfe\x80",
                                        "日本",
                                        "emoji 🔥 here",
                                        "tab\tnew\nline",
                                        "\u202eevil",
                                        "",
                                        "──┃├└█▓░·…–",
                                        "한국어",
                                        "\xe6\x97",
                                        "مرحبا",
                                        "\x9b"
                                        "31m",
                                        "ｆｕｌｌ width",
                                        "x",
                                        "\r\b\a\x7f",
                                        "\xc2\x9b"
                                        "2J",
                                        "€uro Ω ж"};

/* Thousands of frames of odd texts at odd places, over and beside each other. */
static void test_random_frames(void **state)
{
        uint32_t seed = 7;
        struct afz_screen s;
        struct terminal t;
        (void)state;
        afz_screen_init(&s, AFZ_DEPTH_RGB, true);
        for (int frame = 0; frame < 4000; frame++) {
                if (frame % 500 == 0) {
                        int w = frame % 1000 ? W : BIG_W, h = frame % 1000 ? H : BIG_H;
                        assert_int_equal(afz_screen_resize(&s, w, h), 0);
                        start(&t, w, h);
                }
                afz_screen_clear(&s);
                for (uint32_t i = next_random(&seed) % 12; i > 0; i--) {
                        size_t count = sizeof odd_texts / sizeof odd_texts[0];
                        struct afz_style style = {
                                .fg = (uint8_t)(next_random(&seed) % AFZ_COLORS),
                                .bg = (uint8_t)(next_random(&seed) % 3 ? 0 : AFZ_COLOR_JOB),
                                .attr = (uint8_t)(next_random(&seed) % 4)};
                        int x = (int)(next_random(&seed) % 80) - 8;
                        int y = (int)(next_random(&seed) % 16) - 2;
                        afz_screen_put(&s, x, y, (int)(next_random(&seed) % 30), style,
                                       odd_texts[next_random(&seed) % count]);
                }
                show(&s, &t, NULL);
        }
        afz_screen_done(&s);
}

static void test_ascii_output(void **state)
{
        struct afz_screen s;
        char buf[1024];
        struct afz_out out = afz_out_to(-1, buf, sizeof buf);
        (void)state;
        afz_screen_init(&s, AFZ_DEPTH_NONE, false);
        afz_screen_resize(&s, 20, 1);
        afz_screen_put(&s, 0, 0, 20, AFZ_BOLD(AFZ_COLOR_BAD), "├─ █▓░· 训 é – …");
        afz_screen_encode(&s, &out);
        buf[out.len] = 0;
        for (size_t i = 0; i < out.len; i++)
                assert_true((unsigned char)buf[i] < 0x80);
        assert_non_null(strstr(buf, "|- #=-. ?? ? - ~"));
        assert_null(strstr(buf, "38;")); /* bold may stay, colours may not */
        afz_screen_done(&s);
}

static void test_depths(void **state)
{
        static const struct {
                enum afz_depth depth;
                const char *has;
        } rows[] = {
                {AFZ_DEPTH_16, "\033[0;31m"},
                {AFZ_DEPTH_256, "\033[0;38;5;"},
                {AFZ_DEPTH_RGB, "\033[0;38;2;"},
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct afz_screen s;
                char buf[256];
                struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
                afz_screen_init(&s, rows[i].depth, true);
                afz_screen_resize(&s, 8, 1);
                afz_screen_put(&s, 0, 0, 8, AFZ_STYLE(AFZ_COLOR_BAD), "bad");
                afz_screen_encode(&s, &out);
                buf[out.len] = 0;
                assert_non_null(strstr(buf, rows[i].has));
                afz_screen_done(&s);
        }
}

static void test_put_clips_and_marks(void **state)
{
        static const struct {
                int x, max;
                const char *text, *want;
                int used;
        } rows[] = {
                {0, 10, "short", "short\n", 5},     {0, 5, "exact", "exact\n", 5},
                {0, 4, "long one", "lon…\n", 4},    {6, 10, "edge of it", "      edg…\n", 4},
                {0, 0, "nothing", "\n", 0},         {12, 5, "beside", "\n", 0},
                {0, 5, "训练模型", "训 …\n", 4},    {0, 4, "训练", "训练\n", 4},
                {0, 9, "a\033[2Jb", "a?[2Jb\n", 6}, {0, 9, "a\u0301b", "ab\n", 2},
                {0, 9, "\xf0\x9f\x94", "???\n", 3}, {0, 9, "🔥x", "?x\n", 2},
                {0, 9, "\xc0\xaf", "??\n", 2},      {0, 9, "\xed\xa0\x80", "???\n", 3},
                {0, 9, "\u202eabc", "abc\n", 3},
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct afz_screen s;
                char buf[128];
                struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
                afz_screen_init(&s, AFZ_DEPTH_NONE, true);
                afz_screen_resize(&s, 10, 1);
                int used = afz_screen_put(&s, rows[i].x, 0, rows[i].max, plain, rows[i].text);
                afz_screen_text(&s, &out);
                buf[out.len] = 0;
                assert_string_equal(buf, rows[i].want);
                assert_int_equal(used, rows[i].used);
                afz_screen_done(&s);
        }
}

static void test_figures(void **state)
{
        static const struct {
                uint64_t bytes;
                const char *want;
        } sizes[] = {
                {0, "0B"},
                {1023, "1023B"},
                {1024, "1.0K"},
                {UINT64_C(10522669875), "9.8G"},
                {UINT64_C(16642998272), "15.5G"},
                {UINT64_C(107374182400), "100G"},
                {UINT64_C(1048575), "1.0M"},
                {(UINT64_C(1) << 40) - 1, "1.0T"},
                {UINT64_MAX, "16.0E"},
        };
        char buf[AFZ_FIGURE_CAP];
        (void)state;
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
                assert_string_equal(afz_figure_size(buf, sizes[i].bytes), sizes[i].want);
        assert_string_equal(afz_figure_percent(buf, 0), "0 %");
        assert_string_equal(afz_figure_percent(buf, 0.003), "0.3 %");
        assert_string_equal(afz_figure_percent(buf, 0.00001), "0 %");
        assert_string_equal(afz_figure_percent(buf, 1.874), "187 %");
        assert_string_equal(afz_figure_percent(buf, -1), "0 %");
        assert_string_equal(afz_figure_rate(buf, 3.0 * 1024 * 1024), "3.0M/s");
        assert_true(strlen(afz_figure_rate(buf, 1e300)) < AFZ_FIGURE_CAP);
        assert_string_equal(afz_figure_tenths(buf, 12.149), "12.1");
        assert_true(strlen(afz_figure_tenths(buf, 1e300)) < AFZ_FIGURE_CAP);
        assert_true(strlen(afz_figure_count(buf, UINT64_MAX)) < AFZ_FIGURE_CAP);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_unchanged_frame_is_silent),
                cmocka_unit_test(test_jumps_over_what_stays),
                cmocka_unit_test(test_resize_repaints),
                cmocka_unit_test(test_random_frames),
                cmocka_unit_test(test_ascii_output),
                cmocka_unit_test(test_depths),
                cmocka_unit_test(test_put_clips_and_marks),
                cmocka_unit_test(test_figures),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
