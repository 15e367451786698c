#include <string.h>

#include "count_of.h"
#include "live_parts.h"
#include "live_rows.h"
#include "role.h"

/* A column of the process list. Figures come first and the name last, so that a long one costs
 * nothing; columns that the width cannot hold are left out. */
struct column {
        const char *title;
        int width;
        int from_width; /* of the panel */
        void (*draw)(const struct afz_frame *frame, const struct afz_sample *proc, int x, int y,
                     int w);
};

/* Nothing, something, not known: told apart at a glance. */
static void put_figure(const struct afz_frame *frame, int x, int y, int w, bool known, bool zero,
                       const char *text)
{
        enum afz_color color = !known || zero ? AFZ_COLOR_QUIET : AFZ_COLOR_DEFAULT;
        afz_screen_put_right(frame->screen, x, y, w, AFZ_STYLE(color), known ? text : AFZ_ABSENT);
}

static void draw_pid(const struct afz_frame *frame, const struct afz_sample *proc, int x, int y,
                     int w)
{
        char buf[AFZ_FIGURE_CAP];
        afz_screen_put_right(frame->screen, x, y, w, AFZ_STYLE(AFZ_COLOR_QUIET),
                             afz_figure_count(buf, proc->subject.id));
}

static void draw_state(const struct afz_frame *frame, const struct afz_sample *proc, int x, int y,
                       int w)
{
        int64_t state;
        char letter[2] = {0};
        if (!afz_sample_get(proc, AFZ_PROC_STATE, &state)) {
                put_figure(frame, x, y, w, false, false, "");
                return;
        }
        letter[0] = (char)state;
        enum afz_color color = strchr("DTt", letter[0])   ? AFZ_COLOR_WARN
                               : strchr("ZXx", letter[0]) ? AFZ_COLOR_BAD
                               : letter[0] == 'R'         ? AFZ_COLOR_GOOD
                                                          : AFZ_COLOR_QUIET;
        afz_screen_put_right(frame->screen, x, y, w, AFZ_STYLE(color), letter);
}

static void draw_cpu(const struct afz_frame *frame, const struct afz_sample *proc, int x, int y,
                     int w)
{
        char buf[AFZ_FIGURE_CAP];
        double cpu = 0;
        bool known = afz_live_cpu_of(frame, proc, &cpu);
        put_figure(frame, x, y, w, known, cpu < 0.0005, afz_figure_percent(buf, cpu));
}

static void draw_bytes(const struct afz_frame *frame, const struct afz_sample *proc,
                       enum afz_metric metric, int x, int y, int w)
{
        char buf[AFZ_FIGURE_CAP];
        uint64_t bytes = 0;
        bool known = afz_sample_get_u64(proc, metric, &bytes);
        put_figure(frame, x, y, w, known, bytes == 0, afz_figure_size(buf, bytes));
}

static void draw_need(const struct afz_frame *frame, const struct afz_sample *proc, int x, int y,
                      int w)
{
        draw_bytes(frame, proc, AFZ_PROC_NEED, x, y, w);
}

static void draw_rss(const struct afz_frame *frame, const struct afz_sample *proc, int x, int y,
                     int w)
{
        draw_bytes(frame, proc, AFZ_PROC_RSS, x, y, w);
}

static void draw_swap(const struct afz_frame *frame, const struct afz_sample *proc, int x, int y,
                      int w)
{
        draw_bytes(frame, proc, AFZ_PROC_SWAP, x, y, w);
}

static void draw_rate(const struct afz_frame *frame, const struct afz_sample *proc,
                      enum afz_metric metric, int x, int y, int w)
{
        char buf[AFZ_FIGURE_CAP];
        double rate = 0;
        bool known = afz_window_rate(frame->window, proc, metric, &rate);
        put_figure(frame, x, y, w, known, rate < 0.5, afz_figure_rate(buf, rate));
}

static void draw_read(const struct afz_frame *frame, const struct afz_sample *proc, int x, int y,
                      int w)
{
        draw_rate(frame, proc, AFZ_PROC_READ, x, y, w);
}

static void draw_written(const struct afz_frame *frame, const struct afz_sample *proc, int x, int y,
                         int w)
{
        draw_rate(frame, proc, AFZ_PROC_WRITTEN, x, y, w);
}

static void draw_threads(const struct afz_frame *frame, const struct afz_sample *proc, int x, int y,
                         int w)
{
        char buf[AFZ_FIGURE_CAP];
        uint64_t n = 0;
        bool known = afz_sample_get_u64(proc, AFZ_PROC_THREADS, &n);
        put_figure(frame, x, y, w, known, false, afz_figure_count(buf, n));
}

static const struct column columns[] = {
        {"pid", 7, 0, draw_pid},           {"", 2, 0, draw_state},
        {"cpu", 7, 36, draw_cpu},          {"need", 7, 0, draw_need},
        {"rss", 7, 92, draw_rss},          {"swap", 7, 110, draw_swap},
        {"read", 8, 70, draw_read},        {"written", 8, 70, draw_written},
        {"threads", 8, 100, draw_threads},
};

enum { COLUMNS = AFZ_COUNT_OF(columns) };

static int draw_titles(const struct afz_frame *frame, struct afz_rect at)
{
        struct afz_style quiet = AFZ_STYLE(AFZ_COLOR_QUIET);
        int x = at.x;
        for (int i = 0; i < COLUMNS; i++) {
                if (at.w < columns[i].from_width)
                        continue;
                afz_screen_put_right(frame->screen, x, at.y, columns[i].width, quiet,
                                     columns[i].title);
                x += columns[i].width;
        }
        afz_screen_put(frame->screen, x + 2, at.y, at.x + at.w - x - 2, quiet, "process");
        return x + 2;
}

static int draw_branch(const struct afz_frame *frame, const struct afz_live_row *row, int x, int y,
                       int end)
{
        struct afz_style faint = AFZ_STYLE(AFZ_COLOR_FAINT);
        for (int d = 1; d <= row->depth && d < 32 && x + 12 < end; d++) {
                bool more = row->more >> d & 1;
                if (d < row->depth) {
                        afz_screen_put(frame->screen, x, y, 3, faint, more ? "│  " : "   ");
                } else {
                        afz_screen_put(frame->screen, x, y, 3, faint, more ? "├─ " : "└─ ");
                }
                x += 3;
        }
        return x;
}

static const char *role_text(const struct afz_sample *proc, char *buf, size_t cap)
{
        int64_t role, rank;
        struct afz_out out = afz_out_to(-1, buf, cap - 1);
        if (afz_sample_get(proc, AFZ_PROC_RANK, &rank) && rank >= 0) {
                afz_out_str(&out, "rank ");
                afz_out_i64(&out, rank);
        } else if (afz_sample_get(proc, AFZ_PROC_ROLE, &role) && role > AFZ_ROLE_OTHER &&
                   role < AFZ_ROLE_COUNT) {
                afz_out_str(&out, afz_role_name((enum afz_role)role));
        }
        buf[out.len] = 0;
        return buf;
}

static int put_word(const struct afz_frame *frame, int x, int y, int end, enum afz_color color,
                    const char *text)
{
        if (!text || !*text || end - x < 4)
                return x;
        return x + afz_screen_put(frame->screen, x, y, end - x, AFZ_STYLE(color), text) + 2;
}

static void draw_name(const struct afz_frame *frame, const struct afz_live_row *row, int x, int y,
                      int end)
{
        const struct afz_sample *proc = row->proc;
        char role[40], command[256];
        bool main = proc->subject.id == frame->window->job_pid;
        bool waits = afz_sample_or(proc, AFZ_PROC_STATE, 0) == 'D';

        if (afz_live_sort_of(frame) == AFZ_LIVE_BY_TREE)
                x = draw_branch(frame, row, x, y, end);
        struct afz_style style = {.attr = main ? AFZ_ATTR_BOLD : 0};
        x += afz_screen_put(frame->screen, x, y, end - x, style, proc->name) + 2;
        role_text(proc, role, sizeof role);
        x = put_word(frame, x, y, end, main ? AFZ_COLOR_JOB : AFZ_COLOR_QUIET, role);
        if (afz_sample_or(proc, AFZ_PROC_ORPHAN, 0) == 1)
                x = put_word(frame, x, y, end, AFZ_COLOR_WARN, "orphan");
        if (proc->note && strcmp(proc->note, role) != 0)
                x = put_word(frame, x, y, end, waits ? AFZ_COLOR_WARN : AFZ_COLOR_FAINT,
                             proc->note);
        if (proc->detail && end - x >= 12)
                put_word(frame, x, y, end, AFZ_COLOR_FAINT,
                         afz_live_command(proc, command, sizeof command));
}

static void draw_row(const struct afz_frame *frame, const struct afz_live_row *row,
                     struct afz_rect at, int name_x)
{
        int x = at.x;
        for (int i = 0; i < COLUMNS; i++) {
                if (at.w < columns[i].from_width)
                        continue;
                columns[i].draw(frame, row->proc, x, at.y, columns[i].width);
                x += columns[i].width;
        }
        draw_name(frame, row, name_x, at.y, at.x + at.w);
}

static void draw_none(const struct afz_frame *frame, struct afz_rect at)
{
        const char *text = frame->ended ? "no process of the job is left" : "no process to be seen";
        afz_screen_put(frame->screen, at.x + 2, at.y, at.w - 2, AFZ_STYLE(AFZ_COLOR_QUIET), text);
}

static void draw_tree(const struct afz_frame *frame, struct afz_rect at)
{
        int rows = at.h - 1, *scroll = &frame->state->scroll;
        int name_x = draw_titles(frame, at);
        int count = afz_live_order(frame, *scroll + rows);

        if (*scroll > count - rows)
                *scroll = count > rows ? count - rows : 0;
        if (count == 0)
                draw_none(frame, (struct afz_rect){at.x, at.y + 1, at.w, 1});
        for (int i = 0; i < rows && *scroll + i < count; i++)
                draw_row(frame, afz_live_row(frame, *scroll + i),
                         (struct afz_rect){at.x, at.y + 1 + i, at.w, 1}, name_x);
        int below = count - *scroll - rows;
        if (below > 0 || *scroll > 0) {
                char buf[AFZ_FIGURE_CAP + 8];
                struct afz_out out = afz_out_to(-1, buf, sizeof buf - 1);
                afz_out_str(&out, below > 0 ? "↓ " : "↑ ");
                afz_out_i64(&out, below > 0 ? below : *scroll);
                buf[out.len] = 0;
                afz_screen_put_right(frame->screen, at.x + at.w - 8, at.y, 8,
                                     AFZ_STYLE(AFZ_COLOR_QUIET), buf);
        }
}

static int tree_rows(const struct afz_frame *frame, int width, enum afz_room room)
{
        static const int most[AFZ_ROOMS] = {3, 7, 20, 1000};
        size_t cursor = 0;
        int rows = 2; /* titles, and a row that says why there is nothing */
        (void)width;
        while (rows < most[room] && afz_window_next(frame->window, AFZ_KIND_PROC, &cursor))
                rows++;
        return rows < most[AFZ_ROOM_LEAST] ? most[AFZ_ROOM_LEAST] : rows;
}

static void put_count(struct afz_out *out, const struct afz_sample *job, enum afz_metric metric,
                      const char *one, const char *many)
{
        uint64_t n;
        if (!afz_sample_get_u64(job, metric, &n))
                return;
        afz_out_u64(out, n);
        afz_out_str(out, n == 1 ? one : many);
}

static void tree_aside(const struct afz_frame *frame, int width, struct afz_out *out)
{
        static const char *const words[AFZ_LIVE_SORTS] = {
                [AFZ_LIVE_BY_TREE] = "as a tree",
                [AFZ_LIVE_BY_NEED] = "by need",
                [AFZ_LIVE_BY_CPU] = "by cpu",
        };
        (void)width;
        put_count(out, frame->job, AFZ_JOB_PROCESSES, " process, ", " processes, ");
        put_count(out, frame->job, AFZ_JOB_THREADS, " thread, ", " threads, ");
        afz_out_str(out, words[afz_live_sort_of(frame)]);
}

const struct afz_panel afz_panel_tree = {
        .title = "processes", .rows = tree_rows, .draw = draw_tree, .aside = tree_aside};
