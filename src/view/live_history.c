#include "count_of.h"
#include "live_parts.h"
#include "quantity.h"

/* What can be drawn, the most telling first. */
struct line {
        const char *label;
        enum afz_strip strip;
        enum afz_color color;
        enum afz_band band;
        enum { OF_RAM, OF_SWAP, OF_VRAM, OF_TIME } scale;
};

static const struct line lines[] = {
        {"job need", AFZ_STRIP_JOB_NEED, AFZ_COLOR_JOB, AFZ_BANDS, OF_RAM},
        {"RAM used", AFZ_STRIP_RAM_USED, AFZ_COLOR_OTHERS, AFZ_BAND_RAM, OF_RAM},
        {"mem wait", AFZ_STRIP_PSI_MEMORY, AFZ_COLOR_OTHERS, AFZ_BAND_PSI_MEMORY, OF_TIME},
        {"GPU busy", AFZ_STRIP_GPU_UTIL, AFZ_COLOR_JOB, AFZ_BANDS, OF_TIME},
        {"disk wait", AFZ_STRIP_PSI_IO, AFZ_COLOR_OTHERS, AFZ_BAND_PSI_IO, OF_TIME},
        {"CPU busy", AFZ_STRIP_CPU_BUSY, AFZ_COLOR_OTHERS, AFZ_BANDS, OF_TIME},
        {"VRAM", AFZ_STRIP_GPU_MEM, AFZ_COLOR_JOB, AFZ_BAND_VRAM, OF_VRAM},
        {"swap", AFZ_STRIP_SWAP_USED, AFZ_COLOR_OTHERS, AFZ_BANDS, OF_SWAP},
};

enum { LINES = AFZ_COUNT_OF(lines), VALUE_COLUMNS = 7 };

static double vram_total(const struct afz_frame *frame)
{
        size_t cursor = 0;
        const struct afz_sample *s;
        uint64_t sum = 0, v;
        while ((s = afz_window_next(frame->window, AFZ_KIND_GPU, &cursor)))
                if (!afz_sample_has(s, AFZ_GPU_PARENT) &&
                    afz_sample_get_u64(s, AFZ_GPU_MEM_TOTAL, &v))
                        sum += v;
        return (double)sum;
}

/* The value of full height; 0: not known, so there is nothing to draw. */
static double full_of(const struct afz_frame *frame, const struct line *line)
{
        uint64_t v = 0;
        switch (line->scale) {
        case OF_RAM:
                afz_sample_get_u64(frame->host, AFZ_HOST_MEM_TOTAL, &v);
                return (double)v;
        case OF_SWAP:
                afz_sample_get_u64(frame->host, AFZ_HOST_SWAP_TOTAL, &v);
                return (double)v;
        case OF_VRAM:
                return vram_total(frame);
        case OF_TIME:
                return 10000;
        }
        return 0;
}

static bool is_offered(const struct afz_frame *frame, const struct line *line)
{
        if (line->strip == AFZ_STRIP_JOB_NEED && !frame->window->job_pid)
                return false;
        return frame->window->strip[line->strip].filled > 0 && full_of(frame, line) > 0;
}

static int count_offered(const struct afz_frame *frame)
{
        int n = 0;
        for (int i = 0; i < LINES; i++)
                n += is_offered(frame, &lines[i]);
        return n;
}

/* The newest value, if it is of now. */
static bool newest(const struct afz_frame *frame, const struct afz_series *series, int64_t *ret)
{
        return frame->window->t_ns / series->step_ns <= series->newest + 1 &&
               afz_series_get(series, 0, ret);
}

static void draw_line(const struct afz_frame *frame, const struct line *line, struct afz_rect at)
{
        const struct afz_series *series = &frame->window->strip[line->strip];
        double full = full_of(frame, line);
        double unit = line->band == AFZ_BAND_RAM && frame->state->line_bytes
                              ? (double)frame->state->line_bytes
                              : full;
        struct afz_strip_look look = {
                .full = full, .color = line->color, .band = line->band, .band_unit = unit};
        char buf[AFZ_FIGURE_CAP];
        int64_t v;
        const char *text = AFZ_ABSENT;

        afz_live_label(frame, at.x, at.y + at.h - 1, line->label);
        afz_live_strip(frame,
                       (struct afz_rect){at.x + AFZ_LABEL_COLUMNS, at.y,
                                         at.w - AFZ_LABEL_COLUMNS - VALUE_COLUMNS, at.h},
                       series, &look);
        if (newest(frame, series, &v) && v >= 0)
                text = line->scale == OF_TIME ? afz_figure_percent(buf, (double)v / 10000)
                                              : afz_figure_size(buf, (uint64_t)v);
        afz_screen_put_right(frame->screen, at.x + at.w - 6, at.y + at.h - 1, 6,
                             AFZ_STYLE(AFZ_COLOR_DEFAULT), text);
}

/* Narrow strips are hard to read, and show little time. */
enum { TWO_COLUMNS_FROM = 70, FOUR_COLUMNS_FROM = 140, GUTTER = 2 };

static int columns_for(int width)
{
        return width >= FOUR_COLUMNS_FROM ? 4 : width >= TWO_COLUMNS_FROM ? 2 : 1;
}

static int history_rows(const struct afz_frame *frame, int width, enum afz_room room)
{
        static const int most[AFZ_ROOMS] = {0, 2, 6, 12}, each[AFZ_ROOMS] = {0, 1, 2, 5};
        int columns = columns_for(width);
        int rows = (count_offered(frame) + columns - 1) / columns * each[room];
        return rows < most[room] ? rows : most[room];
}

static void draw_history(const struct afz_frame *frame, struct afz_rect at)
{
        int columns = columns_for(at.w), offered = count_offered(frame);
        int lanes = (offered + columns - 1) / columns, y = at.y, shown = 0;
        if (lanes > at.h)
                lanes = at.h;
        int width = (at.w - (columns - 1) * GUTTER) / columns;
        for (int i = 0; i < LINES && shown < lanes * columns; i++) {
                if (!is_offered(frame, &lines[i]))
                        continue;
                int lane = shown / columns, column = shown % columns;
                int height = at.h / lanes + (lane < at.h % lanes);
                draw_line(frame, &lines[i],
                          (struct afz_rect){at.x + column * (width + GUTTER), y, width, height});
                if (++shown % columns == 0)
                        y += height;
        }
}

static void history_aside(const struct afz_frame *frame, int width, struct afz_out *out)
{
        char buf[AFZ_DURATION_TEXT_CAP];
        int columns = columns_for(width);
        int strip = (width - (columns - 1) * GUTTER) / columns - AFZ_LABEL_COLUMNS - VALUE_COLUMNS;
        if (strip <= 0)
                return;
        afz_out_str(out, "last ");
        afz_out_str(out, afz_format_duration(buf, sizeof buf,
                                             frame->window->strip[AFZ_STRIP_RAM_USED].step_ns *
                                                     (uint64_t)strip));
}

const struct afz_panel afz_panel_history = {
        .title = "history", .rows = history_rows, .draw = draw_history, .aside = history_aside};
