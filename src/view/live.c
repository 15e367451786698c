#include "live.h"

#include "count_of.h"
#include "key.h"
#include "live_parts.h"
#include "quantity.h"

/* A panel in a stack, with the rows that it was given. */
struct slot {
        const struct afz_panel *panel;
        int rows;
        bool rule;
};

/* Two columns of panels above the processes from this width on; below it, one under the other. */
enum { WIDE_FROM = 150, SLOTS = 9, COLUMN_GUTTER = 4, NOBODY = -1 };

static int total_rows(const struct slot *slots, int n)
{
        int sum = 0;
        for (int i = 0; i < n; i++)
                sum += slots[i].rows + slots[i].rule;
        return sum;
}

static void grow(const struct afz_frame *frame, struct slot *slots, int n, struct slot *slot,
                 enum afz_room room, int width, int height)
{
        int want = slot->panel->rows(frame, width, room);
        int left = height - (total_rows(slots, n) - slot->rows);
        if (want > left)
                want = left;
        if (want > slot->rows)
                slot->rows = want;
}

static void add_rule(struct slot *slots, int n, struct slot *slot, int height)
{
        if (slot->rows > 0 && total_rows(slots, n) < height)
                slot->rule = true;
}

/* Gives every panel its least, then lets them grow; what is left over goes to the filler. The order
 * of the slots is the order on the screen, `rank` lists them by weight: the first few get their
 * titles before the others get any more rows, since titles are what makes a full screen readable.
 */
static void share_rows(const struct afz_frame *frame, struct slot *slots, int n, const int *rank,
                       int filler, int width, int height)
{
        enum { TITLES_FIRST = 3 };
        for (int room = 0; room < AFZ_ROOMS; room++) {
                for (int k = 0; k < n; k++) {
                        struct slot *slot = &slots[rank[k]];
                        grow(frame, slots, n, slot, (enum afz_room)room, width, height);
                        if (room == AFZ_ROOM_GOOD && k < TITLES_FIRST)
                                add_rule(slots, n, slot, height);
                }
                for (int k = 0; room == AFZ_ROOM_GOOD && k < n; k++)
                        add_rule(slots, n, &slots[rank[k]], height);
        }
        if (filler != NOBODY && slots[filler].rows > 0)
                slots[filler].rows += height - total_rows(slots, n);
}

static void draw_slots(const struct afz_frame *frame, const struct slot *slots, int n,
                       struct afz_rect at)
{
        int y = at.y;
        for (int i = 0; i < n; i++) {
                if (slots[i].rows <= 0)
                        continue;
                if (slots[i].rule) {
                        char aside[128];
                        struct afz_out out = afz_out_to(-1, aside, sizeof aside - 1);
                        if (slots[i].panel->aside)
                                slots[i].panel->aside(frame, at.w, &out);
                        aside[out.len] = 0;
                        afz_live_rule(frame, at.x, y++, at.w, slots[i].panel->title, aside);
                }
                slots[i].panel->draw(frame, (struct afz_rect){at.x, y, at.w, slots[i].rows});
                y += slots[i].rows;
        }
}

static bool knows_lines(const struct afz_frame *frame)
{
        return frame->state->lines && frame->state->lines->known;
}

static void draw_narrow(const struct afz_frame *frame, struct afz_rect at)
{
        enum { MEMORY, USES, LINES, GPU, CPU, HISTORY, DISK, TREE, EVENTS };
        static const int rank[SLOTS] = {MEMORY, TREE, CPU, LINES, USES, GPU, EVENTS, HISTORY, DISK};
        static const int with_lines[SLOTS] = {MEMORY, TREE,   LINES,   USES, CPU,
                                              GPU,    EVENTS, HISTORY, DISK};
        struct slot slots[SLOTS] = {
                [MEMORY] = {&afz_panel_memory}, [GPU] = {&afz_panel_gpu},
                [CPU] = {&afz_panel_cpu},       [HISTORY] = {&afz_panel_history},
                [DISK] = {&afz_panel_disk},     [TREE] = {&afz_panel_tree},
                [EVENTS] = {&afz_panel_events}, [LINES] = {&afz_panel_lines},
                [USES] = {&afz_panel_uses},
        };
        share_rows(frame, slots, SLOTS, knows_lines(frame) ? with_lines : rank, TREE, at.w, at.h);
        draw_slots(frame, slots, SLOTS, at);
}

static int ample_rows(const struct afz_frame *frame, const struct slot *slots, int n, int width)
{
        int sum = 0;
        for (int i = 0; i < n; i++) {
                int rows = slots[i].panel->rows(frame, width, AFZ_ROOM_AMPLE);
                sum += rows > 0 ? rows + 1 : 0;
        }
        return sum;
}

static void draw_wide(const struct afz_frame *frame, struct afz_rect at)
{
        enum { LEFT = 2, RIGHT = 3, BELOW = 4, TREE = 3 };
        static const int rank[] = {0, 1, 2}, below_rank[BELOW] = {TREE, 1, 0, 2};
        struct slot left[LEFT] = {{&afz_panel_memory}, {&afz_panel_cpu}};
        struct slot right[RIGHT] = {{&afz_panel_gpu}, {&afz_panel_disk}, {&afz_panel_events}};
        struct slot below[BELOW] = {{&afz_panel_uses},
                                    {&afz_panel_lines},
                                    {&afz_panel_history},
                                    [TREE] = {&afz_panel_tree}};
        int width = (at.w - COLUMN_GUTTER) / 2;
        int a = ample_rows(frame, left, LEFT, width), b = ample_rows(frame, right, RIGHT, width);
        int top = a > b ? a : b, most = at.h / 2;

        if (top > most)
                top = most;
        share_rows(frame, left, LEFT, rank, NOBODY, width, top);
        share_rows(frame, right, RIGHT, rank, NOBODY, width, top);
        draw_slots(frame, left, LEFT, (struct afz_rect){at.x, at.y, width, top});
        draw_slots(frame, right, RIGHT,
                   (struct afz_rect){at.x + width + COLUMN_GUTTER, at.y, width, top});
        at.y += top;
        at.h -= top;
        share_rows(frame, below, BELOW, below_rank, TREE, at.w, at.h);
        draw_slots(frame, below, BELOW, at);
}

static int put_part(const struct afz_frame *frame, int x, int y, int end, struct afz_style style,
                    const char *text)
{
        if (!text || !*text || end - x < 2)
                return x;
        return x + afz_screen_put(frame->screen, x, y, end - x, style, text) + 2;
}

static const char *job_command(const struct afz_frame *frame, char *buf, size_t cap)
{
        const struct afz_sample *root;
        if (frame->state->command)
                return frame->state->command;
        if (frame->window->job_pid == 0)
                return "the whole machine";
        root = afz_window_find(frame->window, AFZ_KIND_PROC, frame->window->job_pid);
        return root ? afz_live_command(root, buf, cap) : "";
}

/* "pid 4242  1 h 12 min  12:03:11", from the right; returns where it begins. */
static int draw_header_right(const struct afz_frame *frame, struct afz_rect at)
{
        char text[96], age[AFZ_DURATION_TEXT_CAP];
        const struct afz_live_state *st = frame->state;
        struct afz_out out = afz_out_to(-1, text, sizeof text - 1);
        if (frame->window->job_pid) {
                afz_out_str(&out, "pid ");
                afz_out_u64(&out, frame->window->job_pid);
        }
        if (frame->window->job_pid && st->job_start_ns && frame->window->t_ns > st->job_start_ns &&
            at.w >= 60) {
                uint64_t lived = frame->window->t_ns - st->job_start_ns;
                afz_out_str(&out, " · ");
                /* Whole seconds: tenths that race past are no use to anybody. */
                afz_out_str(&out,
                            afz_format_duration(age, sizeof age, lived / 1000000000 * 1000000000));
        }
        if (st->clock && at.w >= 60) {
                afz_out_str(&out, out.len ? " · " : "");
                afz_out_str(&out, st->clock);
        }
        text[out.len] = 0;
        int n = afz_glyph_columns(text), x = at.x + at.w - n;
        afz_screen_put(frame->screen, x, at.y, n, AFZ_STYLE(AFZ_COLOR_QUIET), text);
        return x;
}

static void draw_header(const struct afz_frame *frame, struct afz_rect at)
{
        char command[512];
        int end = draw_header_right(frame, at) - 2, x = at.x;
        x = put_part(frame, x, at.y, end, AFZ_BOLD(AFZ_COLOR_JOB), "antifreeze");
        if (at.w >= 60)
                x = put_part(frame, x, at.y, end, AFZ_STYLE(AFZ_COLOR_QUIET), frame->state->host);
        put_part(frame, x, at.y, end, AFZ_STYLE(AFZ_COLOR_DEFAULT),
                 job_command(frame, command, sizeof command));
}

/* What holds the job back: its colour, and words for when the judge gave none. */
static const struct {
        enum afz_color color;
        const char *text;
} limits[AFZ_LIMIT_COUNT] = {
        [AFZ_LIMIT_UNKNOWN] = {AFZ_COLOR_QUIET, "looking"},
        [AFZ_LIMIT_NONE] = {AFZ_COLOR_QUIET, "idle: waits for something of its own"},
        [AFZ_LIMIT_SWAPPING] = {AFZ_COLOR_BAD, "swapping"},
        [AFZ_LIMIT_MEMORY] = {AFZ_COLOR_BAD, "waiting for memory"},
        [AFZ_LIMIT_DISK] = {AFZ_COLOR_WARN, "waiting for a disk"},
        [AFZ_LIMIT_NETWORK] = {AFZ_COLOR_WARN, "waiting for a network mount"},
        [AFZ_LIMIT_CPU] = {AFZ_COLOR_GOOD, "computing"},
        [AFZ_LIMIT_CPU_SHARE] = {AFZ_COLOR_WARN, "wants more cores than it is given"},
        [AFZ_LIMIT_GPU] = {AFZ_COLOR_GOOD, "the GPU is busy"},
        [AFZ_LIMIT_STOPPED] = {AFZ_COLOR_WARN, "stopped"},
};

static void draw_limit(const struct afz_frame *frame, struct afz_rect at)
{
        const struct afz_limit *limit = &frame->window->limit;
        unsigned kind = (unsigned)limit->kind < AFZ_LIMIT_COUNT ? limit->kind : 0;
        enum afz_color color = limits[kind].color;
        const char *text = limit->text[0] ? limit->text : limits[kind].text;

        if (frame->ended) {
                color = AFZ_COLOR_QUIET;
                text = "the job has ended";
        }
        afz_screen_glyph(frame->screen, at.x, at.y, AFZ_STYLE(color), "●");
        int x = at.x + 2, end = at.x + at.w;
        x += afz_screen_put(frame->screen, x, at.y, end - x, AFZ_BOLD(color), text) + 2;
        if (frame->state->paused)
                afz_screen_put_right(
                        frame->screen, x, at.y, end - x,
                        (struct afz_style){.fg = AFZ_COLOR_WARN, .attr = AFZ_ATTR_REVERSE},
                        " paused ");
}

/* "antifreeze 0.1 % of a core, 5.1M", from the right; returns where it begins. */
static int draw_cost(const struct afz_frame *frame, struct afz_rect at)
{
        char text[96], buf[AFZ_FIGURE_CAP];
        double cpu;
        uint64_t rss;
        struct afz_out out = afz_out_to(-1, text, sizeof text - 1);

        afz_out_str(&out, "antifreeze ");
        if (afz_live_share(frame, frame->self, AFZ_SELF_CPU, &cpu)) {
                /* Two decimals: what it promises is below a per cent. */
                uint64_t hundredths = (uint64_t)(cpu * 10000 + 0.5);
                afz_out_fmt(&out, "%u.%02u %%", (unsigned)(hundredths / 100),
                            (unsigned)(hundredths % 100));
        } else {
                afz_out_str(&out, AFZ_ABSENT);
        }
        afz_out_str(&out, " of a core");
        if (afz_sample_get_u64(frame->self, AFZ_SELF_RSS, &rss)) {
                afz_out_str(&out, ", ");
                afz_out_str(&out, afz_figure_size(buf, rss));
        }
        text[out.len] = 0;
        int n = afz_glyph_columns(text);
        if (at.w < 70)
                return at.x + at.w;
        afz_screen_put(frame->screen, at.x + at.w - n, at.y, n, AFZ_STYLE(AFZ_COLOR_QUIET), text);
        return at.x + at.w - n;
}

static void draw_footer(const struct afz_frame *frame, struct afz_rect at)
{
        static const struct {
                const char *key, *word;
        } keys[] = {
                {"q", "quit"},  {"h", "help"}, {"l", "lines"}, {"s", "sort"},
                {"p", "pause"}, {"g", "gpus"}, {"i", "info"},
        };
        int end = draw_cost(frame, at) - 2, x = at.x;
        for (size_t i = 0; i < AFZ_COUNT_OF(keys); i++) {
                if (keys[i].key[0] == 'l' && !knows_lines(frame))
                        continue;
                if (x + 2 + afz_glyph_columns(keys[i].word) > end)
                        return;
                x += afz_screen_put(frame->screen, x, at.y, 1, AFZ_BOLD(AFZ_COLOR_DEFAULT),
                                    keys[i].key) +
                     1;
                x += afz_screen_put(frame->screen, x, at.y, end - x, AFZ_STYLE(AFZ_COLOR_QUIET),
                                    keys[i].word) +
                     2;
        }
        /* What is not seen should not go unsaid: one mark, and the page that explains it. */
        unsigned unseen = 0;
        for (size_t i = 0; i < frame->window->sources; i++)
                unseen += frame->window->source[i].error != 0;
        if (unseen && x + 12 < end) {
                char buf[AFZ_FIGURE_CAP];
                x += afz_screen_put(frame->screen, x, at.y, end - x, AFZ_STYLE(AFZ_COLOR_QUIET),
                                    afz_figure_count(buf, unseen)) +
                     1;
                afz_screen_put(frame->screen, x, at.y, end - x, AFZ_STYLE(AFZ_COLOR_QUIET),
                               "not seen");
        }
}

static unsigned count_gpus(const struct afz_window *window)
{
        size_t cursor = 0;
        const struct afz_sample *s;
        unsigned gpus = 0;
        while ((s = afz_window_next(window, AFZ_KIND_GPU, &cursor)))
                gpus += !afz_sample_has(s, AFZ_GPU_PARENT);
        return gpus;
}

static struct afz_frame begin(struct afz_screen *screen, const struct afz_window *window,
                              struct afz_live_state *state)
{
        struct afz_frame frame = {.screen = screen, .window = window, .state = state};
        uint64_t n;

        frame.gpus = count_gpus(window);
        frame.host = afz_window_one(window, AFZ_KIND_HOST);
        frame.psi = afz_window_one(window, AFZ_KIND_PSI);
        frame.cpu = afz_window_find(window, AFZ_KIND_CPU, AFZ_CPU_ALL);
        frame.job = afz_window_one(window, AFZ_KIND_JOB);
        frame.self = afz_window_one(window, AFZ_KIND_SELF);
        if (window->job_pid)
                frame.ended = state->job_ended ||
                              (afz_sample_get_u64(frame.job, AFZ_JOB_PROCESSES, &n) && n == 0);
        return frame;
}

static void draw_body(const struct afz_frame *frame, struct afz_rect at)
{
        if (frame->state->page == AFZ_LIVE_GPUS)
                afz_live_draw_gpus(frame, at);
        else if (frame->state->page == AFZ_LIVE_INFO)
                afz_live_draw_info(frame, at);
        else if (frame->state->page == AFZ_LIVE_LINES)
                afz_live_draw_lines(frame, at);
        else if (at.w >= WIDE_FROM && at.h >= 24)
                draw_wide(frame, at);
        else
                draw_narrow(frame, at);
        if (frame->state->help)
                afz_live_draw_help(frame, at);
}

void afz_live_draw(struct afz_screen *screen, const struct afz_window *window,
                   struct afz_live_state *state)
{
        struct afz_frame frame = begin(screen, window, state);
        int margin = screen->width >= 60 ? 1 : 0;
        struct afz_rect at = {margin, 0, screen->width - 2 * margin, screen->height};
        int gap = at.h >= 30 ? 1 : 0;

        if (at.w < 8 || at.h < 3)
                return;
        draw_header(&frame, at);
        at.y = 1;
        draw_limit(&frame, at);
        at.y = 2 + gap;
        at.h = screen->height - at.y - 1;
        if (at.h > 0)
                draw_body(&frame, at);
        at.y = screen->height - 1;
        draw_footer(&frame, at);
}
