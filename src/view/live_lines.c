/* Which lines of the program hold its memory: a panel of the largest, and a page of all. */
#include <string.h>

#include "glyph.h"
#include "live_parts.h"

enum { SIZE = 7, SHARE = 7, GROWTH = 12, BAR_LEAST = 8, BAR_MOST = 24 };

/* So little growth, of what a line holds, is the noise of samples. */
#define STILL_SHARE 0.02

static const struct afz_lines_now *lines_of(const struct afz_frame *frame)
{
        const struct afz_lines_now *lines = frame->state->lines;
        return lines && lines->known && lines->rows > 0 ? lines : NULL;
}

/* "+210M/min"; "": it stands still, or that is not known yet. */
static const char *growth_text(const struct afz_lines_now *lines, const struct afz_line_now *line,
                               char *buf, size_t cap)
{
        char size[AFZ_FIGURE_CAP];
        struct afz_out out = afz_out_to(-1, buf, cap - 1);
        double moved = (double)line->growth_bytes;
        double size_now = (double)line->live_bytes;
        buf[0] = '\0';
        if (lines->growth_s == 0 || (moved < 0 ? -moved : moved) < STILL_SHARE * size_now)
                return buf;
        double minute = (moved < 0 ? -moved : moved) * 60 / lines->growth_s;
        afz_out_str(&out, moved < 0 ? "-" : "+");
        afz_out_str(&out, afz_figure_size(size, minute < 1e18 ? (uint64_t)minute : 0));
        afz_out_str(&out, "/min");
        buf[out.len] = '\0';
        return buf;
}

static void draw_line(const struct afz_frame *frame, const struct afz_lines_now *lines,
                      const struct afz_line_now *line, struct afz_rect at)
{
        char buf[AFZ_FIGURE_CAP], growth[AFZ_FIGURE_CAP];
        struct afz_screen *s = frame->screen;
        double share = lines->live_bytes ? (double)line->live_bytes / (double)lines->live_bytes : 0;
        int bar = at.w / 6 < BAR_LEAST ? 0 : at.w / 6 > BAR_MOST ? BAR_MOST : at.w / 6;
        int x = at.x, end = at.x + at.w;

        afz_screen_put_right(s, x, at.y, SIZE - 1, AFZ_BOLD(AFZ_COLOR_DEFAULT),
                             afz_figure_size(buf, line->live_bytes));
        x += SIZE;
        afz_screen_put_right(s, x, at.y, SHARE - 2, AFZ_STYLE(AFZ_COLOR_QUIET),
                             afz_figure_percent(buf, share > 1 ? 1 : share));
        x += SHARE;
        if (bar > 0) {
                afz_live_gauge_bar(frame, x, at.y, bar, share > 1 ? 1 : share, AFZ_COLOR_JOB);
                x += bar + 2;
        }
        growth_text(lines, line, growth, sizeof growth);
        if (growth[0] && end - x > 2 * GROWTH) {
                afz_screen_put_right(
                        s, end - GROWTH, at.y, GROWTH,
                        AFZ_STYLE(line->growth_bytes > 0 ? AFZ_COLOR_WARN : AFZ_COLOR_QUIET),
                        growth);
                end -= GROWTH + 1;
        }
        afz_screen_put(s, x, at.y, end - x, AFZ_STYLE(AFZ_COLOR_DEFAULT), line->name);
}

static int lines_rows(const struct afz_frame *frame, int width, enum afz_room room)
{
        static const int most[AFZ_ROOMS] = {1, 3, 5, 10};
        const struct afz_lines_now *lines = lines_of(frame);
        int n = lines ? (int)lines->rows : 0;
        (void)width;
        return n < most[room] ? n : most[room];
}

static void draw_lines(const struct afz_frame *frame, struct afz_rect at)
{
        const struct afz_lines_now *lines = lines_of(frame);
        for (int i = 0; lines && i < at.h && i < (int)lines->rows; i++)
                draw_line(frame, lines, &lines->row[i], (struct afz_rect){at.x, at.y + i, at.w, 1});
}

/* "3.8G in all · step 1240" */
static void lines_aside(const struct afz_frame *frame, int width, struct afz_out *out)
{
        const struct afz_lines_now *lines = lines_of(frame);
        char buf[AFZ_FIGURE_CAP];
        (void)width;
        if (!lines)
                return;
        afz_out_str(out, afz_figure_size(buf, lines->live_bytes));
        afz_out_str(out, " in all");
        if (lines->step) {
                afz_out_str(out, " · step ");
                afz_out_u64(out, lines->step);
        }
}

const struct afz_panel afz_panel_lines = {.title = "lines that hold the memory",
                                          .rows = lines_rows,
                                          .draw = draw_lines,
                                          .aside = lines_aside};

/* ---- the page ---- */

static const char *const unknown[] = {
        "Which lines of the program hold its memory is not known here.",
        "It is of runs that 'antifreeze run' started, from their first second on,",
        "unless they go without the probe.",
};

/* A long text in several rows, parted at blanks; returns the row below it. */
static int put_words(const struct afz_frame *frame, struct afz_rect at, int y, const char *text)
{
        char part[256];
        while (*text && y < at.y + at.h) {
                size_t n = strlen(text), room = (size_t)at.w;
                if (room >= sizeof part)
                        room = sizeof part - 1;
                if (n > room) {
                        for (n = room; n > 0 && text[n] != ' ';)
                                n--;
                        n = n ? n : room;
                }
                memcpy(part, text, n);
                part[n] = '\0';
                afz_screen_put(frame->screen, at.x, y++, at.w, AFZ_STYLE(AFZ_COLOR_QUIET), part);
                text += n + (text[n] == ' ');
        }
        return y;
}

void afz_live_draw_lines(const struct afz_frame *frame, struct afz_rect at)
{
        const struct afz_lines_now *lines = lines_of(frame);
        char aside[96];
        struct afz_out out = afz_out_to(-1, aside, sizeof aside - 1);
        int y = at.y, end = at.y + at.h;
        lines_aside(frame, at.w, &out);
        aside[out.len] = '\0';
        frame->state->scroll = 0;
        afz_live_rule(frame, at.x, y++, at.w, afz_panel_lines.title, aside);
        for (size_t i = 0; !lines && i < sizeof unknown / sizeof unknown[0] && y < end; i++)
                afz_screen_put(frame->screen, at.x, y++, at.w, AFZ_STYLE(AFZ_COLOR_QUIET),
                               unknown[i]);
        for (uint32_t i = 0; lines && i < lines->rows && y < end; i++)
                draw_line(frame, lines, &lines->row[i], (struct afz_rect){at.x, y++, at.w, 1});
        if (lines && lines->words[0] && y + 1 < end)
                put_words(frame, at, y + 1, lines->words);
}
