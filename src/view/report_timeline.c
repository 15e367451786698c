/* The time line: a plot and a legend for each panel. */
#include <stdio.h>
#include <string.h>

#include "report_parts.h"

/* To say of more than this part of a run "look here" helps nobody. */
#define NEARLY_ALL 0.9

static void legend_row(struct afz_out *out, const struct afz_report_panel *panel, unsigned i)
{
        const struct afz_report_series *s = panel->series[i];
        char value[AFZ_REPORT_TEXT_CAP], time[AFZ_REPORT_TEXT_CAP];
        afz_out_fmt(out, "<tr data-s=\"%s-%u\"><th scope=\"row\"><span class=\"key %s\">",
                    panel->id, i, s->paint);
        afz_report_text(out, s->name, 70);
        afz_out_fmt(out, "</span></th><td class=\"pk\">%s</td>",
                    afz_report_value(value, panel->unit, s->line.peak));
        if (s->limit || s->line.peak <= 0)
                afz_out_str(out, "<td class=\"wh\"></td><td class=\"now\"></td></tr>\n");
        else
                afz_out_fmt(out, "<td class=\"wh\">%s</td><td class=\"now\"></td></tr>\n",
                            afz_report_time(time, s->line.peak_ms));
}

static void legend(struct afz_out *out, const struct afz_report_panel *panel)
{
        afz_out_fmt(out, "<table class=\"legend\"><thead><tr><th><span "
                         "class=\"sr\">line</span></th><th>peak</th>"
                         "<th>after</th><th class=\"now\">here</th></tr></thead><tbody>\n");
        for (unsigned i = 0; i < panel->count; i++)
                legend_row(out, panel, i);
        afz_out_str(out, "</tbody></table>\n");
}

/* "Memory of the job over 30 s. needed by the job: at most 3.9 GB after 28 s. budget: 4.0 GB." */
static void words_of(const struct afz_report_panel *panel, uint32_t end_ms, char *buf, size_t cap)
{
        char value[AFZ_REPORT_TEXT_CAP], time[AFZ_REPORT_TEXT_CAP];
        int at = snprintf(buf, cap, "%s over %s.", panel->title, afz_report_time(time, end_ms));
        for (unsigned i = 0; i < panel->count && at > 0 && (size_t)at < cap; i++) {
                const struct afz_report_series *s = panel->series[i];
                afz_report_value(value, panel->unit, s->line.peak);
                if (s->limit)
                        at += snprintf(buf + at, cap - (size_t)at, " %s: %s.", s->name, value);
                else
                        at += snprintf(buf + at, cap - (size_t)at, " %s: at most %s after %s.",
                                       s->name, value, afz_report_time(time, s->line.peak_ms));
        }
}

/* Areas that lie upon one another: the first is the lowest. */
static void layers(struct afz_out *out, const struct afz_report_panel *panel)
{
        double low[AFZ_REPORT_BUCKETS] = {0}, high[AFZ_REPORT_BUCKETS];
        for (unsigned i = 0; i < panel->count; i++) {
                const struct afz_report_series *s = panel->series[i];
                if (!s->stacked)
                        continue;
                for (unsigned b = 0; b < AFZ_REPORT_BUCKETS; b++)
                        high[b] = low[b] + s->line.bucket[b].mid;
                afz_out_fmt(out, "<g id=\"%s-%u\">", panel->id, i);
                afz_report_plot_layer(out, low, high, panel->most, s->paint);
                afz_out_str(out, "</g>");
                memcpy(low, high, sizeof low);
        }
}

static void paths(struct afz_out *out, const struct afz_report_panel *panel)
{
        layers(out, panel);
        for (unsigned i = panel->count; i-- > 0;) { /* the first lies on top */
                const struct afz_report_series *s = panel->series[i];
                if (s->stacked)
                        continue;
                afz_out_fmt(out, "<g id=\"%s-%u\">", panel->id, i);
                if (!s->limit && i == 0)
                        afz_report_plot_area(out, &s->line, panel->most, s->paint);
                if (!s->limit)
                        afz_report_plot_band(out, &s->line, panel->most, s->paint);
                afz_report_plot_line(out, &s->line, panel->most, s->paint);
                afz_out_str(out, "</g>");
        }
}

bool afz_report_range(const struct afz_report *report, uint32_t *ret_from_ms, uint32_t *ret_to_ms)
{
        const struct afz_verdict *v = &report->outcome->verdict[0];
        uint32_t end = report->flight->end_ms, to = v->to_ms < end ? v->to_ms : end;
        if (report->outcome->verdicts == 0 || v->from_ms >= to ||
            to - v->from_ms > end * NEARLY_ALL)
                return false;
        *ret_from_ms = v->from_ms;
        *ret_to_ms = to;
        return true;
}

static void put_panel(struct afz_out *out, const struct afz_report *report,
                      const struct afz_report_picture *picture,
                      const struct afz_report_panel *panel)
{
        struct afz_report_frame frame = {.id = panel->id,
                                         .height = panel->height,
                                         .unit = panel->unit,
                                         .most = panel->most,
                                         .step = panel->step};
        char words[1024];

        (void)afz_report_range(report, &frame.from_ms, &frame.to_ms);
        words_of(panel, picture->end_ms, words, sizeof words);
        afz_out_fmt(out,
                    "<figure class=\"panel\"><figcaption><h3>%s</h3> <span>%s</span></figcaption>\n"
                    "<div class=\"row\">",
                    panel->title, panel->what);
        afz_report_plot_open(out, picture, &frame, words);
        paths(out, panel);
        afz_report_plot_over(out, picture, &frame);
        for (unsigned i = 0; i < panel->count; i++)
                if (panel->series[i]->limit)
                        afz_report_plot_label(out, &frame, panel->series[i]->line.peak,
                                              panel->series[i]->name);
        afz_report_plot_close(out);
        legend(out, panel);
        afz_out_str(out, "</div></figure>\n");
}

void afz_report_timeline(struct afz_out *out, const struct afz_report *report,
                         const struct afz_report_picture *picture)
{
        if (picture->count == 0 && picture->events.count == 0) {
                afz_out_str(out, "<section class=\"card\"><h2>Time line</h2><p class=\"dim\">There "
                                 "is no recording "
                                 "of this run.</p></section>\n");
                return;
        }
        afz_out_str(
                out,
                "<section class=\"card\" id=\"timeline\"><div class=\"bar\"><h2>Time line</h2>"
                "<p class=\"hint needs-js\" hidden>Point at it for the values; drag to zoom, "
                "double-click to "
                "go back. <kbd>←</kbd> <kbd>→</kbd> <kbd>+</kbd> <kbd>−</kbd> <kbd>0</kbd> do the "
                "same.</p><button type=\"button\" id=\"reset\" hidden>Show all of "
                "it</button></div>\n"
                "<div class=\"row lane-row\">");
        afz_report_events_lane(out, &picture->events, picture->end_ms);
        afz_out_str(out, "<p id=\"clock\" aria-live=\"polite\"></p></div>\n");
        for (unsigned i = 0; i < picture->count; i++)
                put_panel(out, report, picture, &picture->panel[i]);
        afz_report_events_list(out, &picture->events);
        afz_out_str(out, "</section>\n");
}
