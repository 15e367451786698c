/* Memory by kind: areas that lie upon one another over time, and a table for the highest moment. */
#include <math.h>
#include <stdio.h>

#include "count_of.h"
#include "report_parts.h"

static const char *const paint[] = {"k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"};

static const char *paint_of(unsigned kind)
{
        return paint[kind % AFZ_COUNT_OF(paint)];
}

/* Of the kinds before this one: where its layer begins. */
static double below(const struct afz_report_ledger *ledger, unsigned moment, unsigned kind)
{
        double sum = 0;
        for (unsigned k = 0; k < kind; k++)
                if (!ledger->kind[k].beside)
                        sum += (double)ledger->moment[moment].bytes[k];
        return sum;
}

static double sum_of(const struct afz_report_ledger *ledger, unsigned moment)
{
        return below(ledger, moment, ledger->kinds);
}

static unsigned highest(const struct afz_report_ledger *ledger)
{
        unsigned best = 0;
        for (unsigned m = 1; m < ledger->moments; m++)
                if (sum_of(ledger, m) > sum_of(ledger, best))
                        best = m;
        return best;
}

static void put_corner(struct afz_out *out, const struct afz_report_ledger *ledger, unsigned m,
                       double value, uint32_t end_ms, double most)
{
        double x = (double)AFZ_REPORT_WIDE * ledger->moment[m].t_ms / end_ms;
        afz_out_fmt(out, "%d %d ", (int)lround(fmin(x, AFZ_REPORT_WIDE)),
                    (int)lround(AFZ_REPORT_TALL * (1 - fmin(value / most, 1))));
}

/* From the kinds below it to itself on top of them. */
static void put_layer(struct afz_out *out, const struct afz_report_ledger *ledger, unsigned kind,
                      uint32_t end_ms, double most)
{
        afz_out_fmt(out, "<g id=\"ledger-%u\"><path class=\"layer %s\" d=\"M", kind,
                    paint_of(kind));
        for (unsigned m = 0; m < ledger->moments; m++)
                put_corner(out, ledger, m, below(ledger, m, kind + 1), end_ms, most);
        afz_out_char(out, 'L');
        for (unsigned m = ledger->moments; m-- > 0;)
                put_corner(out, ledger, m, below(ledger, m, kind), end_ms, most);
        afz_out_str(out, "z\"/></g>");
}

static void put_row(struct afz_out *out, const struct afz_report_ledger *ledger, unsigned kind,
                    unsigned peak)
{
        char value[AFZ_REPORT_TEXT_CAP], share[AFZ_REPORT_TEXT_CAP];
        double bytes = (double)ledger->moment[peak].bytes[kind], all = sum_of(ledger, peak);
        afz_out_fmt(out, "<tr data-s=\"ledger-%u\"><th scope=\"row\"><span class=\"key %s\">", kind,
                    ledger->kind[kind].beside ? "beside" : paint_of(kind));
        afz_report_text(out, ledger->kind[kind].name, 60);
        afz_out_str(out, "</span>");
        if (ledger->kind[kind].what && ledger->kind[kind].what[0]) {
                afz_out_str(out, "<small>");
                afz_report_text(out, ledger->kind[kind].what, 160);
                afz_out_str(out, "</small>");
        }
        afz_out_fmt(out,
                    "</th><td class=\"pk\">%s</td><td class=\"wh\">%s</td><td "
                    "class=\"now\"></td></tr>\n",
                    afz_report_value(value, AFZ_REPORT_BYTES, bytes),
                    ledger->kind[kind].beside
                            ? ""
                            : afz_report_value(share, AFZ_REPORT_PERCENT, bytes / all));
}

static bool is_there(const struct afz_report_ledger *ledger, unsigned kind)
{
        for (unsigned m = 0; m < ledger->moments; m++)
                if (ledger->moment[m].bytes[kind])
                        return true;
        return false;
}

static void put_table(struct afz_out *out, const struct afz_report_ledger *ledger, unsigned peak)
{
        char value[AFZ_REPORT_TEXT_CAP];
        afz_out_str(out,
                    "<table class=\"legend\"><thead><tr><th><span class=\"sr\">kind</span></th>"
                    "<th>at the peak</th><th>share</th><th "
                    "class=\"now\">here</th></tr></thead><tbody>\n");
        for (unsigned k = ledger->kinds; k-- > 0;) /* as they lie in the picture */
                if (is_there(ledger, k) && !ledger->kind[k].beside)
                        put_row(out, ledger, k, peak);
        afz_out_fmt(out,
                    "<tr class=\"sum\"><th scope=\"row\">all of it</th><td class=\"pk\">%s</td>"
                    "<td class=\"wh\">100 %%</td><td class=\"now\"></td></tr>\n",
                    afz_report_value(value, AFZ_REPORT_BYTES, sum_of(ledger, peak)));
        for (unsigned k = 0; k < ledger->kinds; k++)
                if (is_there(ledger, k) && ledger->kind[k].beside)
                        put_row(out, ledger, k, peak);
        afz_out_str(out, "</tbody></table>\n");
}

void afz_report_ledger_put(struct afz_out *out, const struct afz_report *report,
                           const struct afz_report_picture *picture)
{
        const struct afz_report_ledger *ledger = report->ledger;
        char value[AFZ_REPORT_TEXT_CAP], time[AFZ_REPORT_TEXT_CAP], words[200];
        if (!ledger || ledger->kinds == 0 || ledger->moments == 0)
                return;
        unsigned peak = highest(ledger);
        double all = sum_of(ledger, peak);
        if (!(all > 0))
                return;
        struct afz_report_frame frame = {.id = "ledger", .height = 320, .unit = AFZ_REPORT_BYTES};
        frame.step = afz_report_step(AFZ_REPORT_BYTES, all, 5);
        frame.most = ceil(all / frame.step - 0.001) * frame.step;
        afz_report_value(value, AFZ_REPORT_BYTES, all);
        afz_report_time(time, ledger->moment[peak].t_ms);
        snprintf(words, sizeof words,
                 "The job's memory by kind, over time. It was highest with %s after %s.", value,
                 time);
        afz_out_fmt(out,
                    "<section class=\"card\" id=\"ledger\"><h2>Where the memory went</h2>\n<p "
                    "class=\"dim\">All of "
                    "the job's memory by kind, nothing counted twice. The table is of the peak, "
                    "after %s.</p>\n"
                    "<figure class=\"panel\"><div class=\"row\">",
                    time);
        afz_report_plot_open(out, picture, &frame, words);
        for (unsigned k = 0; k < ledger->kinds; k++)
                if (is_there(ledger, k) && !ledger->kind[k].beside)
                        put_layer(out, ledger, k, picture->end_ms, frame.most);
        afz_report_plot_over(out, picture, &frame);
        afz_report_plot_close(out);
        put_table(out, ledger, peak);
        afz_out_str(out, "</div></figure></section>\n");
}
