#include "screen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct afz_cell) == 8, "cells are compared as words");

static const struct afz_cell blank = {.glyph = " "};

void afz_screen_init(struct afz_screen *screen, enum afz_depth depth, bool utf8)
{
        *screen = (struct afz_screen){.depth = depth, .utf8 = utf8, .stale = true};
}

void afz_screen_done(struct afz_screen *screen)
{
        free(screen->next);
        free(screen->shown);
        screen->next = screen->shown = NULL;
        screen->width = screen->height = 0;
        screen->cells = 0;
}

static int at_most(int value, int most)
{
        return value < 0 ? 0 : value > most ? most : value;
}

int afz_screen_resize(struct afz_screen *screen, int width, int height)
{
        width = at_most(width, AFZ_SCREEN_MAX_WIDTH);
        height = at_most(height, AFZ_SCREEN_MAX_HEIGHT);
        if (width == screen->width && height == screen->height && screen->next)
                return 0;
        size_t cells = (size_t)width * (size_t)height;
        if (cells > screen->cells || !screen->next) {
                struct afz_cell *next = malloc((cells + 1) * sizeof *next);
                struct afz_cell *shown = malloc((cells + 1) * sizeof *shown);
                if (!next || !shown) {
                        free(next);
                        free(shown);
                        return -ENOMEM;
                }
                free(screen->next);
                free(screen->shown);
                screen->next = next;
                screen->shown = shown;
                screen->cells = cells;
        }
        screen->width = width;
        screen->height = height;
        screen->stale = true;
        afz_screen_clear(screen);
        return 0;
}

static void make_blank(struct afz_cell *cells, size_t n)
{
        for (size_t i = 0; i < n; i++)
                cells[i] = blank;
}

static size_t count_cells(const struct afz_screen *screen)
{
        return (size_t)screen->width * (size_t)screen->height;
}

void afz_screen_clear(struct afz_screen *screen)
{
        make_blank(screen->next, count_cells(screen));
        screen->wide = false;
}

static struct afz_cell *cell_at(const struct afz_screen *screen, int x, int y)
{
        return &screen->next[(size_t)y * (size_t)screen->width + (size_t)x];
}

/* Writing over one half of a wide glyph leaves a blank for the other. */
static void split_wide(struct afz_screen *screen, int x, int y)
{
        struct afz_cell *cell = cell_at(screen, x, y);
        if (cell->glyph[0] == 0 && x > 0)
                memcpy(cell[-1].glyph, blank.glyph, AFZ_GLYPH_BYTES);
        else if (x + 1 < screen->width && cell[1].glyph[0] == 0)
                memcpy(cell[1].glyph, blank.glyph, AFZ_GLYPH_BYTES);
}

/* A cell of this style, to be given its glyph. */
static struct afz_cell cell_of(const struct afz_screen *screen, struct afz_style style,
                               const char *glyph)
{
        struct afz_cell cell = {.style = style};
        if (screen->depth == AFZ_DEPTH_NONE)
                cell.style.fg = cell.style.bg = AFZ_COLOR_DEFAULT;
        for (int i = 0; i < AFZ_GLYPH_BYTES && glyph[i]; i++)
                cell.glyph[i] = glyph[i];
        return cell;
}

static void set_cell(struct afz_screen *screen, int x, int y, struct afz_cell cell)
{
        if (x < 0 || y < 0 || x >= screen->width || y >= screen->height)
                return;
        if (screen->wide)
                split_wide(screen, x, y);
        *cell_at(screen, x, y) = cell;
}

void afz_screen_glyph(struct afz_screen *screen, int x, int y, struct afz_style style,
                      const char *glyph)
{
        set_cell(screen, x, y, cell_of(screen, style, glyph));
}

void afz_screen_fill(struct afz_screen *screen, int x, int y, int n, struct afz_style style,
                     const char *glyph)
{
        struct afz_cell cell = cell_of(screen, style, glyph);
        for (int i = 0; i < n && x + i < screen->width; i++)
                set_cell(screen, x + i, y, cell);
}

/* Both halves of a wide glyph, the second without one. */
static void set_wide(struct afz_screen *screen, int x, int y, struct afz_cell cell)
{
        struct afz_cell half = {.style = cell.style};
        if (x < 0)
                return;
        screen->wide = true;
        set_cell(screen, x, y, cell);
        set_cell(screen, x + 1, y, half);
        /* Last: the second half, when it was set, may have taken the first for an orphan. */
        set_cell(screen, x, y, cell);
        if (y >= 0 && y < screen->height && x + 1 < screen->width)
                *cell_at(screen, x + 1, y) = half;
}

/* ASCII at the front of a text, which is nearly all that is ever drawn, in one go. Returns how many
 * characters it drew; the last that fits is left, as it may have to become "…". */
static int put_ascii(struct afz_screen *screen, int x, int y, int max_columns, struct afz_cell cell,
                     const char *text)
{
        int n = 0;
        if (screen->wide || x < 0 || y < 0 || y >= screen->height)
                return 0;
        struct afz_cell *at = cell_at(screen, x, y);
        for (; n + 1 < max_columns && text[n] >= 0x20 && text[n] < 0x7f; n++)
                at[n] = (struct afz_cell){.glyph = {text[n]}, .style = cell.style};
        return n;
}

int afz_screen_put(struct afz_screen *screen, int x, int y, int max_columns, struct afz_style style,
                   const char *text)
{
        struct afz_cell cell = cell_of(screen, style, "");
        const char *end = text + strlen(text);

        if (max_columns > screen->width - x)
                max_columns = screen->width - x;
        int used = put_ascii(screen, x, y, max_columns, cell, text);
        text += used;
        while (text < end) {
                int columns = afz_glyph_take(&text, end, cell.glyph);
                if (columns == 0)
                        continue;
                if (used + columns > max_columns) {
                        if (used > 0)
                                afz_screen_glyph(screen, x + used - 1, y, style, "…");
                        break;
                }
                if (columns == 2)
                        set_wide(screen, x + used, y, cell);
                else
                        set_cell(screen, x + used, y, cell);
                used += columns;
        }
        return used;
}

int afz_screen_put_right(struct afz_screen *screen, int x, int y, int columns,
                         struct afz_style style, const char *text)
{
        int need = afz_glyph_columns(text);
        int from = need < columns ? columns - need : 0;
        return from + afz_screen_put(screen, x + from, y, columns - from, style, text);
}

void afz_screen_text(const struct afz_screen *screen, struct afz_out *out)
{
        for (int y = 0; y < screen->height; y++) {
                const struct afz_cell *row = cell_at(screen, 0, y);
                int end = screen->width;
                while (end > 0 && memcmp(row[end - 1].glyph, blank.glyph, AFZ_GLYPH_BYTES) == 0)
                        end--;
                for (int x = 0; x < end; x++) {
                        const char *glyph = row[x].glyph;
                        if (screen->utf8)
                                afz_out_bytes(out, glyph, strnlen(glyph, AFZ_GLYPH_BYTES));
                        else
                                afz_out_char(out, glyph[0] ? afz_glyph_ascii(glyph) : '?');
                }
                afz_out_char(out, '\n');
        }
}
