#include <string.h>

#include "count_of.h"
#include "live_parts.h"

static bool is_instance(const struct afz_sample *gpu)
{
        return afz_sample_has(gpu, AFZ_GPU_PARENT);
}

static const struct afz_sample *next_gpu(const struct afz_frame *frame, size_t *cursor)
{
        return afz_window_next(frame->window, AFZ_KIND_GPU, cursor);
}

static int count_all(const struct afz_frame *frame)
{
        size_t cursor = 0;
        int n = 0;
        while (next_gpu(frame, &cursor))
                n++;
        return n;
}

/* Walks the processes that hold memory on one GPU. */
static const struct afz_sample *next_holder(const struct afz_frame *frame,
                                            const struct afz_sample *gpu, size_t *cursor)
{
        const struct afz_sample *s;
        int64_t number;
        while ((s = afz_window_next(frame->window, AFZ_KIND_GPU_PROC, cursor)))
                if (afz_sample_get(s, AFZ_GPU_PROC_GPU, &number) &&
                    (uint64_t)number == gpu->subject.id)
                        return s;
        return NULL;
}

static uint64_t held_by_job(const struct afz_frame *frame, const struct afz_sample *gpu)
{
        size_t cursor = 0;
        const struct afz_sample *s;
        uint64_t sum = 0, v;
        while ((s = next_holder(frame, gpu, &cursor)))
                if (afz_sample_or(s, AFZ_GPU_PROC_IN_JOB, 0) == 1 &&
                    afz_sample_get_u64(s, AFZ_GPU_PROC_MEM, &v))
                        sum += v;
        return sum;
}

static const char *gpu_label(const struct afz_sample *gpu, char *buf, size_t cap)
{
        struct afz_out out = afz_out_to(-1, buf, cap - 1);
        afz_out_str(&out, is_instance(gpu) ? " MIG " : "GPU ");
        if (!is_instance(gpu))
                afz_out_u64(&out, gpu->subject.id);
        buf[out.len] = 0;
        return buf;
}

static void draw_vram_bar(const struct afz_frame *frame, const struct afz_sample *gpu, int x, int y,
                          int w)
{
        uint64_t total = 0, used = 0, job = held_by_job(frame, gpu);
        afz_sample_get_u64(gpu, AFZ_GPU_MEM_TOTAL, &total);
        afz_sample_get_u64(gpu, AFZ_GPU_MEM_USED, &used);
        if (job > used)
                job = used;
        struct afz_part parts[] = {
                {(double)(used - job), AFZ_COLOR_OTHERS},
                {(double)job, AFZ_COLOR_JOB},
        };
        struct afz_bar bar = {.part = parts, .parts = 2, .total = (double)total, .mark = -1};
        afz_live_bar(frame, x, y, w, &bar);
}

static void put_util(const struct afz_frame *frame, const struct afz_sample *gpu, int x, int y)
{
        char buf[AFZ_FIGURE_CAP];
        uint64_t v = 0;
        bool known = afz_sample_get_u64(gpu, AFZ_GPU_UTIL, &v);
        afz_screen_put_right(frame->screen, x, y, 5, AFZ_STYLE(AFZ_COLOR_DEFAULT),
                             known ? afz_figure_percent(buf, (double)v / 10000) : AFZ_ABSENT);
}

static void put_unit(const struct afz_frame *frame, int x, int y, int w, bool known, uint64_t value,
                     const char *unit, enum afz_color color)
{
        char buf[AFZ_FIGURE_CAP];
        if (known)
                strcat(afz_figure_count(buf, value), unit);
        afz_screen_put_right(frame->screen, x, y, w, AFZ_STYLE(known ? color : AFZ_COLOR_QUIET),
                             known ? buf : AFZ_ABSENT);
}

static void put_heat(const struct afz_frame *frame, const struct afz_sample *gpu, int x, int y)
{
        uint64_t temp = 0, limit = 0;
        bool known = afz_sample_get_u64(gpu, AFZ_GPU_TEMP, &temp);
        double share = afz_sample_get_u64(gpu, AFZ_GPU_TEMP_SLOWDOWN, &limit) && limit
                               ? (double)temp / (double)limit
                               : 0;
        put_unit(frame, x, y, 6, known, (temp + 500) / 1000, "°C",
                 afz_band_color(AFZ_BAND_HEAT, share, AFZ_COLOR_DEFAULT));
}

/* "610 / 700 W" where there is room for the limit. */
static void put_power(const struct afz_frame *frame, const struct afz_sample *gpu, int x, int y,
                      bool with_limit)
{
        uint64_t power = 0, limit;
        bool known = afz_sample_get_u64(gpu, AFZ_GPU_POWER, &power);
        put_unit(frame, x, y, 6, known, (power + 500) / 1000, " W", AFZ_COLOR_DEFAULT);
        if (with_limit && afz_sample_get_u64(gpu, AFZ_GPU_POWER_LIMIT, &limit)) {
                afz_screen_put(frame->screen, x + 7, y, 2, AFZ_STYLE(AFZ_COLOR_QUIET), "of");
                put_unit(frame, x + 9, y, 6, true, (limit + 500) / 1000, " W", AFZ_COLOR_QUIET);
        }
}

static void gpu_tail(const struct afz_frame *frame, const struct afz_columns *c, int y,
                     const struct afz_sample *gpu)
{
        if (c->tail_w < 20)
                return;
        put_util(frame, gpu, c->tail_x, y);
        put_heat(frame, gpu, c->tail_x + 6, y);
        put_power(frame, gpu, c->tail_x + 13, y, c->tail_w >= 30);
}

static void draw_one(const struct afz_frame *frame, const struct afz_sample *gpu,
                     struct afz_rect at)
{
        struct afz_columns c = afz_live_columns(at);
        char label[24];
        uint64_t total = 0, used = 0;
        bool has_total = afz_sample_get_u64(gpu, AFZ_GPU_MEM_TOTAL, &total);
        bool has_used = afz_sample_get_u64(gpu, AFZ_GPU_MEM_USED, &used);
        double share = has_total && total ? (double)used / (double)total : 0;

        afz_live_label(frame, at.x, at.y, gpu_label(gpu, label, sizeof label));
        draw_vram_bar(frame, gpu, c.bar_x, at.y, c.bar_w);
        afz_live_used_of(frame, &c, at.y, has_used ? &used : NULL, has_total ? &total : NULL,
                         afz_band_color(AFZ_BAND_VRAM, share, AFZ_COLOR_DEFAULT));
        gpu_tail(frame, &c, at.y, gpu);
}

/* "python3 4242 9.8G  Xorg 1200 0.3G": who holds its memory. */
static void draw_holders(const struct afz_frame *frame, const struct afz_sample *gpu, int x, int y,
                         int end)
{
        size_t cursor = 0;
        const struct afz_sample *s;
        char buf[AFZ_FIGURE_CAP];
        int from = x;
        while ((s = next_holder(frame, gpu, &cursor)) && end - x > 16) {
                bool ours = afz_sample_or(s, AFZ_GPU_PROC_IN_JOB, 0) == 1;
                uint64_t v;
                x += afz_screen_put(frame->screen, x, y, end - x, AFZ_STYLE(AFZ_COLOR_QUIET),
                                    s->name) +
                     1;
                if (afz_sample_get_u64(s, AFZ_GPU_PROC_PID, &v))
                        x += afz_screen_put(frame->screen, x, y, end - x,
                                            AFZ_STYLE(AFZ_COLOR_QUIET), afz_figure_count(buf, v)) +
                             1;
                bool known = afz_sample_get_u64(s, AFZ_GPU_PROC_MEM, &v);
                x += afz_screen_put(frame->screen, x, y, end - x,
                                    AFZ_STYLE(ours ? AFZ_COLOR_JOB : AFZ_COLOR_OTHERS),
                                    known ? afz_figure_size(buf, v) : AFZ_ABSENT) +
                     3;
        }
        if (x == from && afz_sample_or(gpu, AFZ_GPU_PROCESSES, -1) == 0)
                afz_screen_put(frame->screen, x, y, end - x, AFZ_STYLE(AFZ_COLOR_FAINT),
                               "no process holds memory");
}

/* Several beside each other, when there are more GPUs than rows. */
static void draw_packed(const struct afz_frame *frame, struct afz_rect at, int count)
{
        int across = (count + at.h - 1) / at.h;
        int width = (at.w + 2) / across - 2;
        size_t cursor = 0;
        const struct afz_sample *gpu;
        for (int i = 0; (gpu = next_gpu(frame, &cursor)); i++) {
                int x = at.x + i / at.h * (width + 2), y = at.y + i % at.h;
                char label[24];
                int label_w = width < 20 ? 6 : 7;
                if (width < 12)
                        return;
                afz_screen_put(frame->screen, x, y, label_w - 1, AFZ_STYLE(AFZ_COLOR_QUIET),
                               gpu_label(gpu, label, sizeof label));
                draw_vram_bar(frame, gpu, x + label_w, y, width - label_w - 6);
                put_util(frame, gpu, x + width - 5, y);
        }
}

static int gpu_rows(const struct afz_frame *frame, int width, enum afz_room room)
{
        int n = count_all(frame);
        int packed = width >= 110 ? (n + 3) / 4 : (n + 1) / 2;
        switch (room) {
        case AFZ_ROOM_LEAST:
                return n <= 2 ? n : packed > 4 ? 4 : packed;
        case AFZ_ROOM_GOOD:
                return n <= 4 ? n : packed;
        default:
                return n <= 4 ? 2 * n : n;
        }
}

static void draw_gpu(const struct afz_frame *frame, struct afz_rect at)
{
        int count = count_all(frame);
        size_t cursor = 0;
        const struct afz_sample *gpu;
        if (count > at.h) {
                draw_packed(frame, at, count);
                return;
        }
        int each = at.h >= 2 * count ? 2 : 1;
        for (int i = 0; (gpu = next_gpu(frame, &cursor)); i++) {
                draw_one(frame, gpu, (struct afz_rect){at.x, at.y + i * each, at.w, 1});
                if (each > 1)
                        draw_holders(frame, gpu, at.x + AFZ_LABEL_COLUMNS, at.y + i * each + 1,
                                     at.x + at.w);
        }
}

static void gpu_aside(const struct afz_frame *frame, int width, struct afz_out *out)
{
        const struct afz_sample *first = afz_window_one(frame->window, AFZ_KIND_GPU);
        (void)width;
        if (!first)
                return;
        if (frame->gpus > 1) {
                afz_out_u64(out, frame->gpus);
                afz_out_str(out, " x ");
        }
        afz_out_str(out, first->name);
}

const struct afz_panel afz_panel_gpu = {
        .title = "GPU", .rows = gpu_rows, .draw = draw_gpu, .aside = gpu_aside};

/* A line of the page: what else is known of a GPU. */
static void draw_more(const struct afz_frame *frame, const struct afz_sample *gpu, int x, int y,
                      int end)
{
        static const struct {
                const char *word;
                enum afz_metric metric;
                double unit;
                const char *suffix;
        } facts[] = {
                {"clock", AFZ_GPU_CLOCK, 1e6, " MHz"},
                {"memory clock", AFZ_GPU_MEM_CLOCK, 1e6, " MHz"},
                {"power limit", AFZ_GPU_POWER_LIMIT, 1000, " W"},
                {"fan", AFZ_GPU_FAN, 100, " %"},
                {"memory busy", AFZ_GPU_MEM_UTIL, 100, " %"},
                {"PCIe gen", AFZ_GPU_PCIE_GEN, 1, ""},
                {"lanes", AFZ_GPU_PCIE_WIDTH, 1, ""},
                {"ECC mended", AFZ_GPU_ECC_CORRECTED, 1, ""},
                {"not mended", AFZ_GPU_ECC_UNCORRECTED, 1, ""},
                {"last Xid", AFZ_GPU_XID, 1, ""},
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(facts); i++) {
                char buf[AFZ_FIGURE_CAP];
                uint64_t v;
                if (!afz_sample_get_u64(gpu, facts[i].metric, &v))
                        continue;
                afz_figure_count(buf, (uint64_t)((double)v / facts[i].unit + 0.5));
                x = afz_live_pair(frame, x, y, end, facts[i].word, strcat(buf, facts[i].suffix),
                                  AFZ_COLOR_DEFAULT);
        }
}

void afz_live_draw_gpus(const struct afz_frame *frame, struct afz_rect at)
{
        enum { ROWS_EACH = 4 };
        size_t cursor = 0;
        const struct afz_sample *gpu;
        int count = count_all(frame), *scroll = &frame->state->scroll;
        int fit = at.h / ROWS_EACH > 0 ? at.h / ROWS_EACH : 1;

        if (*scroll > count - fit)
                *scroll = count > fit ? count - fit : 0;
        if (count == 0)
                afz_screen_put(frame->screen, at.x + 2, at.y + 1, at.w - 2,
                               AFZ_STYLE(AFZ_COLOR_QUIET),
                               "no GPU to be seen; i says what is not seen and why");
        for (int i = 0; (gpu = next_gpu(frame, &cursor)); i++) {
                int y = at.y + (i - *scroll) * ROWS_EACH, end = at.x + at.w;
                if (i < *scroll || y + ROWS_EACH - 1 > at.y + at.h)
                        continue;
                afz_live_rule(frame, at.x, y, at.w, gpu->name, gpu->detail);
                draw_one(frame, gpu, (struct afz_rect){at.x, y + 1, at.w, 1});
                draw_more(frame, gpu, at.x + AFZ_LABEL_COLUMNS, y + 2, end);
                draw_holders(frame, gpu, at.x + AFZ_LABEL_COLUMNS, y + 3, end);
        }
}
