/* What the job's memory is for, in a learner's words: a row for the host and one for GPU memory. */
#include "live_parts.h"

static const struct afz_lines_now *uses_of(const struct afz_frame *frame)
{
        const struct afz_lines_now *lines = frame->state->lines;
        return lines && lines->known && lines->uses[0] + lines->uses[1] > 0 ? lines : NULL;
}

static int uses_rows(const struct afz_frame *frame, int width, enum afz_room room)
{
        const struct afz_lines_now *lines = uses_of(frame);
        (void)width;
        (void)room;
        return lines ? (lines->uses[0] > 0) + (lines->uses[1] > 0) : 0;
}

static void draw_uses(const struct afz_frame *frame, struct afz_rect at)
{
        static const char *const label[2] = {"RAM for", "GPU for"};
        const struct afz_lines_now *lines = uses_of(frame);
        char buf[AFZ_FIGURE_CAP];
        int y = at.y, end = at.x + at.w;
        for (int gpu = 0; lines && gpu < 2; gpu++) {
                int x = at.x + AFZ_LABEL_COLUMNS;
                if (lines->uses[gpu] == 0 || y >= at.y + at.h)
                        continue;
                afz_live_label(frame, at.x, y, label[gpu]);
                for (uint32_t i = 0; i < lines->uses[gpu]; i++)
                        x = afz_live_pair(frame, x, y, end, lines->use[gpu][i].name,
                                          afz_figure_size(buf, lines->use[gpu][i].bytes),
                                          AFZ_COLOR_DEFAULT);
                if (gpu && lines->gpu_peak_bytes > 0)
                        afz_live_pair(frame, x, y, end, "peak",
                                      afz_figure_size(buf, lines->gpu_peak_bytes), AFZ_COLOR_QUIET);
                y++;
        }
}

/* "64 samples a step, 16 at once · memory ran out 2 x" */
static void uses_aside(const struct afz_frame *frame, int width, struct afz_out *out)
{
        const struct afz_lines_now *lines = uses_of(frame);
        (void)width;
        if (!lines)
                return;
        if (lines->batch > 0) {
                afz_out_u64(out, lines->batch);
                afz_out_str(out, " samples a step");
        }
        if (lines->micro > 0 && lines->micro < lines->batch) {
                afz_out_str(out, ", ");
                afz_out_u64(out, lines->micro);
                afz_out_str(out, " at once");
        }
        if (lines->ooms > 0) {
                afz_out_str(out, lines->batch > 0 ? " · memory ran out " : "memory ran out ");
                afz_out_u64(out, lines->ooms);
                afz_out_str(out, " x");
        }
}

const struct afz_panel afz_panel_uses = {.title = "what the memory is for",
                                         .rows = uses_rows,
                                         .draw = draw_uses,
                                         .aside = uses_aside};
