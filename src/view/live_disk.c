#include <stdio.h>
#include <string.h>

#include "count_of.h"
#include "live_parts.h"

enum { BAR = 14 };

static void label_and_bar(const struct afz_frame *frame, struct afz_rect at, const char *label,
                          bool known, double share, enum afz_band band)
{
        char buf[AFZ_FIGURE_CAP];
        int x = at.x + AFZ_LABEL_COLUMNS, bar = at.w >= 60 ? BAR : 6;
        afz_live_label(frame, at.x, at.y, label);
        afz_live_gauge_bar(frame, x, at.y, bar, known ? share : 0,
                           afz_band_color(band, share, AFZ_COLOR_OTHERS));
        afz_screen_put_right(frame->screen, x + bar, at.y, 6,
                             AFZ_STYLE(afz_band_color(band, share, AFZ_COLOR_DEFAULT)),
                             known ? afz_figure_percent(buf, share) : AFZ_ABSENT);
}

static int words_from(struct afz_rect at)
{
        return at.x + AFZ_LABEL_COLUMNS + (at.w >= 60 ? BAR : 6) + 8;
}

static int put_rate(const struct afz_frame *frame, const struct afz_sample *sample,
                    enum afz_metric metric, const char *word, int x, int y, int end)
{
        char buf[AFZ_FIGURE_CAP];
        double rate = 0;
        bool known = afz_window_rate(frame->window, sample, metric, &rate);
        if (x + 14 > end)
                return x;
        x += afz_screen_put(frame->screen, x, y, end - x, AFZ_STYLE(AFZ_COLOR_QUIET), word);
        afz_screen_put_right(frame->screen, x, y, 8,
                             AFZ_STYLE(known && rate >= 0.5 ? AFZ_COLOR_DEFAULT : AFZ_COLOR_QUIET),
                             known ? afz_figure_rate(buf, rate) : AFZ_ABSENT);
        return x + 10;
}

static void draw_device(const struct afz_frame *frame, const struct afz_sample *disk,
                        struct afz_rect at)
{
        char buf[AFZ_FIGURE_CAP];
        double busy = 0, queue = 0;
        bool known = afz_live_share(frame, disk, AFZ_DISK_BUSY, &busy);
        int x = words_from(at), end = at.x + at.w;

        label_and_bar(frame, at, disk->name, known, busy, AFZ_BAND_DISK_BUSY);
        x = put_rate(frame, disk, AFZ_DISK_READ, "read", x, at.y, end);
        x = put_rate(frame, disk, AFZ_DISK_WRITTEN, "written", x, at.y, end);
        if (afz_live_share(frame, disk, AFZ_DISK_QUEUE_TIME, &queue))
                x = afz_live_pair(frame, x, at.y, end, "queue", afz_figure_tenths(buf, queue),
                                  AFZ_COLOR_DEFAULT);
}

static void draw_network_mount(const struct afz_frame *frame, const struct afz_sample *fs, int x,
                               int y, int end)
{
        double wait, ops;
        char buf[AFZ_FIGURE_CAP];
        x = put_rate(frame, fs, AFZ_FS_NET_READ, "read", x, y, end);
        if (afz_window_rate(frame->window, fs, AFZ_FS_NET_WAIT, &wait) &&
            afz_window_rate(frame->window, fs, AFZ_FS_NET_OPS, &ops) && ops > 0)
                x = afz_live_pair(frame, x, y, end, "round trip ms",
                                  afz_figure_tenths(buf, wait / ops / 1e6), AFZ_COLOR_DEFAULT);
        afz_screen_put(frame->screen, x, y, end - x, AFZ_STYLE(AFZ_COLOR_QUIET), fs->name);
}

static void draw_filesystem(const struct afz_frame *frame, const struct afz_sample *fs,
                            struct afz_rect at)
{
        char buf[AFZ_FIGURE_CAP], type[24] = "files";
        uint64_t total = 0, available = 0;
        bool known = afz_sample_get_u64(fs, AFZ_FS_TOTAL, &total) && total &&
                     afz_sample_get_u64(fs, AFZ_FS_AVAILABLE, &available);
        double share = known && available < total ? 1 - (double)available / (double)total : 0;
        int x = words_from(at), end = at.x + at.w;

        /* The detail is "ext4 /dev/vda1": the type is label enough. */
        if (fs->detail)
                snprintf(type, sizeof type, "%.*s", (int)strcspn(fs->detail, " "), fs->detail);
        label_and_bar(frame, at, type, known, share, AFZ_BAND_DISK_FULL);
        if (afz_sample_or(fs, AFZ_FS_NETWORK, 0) == 1 && !known) {
                draw_network_mount(frame, fs, x, at.y, end);
                return;
        }
        x += afz_screen_put(frame->screen, x, at.y, end - x, AFZ_STYLE(AFZ_COLOR_QUIET), "free");
        afz_screen_put_right(frame->screen, x, at.y, 6, AFZ_STYLE(AFZ_COLOR_DEFAULT),
                             known ? afz_figure_size(buf, available) : AFZ_ABSENT);
        x += 10;
        afz_screen_put(frame->screen, x, at.y, end - x, AFZ_STYLE(AFZ_COLOR_QUIET), fs->name);
}

static void draw_interface(const struct afz_frame *frame, const struct afz_sample *net,
                           struct afz_rect at)
{
        int x = words_from(at), end = at.x + at.w;
        afz_live_label(frame, at.x, at.y, net->name);
        x = put_rate(frame, net, AFZ_NET_RECEIVED, "in  ", x, at.y, end);
        put_rate(frame, net, AFZ_NET_SENT, "out    ", x, at.y, end);
}

/* Which of each kind are worth a row: what the job uses, or without a job what moves. */
static bool disk_counts(const struct afz_frame *frame, const struct afz_sample *s)
{
        double busy;
        if (afz_sample_or(s, AFZ_DISK_JOB_USES, 0) == 1)
                return true;
        if (frame->window->job_pid && afz_sample_has(s, AFZ_DISK_JOB_USES))
                return false;
        return afz_live_share(frame, s, AFZ_DISK_BUSY, &busy) && busy > 0.01;
}

static bool fs_counts(const struct afz_frame *frame, const struct afz_sample *s)
{
        (void)frame;
        (void)s;
        return true;
}

static bool net_counts(const struct afz_frame *frame, const struct afz_sample *s)
{
        double in = 0, out = 0;
        afz_window_rate(frame->window, s, AFZ_NET_RECEIVED, &in);
        afz_window_rate(frame->window, s, AFZ_NET_SENT, &out);
        return in + out > 64 * 1024;
}

static const struct {
        enum afz_kind kind;
        bool (*counts)(const struct afz_frame *frame, const struct afz_sample *s);
        void (*draw)(const struct afz_frame *frame, const struct afz_sample *s, struct afz_rect at);
} sorts[] = {
        {AFZ_KIND_DISK, disk_counts, draw_device},
        {AFZ_KIND_FS, fs_counts, draw_filesystem},
        {AFZ_KIND_NET, net_counts, draw_interface},
};

static int disk_rows(const struct afz_frame *frame, int width, enum afz_room room)
{
        static const int most[AFZ_ROOMS] = {0, 2, 6, 8};
        int n = 0;
        (void)width;
        for (size_t i = 0; i < AFZ_COUNT_OF(sorts); i++) {
                size_t cursor = 0;
                const struct afz_sample *s;
                while ((s = afz_window_next(frame->window, sorts[i].kind, &cursor)))
                        n += sorts[i].counts(frame, s);
        }
        return n < most[room] ? n : most[room];
}

static void draw_disk(const struct afz_frame *frame, struct afz_rect at)
{
        int row = 0;
        for (size_t i = 0; i < AFZ_COUNT_OF(sorts); i++) {
                size_t cursor = 0;
                const struct afz_sample *s;
                while (row < at.h && (s = afz_window_next(frame->window, sorts[i].kind, &cursor)))
                        if (sorts[i].counts(frame, s))
                                sorts[i].draw(frame, s,
                                              (struct afz_rect){at.x, at.y + row++, at.w, 1});
        }
}

const struct afz_panel afz_panel_disk = {
        .title = "disks and files", .rows = disk_rows, .draw = draw_disk};
