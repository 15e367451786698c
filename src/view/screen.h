#ifndef AFZ_SCREEN_H
#define AFZ_SCREEN_H
/* A grid of character cells, and the shortest way to make a terminal show it.
 *
 * A frame is drawn from scratch into the grid: clear, put, put, put; all of it clips at the edges,
 * so a panel may draw without asking for the size. afz_screen_encode() then writes what differs
 * from the frame before as ECMA-48 sequences; a frame that changed nothing writes nothing. It knows
 * no terminal: bytes go to an afz_out, and a test can play them back.
 *
 * Colours are named by what they mean; the palette (none, 16, 256 or all colours) is chosen when
 * the screen is made. Where there is no UTF-8, glyphs are written as their nearest ASCII.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "glyph.h"
#include "out.h"

enum afz_depth { AFZ_DEPTH_NONE, AFZ_DEPTH_16, AFZ_DEPTH_256, AFZ_DEPTH_RGB };

enum afz_color {
        AFZ_COLOR_DEFAULT,
        AFZ_COLOR_QUIET,  /* labels, units, what need not be read */
        AFZ_COLOR_FAINT,  /* rules, tracks, frames */
        AFZ_COLOR_JOB,    /* the job's own */
        AFZ_COLOR_OTHERS, /* what others hold */
        AFZ_COLOR_CACHE,  /* what can be had back */
        AFZ_COLOR_GOOD,
        AFZ_COLOR_WARN,
        AFZ_COLOR_BAD,
        AFZ_COLORS
};

enum { AFZ_ATTR_BOLD = 1, AFZ_ATTR_REVERSE = 2 };

struct afz_style {
        uint8_t fg, bg, attr;
};

#define AFZ_STYLE(color) ((struct afz_style){.fg = (uint8_t)(color)})
#define AFZ_BOLD(color)  ((struct afz_style){.fg = (uint8_t)(color), .attr = AFZ_ATTR_BOLD})

/* A glyph of two columns stands in its first cell; the second cell has no glyph (all NUL). */
struct afz_cell {
        char glyph[AFZ_GLYPH_BYTES];
        struct afz_style style;
        uint8_t unused;
};

enum { AFZ_SCREEN_MAX_WIDTH = 1000, AFZ_SCREEN_MAX_HEIGHT = 500 };

struct afz_screen {
        int width, height;
        enum afz_depth depth;
        bool utf8;
        bool wide;  /* the frame being drawn has glyphs of two columns */
        bool stale; /* what the terminal shows is not known: the next frame repaints all */
        struct afz_cell *next, *shown;
        size_t cells; /* room in both */
};

/* A screen of no cells; afz_screen_resize() gives it some. */
void afz_screen_init(struct afz_screen *screen, enum afz_depth depth, bool utf8);
void afz_screen_done(struct afz_screen *screen);

/* Allocates only to grow. Sizes beyond the maximum are cut to it. -ENOMEM leaves it as it was. */
int afz_screen_resize(struct afz_screen *screen, int width, int height);

/* Blanks the grid for a new frame. */
void afz_screen_clear(struct afz_screen *screen);

/* Draws text (any bytes) from x on, at most max_columns of it, and returns the columns used. Text
 * that does not fit ends in "…". */
int afz_screen_put(struct afz_screen *screen, int x, int y, int max_columns, struct afz_style style,
                   const char *text);

/* The same, ending before column x + columns. */
int afz_screen_put_right(struct afz_screen *screen, int x, int y, int columns,
                         struct afz_style style, const char *text);

/* Draws one glyph of ours, of one column. */
void afz_screen_glyph(struct afz_screen *screen, int x, int y, struct afz_style style,
                      const char *glyph);

/* The same glyph n times. */
void afz_screen_fill(struct afz_screen *screen, int x, int y, int n, struct afz_style style,
                     const char *glyph);

/* Writes what the terminal needs to show the new frame. The pen is left as it was found: default.
 */
void afz_screen_encode(struct afz_screen *screen, struct afz_out *out);

/* The frame as lines of text without colours, trailing blanks cut. */
void afz_screen_text(const struct afz_screen *screen, struct afz_out *out);

#endif
