#include "live_parts.h"

/* How full a cell is from below, in eighths. */
static const char *const low_block[9] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/* Without colours the parts are told apart by their glyphs. */
static const char *plain_glyph(enum afz_color color)
{
        switch (color) {
        case AFZ_COLOR_CACHE:
                return "░";
        case AFZ_COLOR_OTHERS:
                return "▓";
        case AFZ_COLOR_FAINT:
                return "·";
        default:
                return "█";
        }
}

static double clamp(double v, double most)
{
        return v > 0 ? v < most ? v : most : 0;
}

/* Which part covers a place of the bar; FAINT is the empty track. */
static enum afz_color color_at(const struct afz_bar *bar, double at)
{
        double end = 0;
        for (unsigned i = 0; i < bar->parts; i++) {
                end += clamp(bar->part[i].amount, bar->total);
                if (at < end)
                        return bar->part[i].color;
        }
        return AFZ_COLOR_FAINT;
}

static void draw_cell(struct afz_screen *screen, int x, int y, enum afz_color color)
{
        const char *glyph = plain_glyph(color);
        if (screen->depth != AFZ_DEPTH_NONE && screen->utf8 && color != AFZ_COLOR_FAINT)
                glyph = "■";
        afz_screen_glyph(screen, x, y, AFZ_STYLE(color), glyph);
}

void afz_live_bar(const struct afz_frame *frame, int x, int y, int w, const struct afz_bar *bar)
{
        struct afz_screen *s = frame->screen;
        if (w <= 0)
                return;
        if (!(bar->total > 0)) {
                afz_screen_fill(s, x, y, w, AFZ_STYLE(AFZ_COLOR_FAINT), "·");
                return;
        }
        double size = bar->total / w;
        for (int i = 0; i < w; i++)
                draw_cell(s, x + i, y, color_at(bar, size * (i + 0.5)));
        if (bar->mark < 0 || bar->mark > bar->total)
                return;
        int at = (int)(bar->mark / size);
        afz_screen_glyph(s, x + (at < w ? at : w - 1), y, AFZ_BOLD(bar->mark_color), "┃");
}

void afz_live_gauge_bar(const struct afz_frame *frame, int x, int y, int w, double share,
                        enum afz_color color)
{
        struct afz_part part = {share, color};
        struct afz_bar bar = {.part = &part, .parts = 1, .total = 1, .mark = -1};
        afz_live_bar(frame, x, y, w, &bar);
}

const char *afz_live_step(double share)
{
        int level = 1 + (int)(clamp(share, 1) * 6 + 0.5);
        return low_block[level];
}

/* The column `back` steps before now; a series that is no longer fed falls behind the clock. */
static bool value_at(const struct afz_window *w, const struct afz_series *series, uint64_t back,
                     double *ret)
{
        int64_t v;
        if (series->step_ns == 0 || series->filled == 0)
                return false;
        uint64_t now = w->t_ns / series->step_ns;
        uint64_t late = now > series->newest ? now - series->newest : 0;
        if (back < late || !afz_series_get(series, (size_t)(back - late), &v))
                return false;
        *ret = (double)v;
        return true;
}

void afz_live_strip(const struct afz_frame *frame, struct afz_rect at,
                    const struct afz_series *series, const struct afz_strip_look *look)
{
        for (int i = 0; i < at.w; i++) {
                double v;
                if (!value_at(frame->window, series, (uint64_t)i, &v))
                        continue;
                /* The topmost eighth stays free, so that strips do not grow into each other. */
                int height = (int)(clamp(v / look->full, 1) * (8 * at.h - 1) + 0.5);
                if (height == 0)
                        height = 1; /* known and nothing is not the same as a gap */
                enum afz_color color = afz_band_color(look->band, v / look->band_unit, look->color);
                for (int row = 0; row < at.h && height > 0; row++, height -= 8)
                        afz_screen_glyph(frame->screen, at.x + at.w - 1 - i, at.y + at.h - 1 - row,
                                         AFZ_STYLE(color), low_block[height < 8 ? height : 8]);
        }
}
