#include <string.h>

#include "screen.h"

/* Both themes, dark and light, must stay readable: text keeps the terminal's own colour, and the
 * rest are middle tones. `basic` is the SGR number of the foreground; the background is 10 more. */
struct shade {
        uint8_t basic, indexed, red, green, blue;
};

static const struct shade palette[AFZ_COLORS] = {
        [AFZ_COLOR_QUIET] = {90, 245, 138, 143, 152}, [AFZ_COLOR_FAINT] = {90, 240, 88, 94, 104},
        [AFZ_COLOR_JOB] = {36, 38, 45, 164, 214},     [AFZ_COLOR_OTHERS] = {37, 247, 126, 138, 162},
        [AFZ_COLOR_CACHE] = {90, 240, 70, 78, 96},    [AFZ_COLOR_GOOD] = {32, 71, 92, 178, 108},
        [AFZ_COLOR_WARN] = {33, 179, 218, 160, 54},   [AFZ_COLOR_BAD] = {31, 167, 224, 88, 84},
};

/* What the terminal is known to have: cursor and pen. */
struct pen {
        struct afz_screen *screen;
        struct afz_out *out;
        struct afz_style style;
        int x, y; /* y -1: not known */
};

static void write_color(struct pen *pen, uint8_t color, unsigned background)
{
        const struct shade *s = &palette[color < AFZ_COLORS ? color : 0];
        afz_out_char(pen->out, ';');
        if (color == AFZ_COLOR_DEFAULT) {
                afz_out_u64(pen->out, 39 + background);
        } else if (pen->screen->depth == AFZ_DEPTH_16) {
                afz_out_u64(pen->out, s->basic + background);
        } else if (pen->screen->depth == AFZ_DEPTH_256) {
                afz_out_u64(pen->out, 38 + background);
                afz_out_str(pen->out, ";5;");
                afz_out_u64(pen->out, s->indexed);
        } else {
                afz_out_u64(pen->out, 38 + background);
                afz_out_str(pen->out, ";2;");
                afz_out_u64(pen->out, s->red);
                afz_out_char(pen->out, ';');
                afz_out_u64(pen->out, s->green);
                afz_out_char(pen->out, ';');
                afz_out_u64(pen->out, s->blue);
        }
}

static bool same_style(struct afz_style a, struct afz_style b)
{
        return a.fg == b.fg && a.bg == b.bg && a.attr == b.attr;
}

/* Always from a reset: one form that leaves nothing of the old pen behind. */
static void set_style(struct pen *pen, struct afz_style style)
{
        if (same_style(pen->style, style))
                return;
        afz_out_str(pen->out, "\033[0");
        if (style.attr & AFZ_ATTR_BOLD)
                afz_out_str(pen->out, ";1");
        if (style.attr & AFZ_ATTR_REVERSE)
                afz_out_str(pen->out, ";7");
        if (style.fg != AFZ_COLOR_DEFAULT)
                write_color(pen, style.fg, 0);
        if (style.bg != AFZ_COLOR_DEFAULT)
                write_color(pen, style.bg, 10);
        afz_out_char(pen->out, 'm');
        pen->style = style;
}

static bool same_cell(const struct afz_cell *a, const struct afz_cell *b)
{
        return memcmp(a, b, sizeof *a) == 0;
}

static void write_cell(struct pen *pen, const struct afz_cell *cell)
{
        const char *glyph = cell->glyph;
        set_style(pen, cell->style);
        if (!pen->screen->utf8)
                afz_out_char(pen->out, glyph[0] ? afz_glyph_ascii(glyph) : '?');
        else
                afz_out_bytes(pen->out, glyph, strnlen(glyph, AFZ_GLYPH_BYTES));
        pen->x++;
        /* At the last column terminals differ in where the cursor is; behind a wide or rare glyph
         * too. */
        if (pen->x >= pen->screen->width || (pen->screen->utf8 && !afz_glyph_is_steady(glyph)))
                pen->y = -1;
}

/* Cells that are rewritten rather than jumped over: a jump costs as many bytes. */
enum { REWRITE_CELLS = 4 };

static bool can_rewrite(const struct pen *pen, const struct afz_cell *row, int to)
{
        if (to - pen->x > REWRITE_CELLS)
                return false;
        for (int x = pen->x; x < to; x++)
                if (!same_style(row[x].style, pen->style) || (row[x].glyph[0] & 0x80) ||
                    row[x].glyph[0] == 0)
                        return false;
        return true;
}

static void move_to(struct pen *pen, const struct afz_cell *row, int x, int y)
{
        if (pen->y == y && pen->x == x)
                return;
        if (pen->y == y && pen->x < x && can_rewrite(pen, row, x)) {
                while (pen->x < x)
                        write_cell(pen, &row[pen->x]);
                return;
        }
        afz_out_str(pen->out, "\033[");
        if (pen->y == y && pen->x < x) {
                afz_out_u64(pen->out, (uint64_t)(x - pen->x));
                afz_out_char(pen->out, 'C');
        } else {
                afz_out_u64(pen->out, (uint64_t)y + 1);
                afz_out_char(pen->out, ';');
                afz_out_u64(pen->out, (uint64_t)x + 1);
                afz_out_char(pen->out, 'H');
        }
        pen->x = x;
        pen->y = y;
}

static int blank_from(const struct afz_cell *row, int width)
{
        static const struct afz_cell blank = {.glyph = " "};
        while (width > 0 && same_cell(&row[width - 1], &blank))
                width--;
        return width;
}

static void encode_row(struct pen *pen, int y)
{
        const struct afz_screen *s = pen->screen;
        size_t at = (size_t)y * (size_t)s->width;
        const struct afz_cell *row = &s->next[at], *old = &s->shown[at];

        if (memcmp(row, old, (size_t)s->width * sizeof *row) == 0)
                return;
        int tail = blank_from(row, s->width);
        for (int x = 0; x < s->width; x++) {
                if (same_cell(&row[x], &old[x]))
                        continue;
                if (row[x].glyph[0] == 0 && s->utf8) {
                        /* A second half is drawn with its first, unless that was the same. */
                        if (x == 0 || !same_cell(&row[x - 1], &old[x - 1]))
                                continue;
                        move_to(pen, row, x - 1, y);
                        write_cell(pen, &row[x - 1]);
                        continue;
                }
                if (x >= tail && blank_from(old, s->width) > x + 3) {
                        move_to(pen, row, x, y);
                        set_style(pen, (struct afz_style){0});
                        afz_out_str(pen->out, "\033[K");
                        break;
                }
                move_to(pen, row, x, y);
                write_cell(pen, &row[x]);
        }
        memcpy(&s->shown[at], row, (size_t)s->width * sizeof *row);
}

void afz_screen_encode(struct afz_screen *screen, struct afz_out *out)
{
        struct pen pen = {.screen = screen, .out = out, .y = -1};

        if (screen->stale) {
                size_t cells = (size_t)screen->width * (size_t)screen->height;
                for (size_t i = 0; i < cells; i++)
                        screen->shown[i] = (struct afz_cell){.glyph = " "};
                afz_out_str(out, "\033[0m\033[2J");
                screen->stale = false;
        }
        for (int y = 0; y < screen->height; y++)
                encode_row(&pen, y);
        set_style(&pen, (struct afz_style){0});
}
