#include "live_parts.h"

/* Time in which a core worked, of the time that went by; both summed over the states. */
static bool busy_share(const struct afz_frame *frame, const struct afz_sample *cpu, double *ret)
{
        double user, system, irq = 0, idle, iowait = 0, steal = 0;
        if (!afz_live_share(frame, cpu, AFZ_CPU_USER, &user) ||
            !afz_live_share(frame, cpu, AFZ_CPU_SYSTEM, &system) ||
            !afz_live_share(frame, cpu, AFZ_CPU_IDLE, &idle))
                return false;
        afz_live_share(frame, cpu, AFZ_CPU_IRQ, &irq);
        afz_live_share(frame, cpu, AFZ_CPU_IOWAIT, &iowait);
        afz_live_share(frame, cpu, AFZ_CPU_STEAL, &steal);
        double busy = user + system + irq, sum = busy + idle + iowait + steal;
        if (sum <= 0)
                return false;
        *ret = busy / sum;
        return true;
}

static int count_cores(const struct afz_frame *frame)
{
        size_t cursor = 0;
        const struct afz_sample *s;
        int cores = 0;
        while ((s = afz_window_next(frame->window, AFZ_KIND_CPU, &cursor)))
                cores += s->subject.id != AFZ_CPU_ALL;
        return cores;
}

/* A cell a core, or two and a gap where there is room; where they do not fit, a cell stands for the
 * busiest of a few neighbours. */
static void draw_cores(const struct afz_frame *frame, int x, int y, int w)
{
        int cores = count_cores(frame), i = 0;
        size_t cursor = 0;
        const struct afz_sample *s;
        double most = -1;

        if (cores == 0 || w < 4)
                return;
        int group = (cores + w - 1) / w, pitch = 3 * cores <= w ? 3 : 1;
        while ((s = afz_window_next(frame->window, AFZ_KIND_CPU, &cursor))) {
                double busy;
                if (s->subject.id == AFZ_CPU_ALL)
                        continue;
                if (busy_share(frame, s, &busy) && busy > most)
                        most = busy;
                if (++i % group != 0 && i != cores)
                        continue;
                afz_screen_fill(frame->screen, x + (i - 1) / group * pitch, y, pitch > 1 ? 2 : 1,
                                AFZ_STYLE(most < 0 ? AFZ_COLOR_FAINT : AFZ_COLOR_OTHERS),
                                most < 0 ? "·" : afz_live_step(most));
                most = -1;
        }
}

static void cpu_tail(const struct afz_frame *frame, int x, int y, int end)
{
        char buf[AFZ_FIGURE_CAP];
        double share = 0;
        uint64_t load, cores;

        if (frame->window->job_pid) {
                bool known = afz_live_share(frame, frame->job, AFZ_JOB_CPU, &share);
                x = afz_live_pair(frame, x, y, end, "job cores",
                                  known ? afz_figure_tenths(buf, share) : AFZ_ABSENT,
                                  AFZ_COLOR_JOB);
        }
        if (afz_live_share(frame, frame->cpu, AFZ_CPU_IOWAIT, &share) &&
            afz_sample_get_u64(frame->cpu, AFZ_CPU_CORES, &cores) && cores)
                x = afz_live_pair(frame, x, y, end, "iowait",
                                  afz_figure_percent(buf, share / (double)cores),
                                  AFZ_COLOR_DEFAULT);
        if (afz_sample_get_u64(frame->cpu, AFZ_CPU_LOAD1, &load))
                afz_live_pair(frame, x, y, end, "load", afz_figure_tenths(buf, (double)load / 100),
                              AFZ_COLOR_DEFAULT);
}

static void draw_cpu_row(const struct afz_frame *frame, struct afz_rect at)
{
        struct afz_columns c = afz_live_columns(at);
        char buf[AFZ_FIGURE_CAP];
        double busy = 0;
        bool known = frame->cpu && busy_share(frame, frame->cpu, &busy);
        int tail_w = at.w >= 90 ? 33 : at.w >= 60 ? 22 : 0;
        int tail_x = at.x + at.w - tail_w;

        afz_live_label(frame, at.x, at.y, "CPU");
        afz_screen_put_right(frame->screen, c.bar_x, at.y, 5, AFZ_BOLD(AFZ_COLOR_DEFAULT),
                             known ? afz_figure_percent(buf, busy) : AFZ_ABSENT);
        draw_cores(frame, c.bar_x + 7, at.y, tail_x - 2 - (c.bar_x + 7));
        if (tail_w)
                cpu_tail(frame, tail_x, at.y, at.x + at.w);
}

static const struct {
        const char *word;
        enum afz_metric some;
        enum afz_band band;
} waits[] = {
        {"cpu", AFZ_PSI_CPU_SOME, AFZ_BAND_PSI_CPU},
        {"memory", AFZ_PSI_MEMORY_SOME, AFZ_BAND_PSI_MEMORY},
        {"disk", AFZ_PSI_IO_SOME, AFZ_BAND_PSI_IO},
};

static void draw_pressure_row(const struct afz_frame *frame, struct afz_rect at)
{
        int room = (at.w - AFZ_LABEL_COLUMNS) / 3;
        int bar = room - 15 < 24 ? room - 15 : 24;

        afz_live_label(frame, at.x, at.y, "pressure");
        for (int i = 0; i < 3; i++) {
                char buf[AFZ_FIGURE_CAP];
                double share = 0;
                int x = at.x + AFZ_LABEL_COLUMNS + i * room;
                bool known = afz_live_share(frame, frame->psi, waits[i].some, &share);
                enum afz_color color = afz_band_color(waits[i].band, share, AFZ_COLOR_DEFAULT);

                x += afz_screen_put(frame->screen, x, at.y, room, AFZ_STYLE(AFZ_COLOR_QUIET),
                                    waits[i].word) +
                     1;
                if (bar >= 3) {
                        x = at.x + AFZ_LABEL_COLUMNS + i * room + 7;
                        afz_live_gauge_bar(frame, x, at.y, bar, known ? share : 0,
                                           afz_band_color(waits[i].band, share, AFZ_COLOR_OTHERS));
                        x += bar;
                }
                afz_screen_put_right(frame->screen, x, at.y, bar >= 3 ? 6 : 5, AFZ_STYLE(color),
                                     known ? afz_figure_percent(buf, share) : AFZ_ABSENT);
        }
}

static int cpu_rows(const struct afz_frame *frame, int width, enum afz_room room)
{
        (void)width;
        (void)frame;
        return room == AFZ_ROOM_LEAST ? 1 : 2;
}

static void draw_cpu(const struct afz_frame *frame, struct afz_rect at)
{
        draw_cpu_row(frame, at);
        at.y++;
        if (at.h > 1)
                draw_pressure_row(frame, at);
}

static void cpu_aside(const struct afz_frame *frame, int width, struct afz_out *out)
{
        uint64_t cores;
        (void)width;
        if (afz_sample_get_u64(frame->cpu, AFZ_CPU_CORES, &cores)) {
                afz_out_u64(out, cores);
                afz_out_str(out, cores == 1 ? " core" : " cores");
        }
}

const struct afz_panel afz_panel_cpu = {
        .title = "processor", .rows = cpu_rows, .draw = draw_cpu, .aside = cpu_aside};
