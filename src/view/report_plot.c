/* One plot as SVG. The outer picture is as wide as the page lets it be, in pixels, so texts and
 * strokes keep their size; the paths lie in an inner one that is stretched. Zooming is a matter of
 * the inner viewBox and of what stands at per cent of the width. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "report_parts.h"

enum {
        TOP = 14,      /* pixels for the highest label of the axis */
        BOTTOM = 20,   /* for times */
        X_TICKS = 8,   /* at most; every other one is hidden on a phone */
        LABEL_GAP = 4, /* between a grid line and the label above it */
};

static unsigned inner(const struct afz_report_frame *frame)
{
        return frame->height - TOP - BOTTOM;
}

static double y_of(const struct afz_report_frame *frame, double value)
{
        return TOP + inner(frame) * (1 - fmin(value / frame->most, 1));
}

static unsigned ticks_of(const struct afz_report_frame *frame)
{
        double ticks = frame->most / frame->step + 0.001;
        return ticks < 12 ? (unsigned)ticks : 12;
}

static void put_times(struct afz_out *out, const struct afz_report_frame *frame, uint32_t end_ms)
{
        char text[AFZ_REPORT_TEXT_CAP];
        uint64_t step = afz_report_time_step(end_ms, X_TICKS);
        afz_out_str(out, "<g class=\"xg\">");
        for (uint64_t t = 0, i = 0; t <= end_ms && i <= X_TICKS; t += step, i++) {
                double x = 100.0 * (double)t / end_ms;
                const char *edge = x < 2 ? " first" : x > 97 ? " last" : "";
                afz_out_fmt(out,
                            "<line x1=\"%.3f%%\" x2=\"%.3f%%\" y1=\"%d\" y2=\"%u\"/>"
                            "<text class=\"%s%s\" x=\"%.3f%%\" y=\"%u\">%s</text>",
                            x, x, TOP, TOP + inner(frame), i % 2 ? "odd" : "even", edge, x,
                            frame->height - 5, afz_report_time_tick(text, t, step));
        }
        afz_out_str(out, "</g>");
}

void afz_report_plot_open(struct afz_out *out, const struct afz_report_picture *picture,
                          const struct afz_report_frame *frame, const char *words)
{
        afz_out_fmt(
                out,
                "<svg class=\"plot\" data-panel=\"%s\" role=\"img\" tabindex=\"0\" width=\"100%%\" "
                "height=\"%u\" aria-label=\"",
                frame->id, frame->height);
        afz_report_text(out, words, 800);
        afz_out_str(out, "\">");
        if (frame->to_ms > frame->from_ms)
                afz_out_fmt(out,
                            "<rect class=\"range\" data-t=\"%" PRIu32 "\" data-to=\"%" PRIu32
                            "\" x=\"%.3f%%\" width=\"%.3f%%\" y=\"%u\" height=\"3\"/>",
                            frame->from_ms, frame->to_ms, 100.0 * frame->from_ms / picture->end_ms,
                            100.0 * (frame->to_ms - frame->from_ms) / picture->end_ms,
                            TOP + inner(frame));
        put_times(out, frame, picture->end_ms);
        afz_out_str(out, "<g class=\"yg\">");
        for (unsigned i = 0; i <= ticks_of(frame); i++) {
                double y = y_of(frame, i * frame->step);
                afz_out_fmt(out, "<line x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"%s/>", y, y,
                            i ? "" : " class=\"zero\"");
        }
        afz_out_fmt(out,
                    "</g><svg class=\"paths\" y=\"%d\" width=\"100%%\" height=\"%u\" "
                    "viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\">",
                    TOP, inner(frame), AFZ_REPORT_WIDE, AFZ_REPORT_TALL);
}

void afz_report_plot_over(struct afz_out *out, const struct afz_report_picture *picture,
                          const struct afz_report_frame *frame)
{
        char text[AFZ_REPORT_TEXT_CAP];
        afz_out_str(out, "</svg>");
        afz_report_events_lines(out, &picture->events, picture->end_ms, TOP, inner(frame));
        afz_out_str(out, "<g class=\"yt\">");
        for (unsigned i = 1; i <= ticks_of(frame); i++)
                afz_out_fmt(out, "<text y=\"%.1f\">%s</text>",
                            y_of(frame, i * frame->step) - LABEL_GAP,
                            afz_report_tick(text, frame->unit, i * frame->step, frame->most));
        afz_out_str(out, "</g>");
}

void afz_report_plot_close(struct afz_out *out)
{
        afz_out_str(out, "</svg>\n");
}

void afz_report_plot_label(struct afz_out *out, const struct afz_report_frame *frame, double value,
                           const char *text)
{
        afz_out_fmt(out, "<text class=\"lim\" x=\"100%%\" y=\"%.1f\">",
                    y_of(frame, value) - LABEL_GAP);
        afz_report_text(out, text, 100);
        afz_out_str(out, "</text>");
}

/* ---- paths ---- */

/* A pen that says where it goes from where it was: half as long, and well packed. */
struct pen {
        struct afz_out *out;
        int x, y;
        bool down;
};

static void number(struct afz_out *out, int v, bool first)
{
        if (v >= 0 && !first)
                afz_out_char(out, ' ');
        afz_out_i64(out, v);
}

static void pen_to(struct pen *pen, int x, int y)
{
        if (pen->down) {
                number(pen->out, x - pen->x, false);
                number(pen->out, y - pen->y, false);
        } else {
                afz_out_char(pen->out, 'M');
                number(pen->out, x, true);
                number(pen->out, y, false);
                afz_out_char(pen->out, 'l');
        }
        pen->x = x, pen->y = y, pen->down = true;
}

static int pen_y(double value, double most)
{
        double y = AFZ_REPORT_TALL * (1 - value / most);
        return (int)lround(fmin(fmax(y, -AFZ_REPORT_TALL), AFZ_REPORT_TALL));
}

static int pen_x(unsigned bucket)
{
        return (int)bucket * 10 + 5;
}

/* The end of the piece that begins at the known bucket `first`; *ret_last is its last known one. */
static unsigned piece_end(const struct afz_report_line *line, unsigned first, unsigned *ret_last)
{
        unsigned last = first, i = first + 1;
        for (; i < AFZ_REPORT_BUCKETS; i++) {
                if (line->bucket[i].weight <= 0)
                        continue;
                if (afz_report_line_breaks(line, last, i))
                        break;
                last = i;
        }
        *ret_last = last;
        return i;
}

static unsigned next_known(const struct afz_report_line *line, unsigned i)
{
        while (i < AFZ_REPORT_BUCKETS && line->bucket[i].weight <= 0)
                i++;
        return i;
}

static void path_open(struct afz_out *out, const char *what, const char *paint)
{
        afz_out_fmt(out, "<path class=\"%s %s\" d=\"", what, paint);
}

void afz_report_plot_line(struct afz_out *out, const struct afz_report_line *line, double most,
                          const char *paint)
{
        unsigned last, next;
        path_open(out, "line", paint);
        for (unsigned i = next_known(line, 0); i < AFZ_REPORT_BUCKETS; i = next_known(line, next)) {
                struct pen pen = {.out = out};
                next = piece_end(line, i, &last);
                /* To the edges of the picture, and a point that is alone is a dash. */
                pen_to(&pen, pen_x(i) - 5, pen_y(line->bucket[i].mid, most));
                for (unsigned b = i; b <= last; b = next_known(line, b + 1))
                        pen_to(&pen, pen_x(b), pen_y(line->bucket[b].mid, most));
                pen_to(&pen, pen_x(last) + 5, pen_y(line->bucket[last].mid, most));
        }
        afz_out_str(out, "\"/>");
}

/* Forth along the tops and back along the bottoms; `floor`: the bottom is zero. */
static void put_band(struct afz_out *out, const struct afz_report_line *line, double most,
                     bool floor_is_zero)
{
        unsigned last, next;
        for (unsigned i = next_known(line, 0); i < AFZ_REPORT_BUCKETS; i = next_known(line, next)) {
                struct pen pen = {.out = out};
                next = piece_end(line, i, &last);
                for (unsigned b = i; b <= last; b = next_known(line, b + 1))
                        pen_to(&pen, pen_x(b),
                               pen_y(floor_is_zero ? line->bucket[b].mid : line->bucket[b].hi,
                                     most));
                if (floor_is_zero) {
                        pen_to(&pen, pen_x(last), AFZ_REPORT_TALL);
                        pen_to(&pen, pen_x(i), AFZ_REPORT_TALL);
                }
                for (unsigned b = last; !floor_is_zero; b--) {
                        if (line->bucket[b].weight > 0)
                                pen_to(&pen, pen_x(b), pen_y(line->bucket[b].lo, most));
                        if (b == i)
                                break;
                }
                afz_out_char(out, 'z');
        }
}

void afz_report_plot_band(struct afz_out *out, const struct afz_report_line *line, double most,
                          const char *paint)
{
        const double visible = 0.004; /* of the height: less than a pixel */
        unsigned thick = 0;
        for (unsigned i = 0; i < AFZ_REPORT_BUCKETS; i++)
                thick += line->bucket[i].weight > 0 &&
                         line->bucket[i].hi - line->bucket[i].lo > visible * most;
        if (thick == 0)
                return;
        path_open(out, "band", paint);
        put_band(out, line, most, false);
        afz_out_str(out, "\"/>");
}

void afz_report_plot_area(struct afz_out *out, const struct afz_report_line *line, double most,
                          const char *paint)
{
        path_open(out, "area", paint);
        put_band(out, line, most, true);
        afz_out_str(out, "\"/>");
}

void afz_report_plot_layer(struct afz_out *out, const double *low, const double *high, double most,
                           const char *paint)
{
        enum { LAST = AFZ_REPORT_BUCKETS - 1 };
        struct pen pen = {.out = out};
        path_open(out, "layer", paint);
        pen_to(&pen, 0, pen_y(high[0], most));
        for (unsigned i = 0; i <= LAST; i++) {
                int y = pen_y(high[i], most);
                /* Along a level only its ends are told. */
                if (y != pen.y || (i < LAST && pen_y(high[i + 1], most) != y))
                        pen_to(&pen, pen_x(i), y);
        }
        pen_to(&pen, AFZ_REPORT_WIDE, pen_y(high[LAST], most));
        pen_to(&pen, AFZ_REPORT_WIDE, pen_y(low[LAST], most));
        for (unsigned i = LAST + 1; i-- > 0;) {
                int y = pen_y(low[i], most);
                if (y != pen.y || (i > 0 && pen_y(low[i - 1], most) != y))
                        pen_to(&pen, pen_x(i), y);
        }
        pen_to(&pen, 0, pen_y(low[0], most));
        afz_out_str(out, "z\"/>");
}
