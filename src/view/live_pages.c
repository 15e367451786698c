#include <string.h>

#include "count_of.h"
#include "glyph.h"
#include "live_parts.h"
#include "quantity.h"

static enum afz_color event_color(enum afz_event_kind kind)
{
        switch (kind) {
        case AFZ_EVENT_OOM_KILL:
        case AFZ_EVENT_GPU_LOST:
        case AFZ_EVENT_MACHINE_CHECK:
                return AFZ_COLOR_BAD;
        case AFZ_EVENT_LOST_LINES:
                return AFZ_COLOR_QUIET;
        default:
                return AFZ_COLOR_WARN;
        }
}

int afz_live_event_line(const struct afz_frame *frame, int x, int y, int w,
                        const struct afz_event *event)
{
        char age[AFZ_DURATION_TEXT_CAP];
        struct afz_screen *s = frame->screen;
        uint64_t now = frame->window->t_ns;
        int end = x + w;

        afz_format_duration(age, sizeof age, now > event->t_ns ? now - event->t_ns : 0);
        x += afz_screen_put(s, x, y, end - x, AFZ_STYLE(AFZ_COLOR_QUIET), age);
        x += afz_screen_put(s, x, y, end - x, AFZ_STYLE(AFZ_COLOR_QUIET), " ago") + 2;
        x += afz_screen_put(s, x, y, end - x, AFZ_STYLE(event_color(event->kind)),
                            afz_event_name(event->kind)) +
             2;
        x += afz_screen_put(s, x, y, end - x, AFZ_STYLE(AFZ_COLOR_DEFAULT), event->text);
        return x;
}

static size_t events_held(const struct afz_window *w)
{
        return w->events < AFZ_WINDOW_EVENTS ? w->events : AFZ_WINDOW_EVENTS;
}

static int events_rows(const struct afz_frame *frame, int width, enum afz_room room)
{
        static const int most[AFZ_ROOMS] = {1, 1, 4, 8};
        int n = (int)events_held(frame->window);
        (void)width;
        return n < most[room] ? n : most[room];
}

static void draw_events(const struct afz_frame *frame, struct afz_rect at)
{
        const struct afz_window *w = frame->window;
        for (size_t i = 0; i < events_held(w) && (int)i < at.h; i++)
                afz_live_event_line(frame, at.x, at.y + (int)i, at.w,
                                    &w->event[(w->events - 1 - i) % AFZ_WINDOW_EVENTS]);
}

const struct afz_panel afz_panel_events = {
        .title = "kernel log", .rows = events_rows, .draw = draw_events};

/* A page of lines that can be scrolled: lines are counted whether they are in sight or not. */
struct page {
        const struct afz_frame *frame;
        struct afz_rect at;
        int line;
};

/* The row of the page's next line, or -1 when it is out of sight. */
static int next_line(struct page *page)
{
        int y = page->line++ - page->frame->state->scroll;
        return y >= 0 && y < page->at.h ? page->at.y + y : -1;
}

static void heading(struct page *page, const char *title)
{
        int y = next_line(page);
        if (y >= 0)
                afz_live_rule(page->frame, page->at.x, y, page->at.w, title, NULL);
}

static void put_at(struct page *page, int y, int x, struct afz_style style, const char *text)
{
        if (y >= 0)
                afz_screen_put(page->frame->screen, page->at.x + x, y, page->at.w - x, style, text);
}

/* A word and what is to be said of it. A long word has a line of its own; a long text goes on, at
 * a blank, in the lines below. */
static void line(struct page *page, const char *word, enum afz_color color, const char *text)
{
        enum { INDENT = 2, TEXT = 16, LEAST = 20 };
        char part[256];
        int room = page->at.w - TEXT, y = next_line(page);

        put_at(page, y, INDENT, AFZ_STYLE(AFZ_COLOR_QUIET), word);
        if (afz_glyph_columns(word) >= TEXT - INDENT)
                y = next_line(page);
        while (room >= LEAST && afz_glyph_columns(text) > room) {
                int n = room < (int)sizeof part ? room : (int)sizeof part - 1;
                while (n > 0 && text[n] != ' ')
                        n--;
                if (n == 0)
                        break; /* no blank to part it at: it is cut */
                memcpy(part, text, (size_t)n);
                part[n] = 0;
                put_at(page, y, TEXT, AFZ_STYLE(color), part);
                text += n + 1;
                y = next_line(page);
        }
        put_at(page, y, TEXT, AFZ_STYLE(color), text);
}

static void list_unseen(struct page *page)
{
        const struct afz_window *w = page->frame->window;
        bool any = false;
        heading(page, "not seen here, and why");
        for (size_t i = 0; i < w->sources; i++) {
                const struct afz_source *s = &w->source[i];
                if (s->error == 0 && !s->why)
                        continue;
                any = true;
                line(page, s->name, AFZ_COLOR_DEFAULT,
                     s->why ? s->why : "could not be read this time");
        }
        uint64_t unreadable;
        if (afz_sample_get_u64(page->frame->job, AFZ_JOB_UNREADABLE, &unreadable) &&
            unreadable > 0) {
                char text[128];
                struct afz_out out = afz_out_to(-1, text, sizeof text - 1);
                afz_out_u64(&out, unreadable);
                afz_out_str(
                        &out,
                        " only in part: not the files, disk traffic and memory shares of others");
                text[out.len] = 0;
                line(page, "processes", AFZ_COLOR_DEFAULT, text);
                any = true;
        }
        if (!any)
                line(page, "", AFZ_COLOR_GOOD, "nothing is missing: every sense reads");
}

static void list_events(struct page *page)
{
        const struct afz_window *w = page->frame->window;
        heading(page, "kernel log");
        if (w->events == 0)
                line(page, "", AFZ_COLOR_QUIET, "nothing since the start");
        for (size_t i = 0; i < events_held(w); i++) {
                int y = next_line(page);
                if (y >= 0)
                        afz_live_event_line(page->frame, page->at.x + 2, y, page->at.w - 2,
                                            &w->event[(w->events - 1 - i) % AFZ_WINDOW_EVENTS]);
        }
}

static void list_heat(struct page *page)
{
        size_t cursor = 0;
        const struct afz_sample *s;
        bool first = true;
        while ((s = afz_window_next(page->frame->window, AFZ_KIND_THERMAL, &cursor))) {
                char buf[AFZ_FIGURE_CAP + 4];
                uint64_t temp, hot;
                if (!afz_sample_get_u64(s, AFZ_THERMAL_TEMP, &temp))
                        continue;
                if (first)
                        heading(page, "temperatures");
                first = false;
                double share = afz_sample_get_u64(s, AFZ_THERMAL_HOT, &hot) && hot
                                       ? (double)temp / (double)hot
                                       : 0;
                afz_figure_count(buf, (temp + 500) / 1000);
                struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
                while (buf[out.len])
                        out.len++;
                afz_out_str(&out, "°C");
                buf[out.len] = 0;
                line(page, s->name, afz_band_color(AFZ_BAND_HEAT, share, AFZ_COLOR_DEFAULT), buf);
        }
}

static void list_cgroups(struct page *page)
{
        size_t cursor = 0;
        const struct afz_sample *s;
        bool first = true;
        while ((s = afz_window_next(page->frame->window, AFZ_KIND_CGROUP, &cursor))) {
                char buf[160], size[AFZ_FIGURE_CAP];
                uint64_t v;
                struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
                if (first)
                        heading(page, "control groups");
                first = false;
                afz_out_str(&out, "need ");
                afz_out_str(&out, afz_sample_get_u64(s, AFZ_CGROUP_NEED, &v)
                                          ? afz_figure_size(size, v)
                                          : AFZ_ABSENT);
                afz_out_str(&out, ", limit ");
                afz_out_str(&out, afz_sample_get_u64(s, AFZ_CGROUP_MAX, &v)
                                          ? afz_figure_size(size, v)
                                          : "none");
                if (afz_sample_get_u64(s, AFZ_CGROUP_OOM_KILLS, &v)) {
                        afz_out_str(&out, ", processes killed ");
                        afz_out_u64(&out, v);
                }
                buf[out.len] = 0;
                line(page, s->name, AFZ_COLOR_DEFAULT, buf);
        }
}

void afz_live_draw_info(const struct afz_frame *frame, struct afz_rect at)
{
        struct page page = {.frame = frame, .at = at};
        list_unseen(&page);
        list_events(&page);
        list_heat(&page);
        list_cgroups(&page);
        if (frame->state->scroll > page.line - at.h)
                frame->state->scroll = page.line > at.h ? page.line - at.h : 0;
}

static const struct {
        const char *key, *what;
} help[] = {
        {"q", "quit"},
        {"p", "pause, and go on"},
        {"s", "sort: as a tree, by need, by cpu"},
        {"t", "the tree, or a flat list"},
        {"g", "all that is known of the GPUs"},
        {"i", "what is not seen, and why"},
        {"l", "which lines of the program hold memory"},
        {"+ -", "longer, shorter time between looks"},
        {"arrows", "scroll (also j k, page up and down)"},
        {"h ?", "this help"},
        {"", ""},
        {"cpu", "100 % is one core; next to CPU: all"},
        {"need", "memory that cannot be dropped:"},
        {"", "anon + shared + swapped out"},
        {"pressure", "time in which some task had to wait"},
        {"–", "not known here (which is not 0)"},
};

static void draw_legend(const struct afz_frame *frame, int x, int y, int end)
{
        static const struct {
                const char *word;
                enum afz_color color;
                const char *plain;
        } parts[] = {
                {"job", AFZ_COLOR_JOB, "█"},
                {"others", AFZ_COLOR_OTHERS, "▓"},
                {"cache", AFZ_COLOR_CACHE, "░"},
                {"line", AFZ_COLOR_DEFAULT, "┃"},
        };
        bool colors = frame->screen->depth != AFZ_DEPTH_NONE;
        for (size_t i = 0; i < AFZ_COUNT_OF(parts) && x + 10 < end; i++) {
                bool line_mark = i + 1 == AFZ_COUNT_OF(parts);
                afz_screen_fill(frame->screen, x, y, 2 - line_mark, AFZ_STYLE(parts[i].color),
                                colors && !line_mark ? "█" : parts[i].plain);
                x += 3 - line_mark;
                x += afz_screen_put(frame->screen, x, y, end - x, AFZ_STYLE(AFZ_COLOR_QUIET),
                                    parts[i].word) +
                     2;
        }
}

void afz_live_draw_help(const struct afz_frame *frame, struct afz_rect at)
{
        enum { LINES = AFZ_COUNT_OF(help), WIDTH = 54, KEY = 11 };
        struct afz_style faint = AFZ_STYLE(AFZ_COLOR_FAINT);
        struct afz_screen *s = frame->screen;
        int w = at.w < WIDTH ? at.w : WIDTH, h = at.h < LINES + 4 ? at.h : LINES + 4;
        int x = at.x + (at.w - w) / 2, y = at.y + (at.h - h) / 2;

        for (int i = 0; i < h; i++)
                afz_screen_fill(s, x, y + i, w, (struct afz_style){0}, " ");
        for (int i = 1; i + 1 < h; i++) {
                afz_screen_glyph(s, x, y + i, faint, "│");
                afz_screen_glyph(s, x + w - 1, y + i, faint, "│");
        }
        afz_live_rule(frame, x, y, w, "help", NULL);
        afz_live_rule(frame, x, y + h - 1, w, NULL, NULL);
        afz_screen_glyph(s, x, y, faint, "╭");
        afz_screen_glyph(s, x + w - 1, y, faint, "╮");
        afz_screen_glyph(s, x, y + h - 1, faint, "╰");
        afz_screen_glyph(s, x + w - 1, y + h - 1, faint, "╯");
        for (int i = 0; i < LINES && i + 2 < h; i++) {
                afz_screen_put(s, x + 3, y + 1 + i, KEY, AFZ_BOLD(AFZ_COLOR_DEFAULT), help[i].key);
                afz_screen_put(s, x + 3 + KEY, y + 1 + i, w - KEY - 5, (struct afz_style){0},
                               help[i].what);
        }
        if (h == LINES + 4)
                draw_legend(frame, x + 3, y + LINES + 2, x + w - 2);
}
