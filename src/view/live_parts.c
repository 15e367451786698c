#include "live_parts.h"

#include <string.h>

/* Colours are for what needs a look, so each band begins late. */
static const struct {
        double warn, bad;
} bands[AFZ_BANDS] = {
        /* of the line, or of all RAM: from 90 % on one wants to know; at 97 % reclaim has begun */
        [AFZ_BAND_RAM] = {0.90, 0.97},
        /* bytes a second, in and out: a trickle is fine; 32 MiB/s is a disk that does little else
         */
        [AFZ_BAND_SWAP_RATE] = {1 << 20, 32 << 20},
        /* share of /dev/shm: a DataLoader dies of the last batch that does not fit */
        [AFZ_BAND_SHM] = {0.80, 0.95},
        /* share of VRAM: frameworks fill it on purpose */
        [AFZ_BAND_VRAM] = {0.97, 0.995},
        /* shares of time; waiting for a core is usual in training, waiting for memory never is */
        [AFZ_BAND_PSI_CPU] = {0.60, 2.0},
        [AFZ_BAND_PSI_MEMORY] = {0.05, 0.20},
        [AFZ_BAND_PSI_IO] = {0.30, 0.80},
        [AFZ_BAND_DISK_BUSY] = {0.90, 2.0},
        /* share of a file system in use */
        [AFZ_BAND_DISK_FULL] = {0.92, 0.98},
        /* of the temperature at which it slows down */
        [AFZ_BAND_HEAT] = {0.93, 1.0},
};

enum afz_color afz_band_color(enum afz_band band, double value, enum afz_color fine)
{
        if (band >= AFZ_BANDS || value < bands[band].warn)
                return fine;
        return value < bands[band].bad ? AFZ_COLOR_WARN : AFZ_COLOR_BAD;
}

bool afz_live_share(const struct afz_frame *frame, const struct afz_sample *sample,
                    enum afz_metric metric, double *ret)
{
        double rate;
        if (!sample || !afz_window_rate(frame->window, sample, metric, &rate))
                return false;
        *ret = rate / 1e9;
        return true;
}

struct afz_columns afz_live_columns(struct afz_rect at)
{
        struct afz_columns c = {.bar_x = at.x + AFZ_LABEL_COLUMNS, .value_w = 14};
        c.tail_w = at.w >= 90 ? 33 : at.w >= 72 ? 22 : 0;
        c.bar_w = at.w - AFZ_LABEL_COLUMNS - c.value_w - (c.tail_w ? c.tail_w + 2 : 0);
        if (c.bar_w < 0)
                c.bar_w = 0;
        c.value_x = c.bar_x + c.bar_w;
        c.tail_x = c.value_x + c.value_w + 2;
        return c;
}

void afz_live_label(const struct afz_frame *frame, int x, int y, const char *label)
{
        afz_screen_put(frame->screen, x, y, AFZ_LABEL_COLUMNS - 1, AFZ_STYLE(AFZ_COLOR_QUIET),
                       label);
}

void afz_live_used_of(const struct afz_frame *frame, const struct afz_columns *c, int y,
                      const uint64_t *used, const uint64_t *total, enum afz_color color)
{
        char buf[AFZ_FIGURE_CAP];
        struct afz_screen *s = frame->screen;
        int x = c->value_x;
        afz_screen_put_right(s, x, y, 6, AFZ_BOLD(color),
                             used ? afz_figure_size(buf, *used) : AFZ_ABSENT);
        afz_screen_put(s, x + 7, y, 1, AFZ_STYLE(AFZ_COLOR_QUIET), "/");
        afz_screen_put_right(s, x + 9, y, 5, AFZ_STYLE(AFZ_COLOR_QUIET),
                             total ? afz_figure_size(buf, *total) : AFZ_ABSENT);
}

int afz_live_pair(const struct afz_frame *frame, int x, int y, int end, const char *word,
                  const char *figure, enum afz_color color)
{
        int need = afz_glyph_columns(word) + 1 + afz_glyph_columns(figure);
        if (x + need > end)
                return x;
        x += afz_screen_put(frame->screen, x, y, end - x, AFZ_STYLE(AFZ_COLOR_QUIET), word) + 1;
        x += afz_screen_put(frame->screen, x, y, end - x, AFZ_STYLE(color), figure);
        return x + 2;
}

void afz_live_rule(const struct afz_frame *frame, int x, int y, int w, const char *title,
                   const char *aside)
{
        struct afz_style faint = AFZ_STYLE(AFZ_COLOR_FAINT), quiet = AFZ_STYLE(AFZ_COLOR_QUIET);
        afz_screen_fill(frame->screen, x, y, w, faint, "─");
        if (title && *title && w > 4) {
                afz_screen_glyph(frame->screen, x + 1, y, quiet, " ");
                int end = x + 2 + afz_screen_put(frame->screen, x + 2, y, w - 4, quiet, title);
                afz_screen_glyph(frame->screen, end, y, quiet, " ");
        }
        if (!aside || !*aside)
                return;
        int n = afz_glyph_columns(aside);
        if (n + 6 + afz_glyph_columns(title) > w)
                return;
        int from = x + w - n - 3;
        afz_screen_glyph(frame->screen, from, y, quiet, " ");
        afz_screen_put(frame->screen, from + 1, y, n, quiet, aside);
        afz_screen_glyph(frame->screen, from + 1 + n, y, quiet, " ");
}

/* "/usr/bin/python3 train.py" says no more than "python3 train.py", and takes a third of a line. */
static const char *skip_folders(const char *command)
{
        size_t first = strcspn(command, " ");
        const char *slash = memrchr(command, '/', first);
        return slash && slash + 1 < command + first ? slash + 1 : command;
}

const char *afz_live_command(const struct afz_sample *proc, char *buf, size_t cap)
{
        const char *text = skip_folders(proc->detail ? proc->detail : proc->name);
        size_t n = strnlen(text, cap - 1);
        for (size_t i = 0; i < n; i++)
                buf[i] = text[i] == '\n' || text[i] == '\t' ? ' ' : text[i];
        buf[n] = 0;
        return buf;
}
