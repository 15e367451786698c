#include "count_of.h"
#include "live_parts.h"

/* RAM as its bar shows it. In a container the limit stands for the machine's size. */
struct ram {
        uint64_t total, used, job, cache;
        bool known, limited, job_known;
};

static uint64_t less(uint64_t a, uint64_t b)
{
        return a > b ? a - b : 0;
}

static struct ram look_at_ram(const struct afz_frame *frame)
{
        struct ram ram = {0};
        uint64_t available, free_bytes, limit, limit_used, need, swapped = 0;

        if (!afz_sample_get_u64(frame->host, AFZ_HOST_MEM_TOTAL, &ram.total) ||
            !afz_sample_get_u64(frame->host, AFZ_HOST_MEM_AVAILABLE, &available))
                return ram;
        ram.known = true;
        ram.used = less(ram.total, available);
        if (afz_sample_get_u64(frame->host, AFZ_HOST_MEM_FREE, &free_bytes))
                ram.cache = less(available, free_bytes);
        if (afz_sample_get_u64(frame->host, AFZ_HOST_LIMIT, &limit) && limit < ram.total &&
            afz_sample_get_u64(frame->host, AFZ_HOST_LIMIT_USED, &limit_used)) {
                ram.limited = true;
                ram.total = limit;
                ram.used = limit_used;
                ram.cache = 0;
        }
        ram.job_known = afz_sample_get_u64(frame->job, AFZ_JOB_NEED, &need);
        if (ram.job_known) {
                afz_sample_get_u64(frame->job, AFZ_JOB_SWAP, &swapped);
                ram.job = less(need, swapped);
                if (ram.job > ram.used)
                        ram.job = ram.used;
        }
        return ram;
}

static double line_of(const struct afz_frame *frame, const struct ram *ram)
{
        return frame->state->line_bytes ? (double)frame->state->line_bytes : (double)ram->total;
}

static void ram_tail(const struct afz_frame *frame, const struct afz_columns *c, int y,
                     const struct ram *ram)
{
        char buf[AFZ_FIGURE_CAP];
        int x = c->tail_x, end = c->tail_x + c->tail_w;
        if (frame->window->job_pid)
                x = afz_live_pair(frame, x, y, end, "job",
                                  ram->job_known ? afz_figure_size(buf, ram->job) : AFZ_ABSENT,
                                  AFZ_COLOR_JOB);
        if (!ram->known)
                return;
        if (ram->job_known)
                x = afz_live_pair(frame, x, y, end, "others",
                                  afz_figure_size(buf, ram->used - ram->job), AFZ_COLOR_OTHERS);
        else
                x = afz_live_pair(frame, x, y, end, "available",
                                  afz_figure_size(buf, less(ram->total, ram->used)),
                                  AFZ_COLOR_DEFAULT);
        if (!ram->limited)
                afz_live_pair(frame, x, y, end, "cache", afz_figure_size(buf, ram->cache),
                              AFZ_COLOR_QUIET);
}

static void draw_ram(const struct afz_frame *frame, struct afz_rect at)
{
        struct ram ram = look_at_ram(frame);
        struct afz_columns c = afz_live_columns(at);
        double share = ram.known ? (double)ram.used / line_of(frame, &ram) : 0;
        enum afz_color color = afz_band_color(AFZ_BAND_RAM, share, AFZ_COLOR_DEFAULT);
        struct afz_part parts[] = {
                {(double)(ram.used - ram.job), AFZ_COLOR_OTHERS},
                {(double)ram.job, AFZ_COLOR_JOB},
                {(double)ram.cache, AFZ_COLOR_CACHE},
        };
        struct afz_bar bar = {.part = parts,
                              .parts = 3,
                              .total = (double)ram.total,
                              .mark = frame->state->line_bytes ? line_of(frame, &ram) : -1,
                              .mark_color = color};

        afz_live_label(frame, at.x, at.y, "RAM");
        afz_live_bar(frame, c.bar_x, at.y, c.bar_w, &bar);
        afz_live_used_of(frame, &c, at.y, ram.known ? &ram.used : NULL,
                         ram.known ? &ram.total : NULL, color);
        ram_tail(frame, &c, at.y, &ram);
}

static void swap_tail(const struct afz_frame *frame, const struct afz_columns *c, int y)
{
        static const struct {
                const char *word;
                enum afz_metric metric;
        } ways[] = {
                {"in", AFZ_VM_SWAP_IN},
                {"out", AFZ_VM_SWAP_OUT},
        };
        const struct afz_sample *vm = afz_window_one(frame->window, AFZ_KIND_VM);
        char buf[AFZ_FIGURE_CAP];
        int x = c->tail_x;
        for (size_t i = 0; i < AFZ_COUNT_OF(ways); i++) {
                double rate = 0;
                bool known = afz_window_rate(frame->window, vm, ways[i].metric, &rate);
                x = afz_live_pair(frame, x, y, c->tail_x + c->tail_w, ways[i].word,
                                  known ? afz_figure_rate(buf, rate) : AFZ_ABSENT,
                                  afz_band_color(AFZ_BAND_SWAP_RATE, rate, AFZ_COLOR_DEFAULT));
        }
}

static void draw_swap(const struct afz_frame *frame, struct afz_rect at)
{
        struct afz_columns c = afz_live_columns(at);
        uint64_t total, free_bytes, job = 0, used = 0;
        bool known = afz_sample_get_u64(frame->host, AFZ_HOST_SWAP_TOTAL, &total) &&
                     afz_sample_get_u64(frame->host, AFZ_HOST_SWAP_FREE, &free_bytes);
        if (known)
                used = less(total, free_bytes);
        afz_sample_get_u64(frame->job, AFZ_JOB_SWAP, &job);
        if (job > used)
                job = used;
        struct afz_part parts[] = {
                {(double)(used - job), AFZ_COLOR_OTHERS},
                {(double)job, AFZ_COLOR_JOB},
        };
        struct afz_bar bar = {
                .part = parts, .parts = 2, .total = known ? (double)total : 0, .mark = -1};

        afz_live_label(frame, at.x, at.y, "swap");
        if (known && total == 0) {
                afz_screen_put(frame->screen, c.bar_x, at.y, at.w - AFZ_LABEL_COLUMNS,
                               AFZ_STYLE(AFZ_COLOR_QUIET), "none");
                return;
        }
        afz_live_bar(frame, c.bar_x, at.y, c.bar_w, &bar);
        afz_live_used_of(frame, &c, at.y, known ? &used : NULL, known ? &total : NULL,
                         AFZ_COLOR_DEFAULT);
        swap_tail(frame, &c, at.y);
}

static void draw_shm(const struct afz_frame *frame, struct afz_rect at)
{
        struct afz_columns c = afz_live_columns(at);
        uint64_t total = 0, used = 0;
        bool has_total = afz_sample_get_u64(frame->host, AFZ_HOST_SHM_TOTAL, &total);
        bool has_used = afz_sample_get_u64(frame->host, AFZ_HOST_SHM_USED, &used);
        double share = has_total && total ? (double)used / (double)total : 0;
        struct afz_part part = {(double)used, AFZ_COLOR_OTHERS};
        struct afz_bar bar = {.part = &part, .parts = 1, .total = (double)total, .mark = -1};

        afz_live_label(frame, at.x, at.y, "/dev/shm");
        afz_live_bar(frame, c.bar_x, at.y, c.bar_w, &bar);
        afz_live_used_of(frame, &c, at.y, has_used ? &used : NULL, has_total ? &total : NULL,
                         afz_band_color(AFZ_BAND_SHM, share, AFZ_COLOR_DEFAULT));
}

static int memory_rows(const struct afz_frame *frame, int width, enum afz_room room)
{
        (void)width;
        bool shm = frame->host && afz_sample_has(frame->host, AFZ_HOST_SHM_TOTAL);
        return room == AFZ_ROOM_LEAST ? 1 : shm ? 3 : 2;
}

static void draw_memory(const struct afz_frame *frame, struct afz_rect at)
{
        static void (*const draw[])(const struct afz_frame *,
                                    struct afz_rect) = {draw_ram, draw_swap, draw_shm};
        for (int i = 0; i < at.h && i < 3; i++)
                draw[i](frame, (struct afz_rect){at.x, at.y + i, at.w, 1});
}

static void memory_aside(const struct afz_frame *frame, int width, struct afz_out *out)
{
        char size[AFZ_FIGURE_CAP];
        struct ram ram = look_at_ram(frame);
        (void)width;
        if (frame->state->line_bytes) {
                afz_out_str(out, "line at ");
                afz_out_str(out, afz_figure_size(size, frame->state->line_bytes));
        }
        if (ram.limited)
                afz_out_str(out, out->len ? ", container limit" : "container limit");
}

const struct afz_panel afz_panel_memory = {
        .title = "memory", .rows = memory_rows, .draw = draw_memory, .aside = memory_aside};
