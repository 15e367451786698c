/* Which lines of the program held its memory at the peak. */
#include <stdio.h>
#include <string.h>

#include "report_parts.h"
#include "site_top.h"

/* Lines below this share of what was seen are left to the last row. */
#define LEAST_SHARE 0.005

static void put_stack(struct afz_out *out, const struct afz_flight *flight, uint64_t id)
{
        const char *stack = afz_site_stack(flight, id);
        if (!stack[0])
                return;
        afz_out_str(out, "<details><summary>the stack, innermost first</summary><pre>");
        while (*stack) {
                char line[400];
                size_t n = strcspn(stack, "\n");
                snprintf(line, sizeof line, "%.*s", (int)n, stack);
                afz_report_text(out, line, sizeof line);
                afz_out_char(out, '\n');
                stack += n + (stack[n] == '\n');
        }
        afz_out_str(out, "</pre></details>");
}

static void put_row(struct afz_out *out, const struct afz_report *report,
                    const struct afz_site_row *row, double all)
{
        char value[AFZ_REPORT_TEXT_CAP], share[AFZ_REPORT_TEXT_CAP];
        afz_out_str(out, "<tr><th scope=\"row\"><code>");
        afz_report_text(out, row->track->name, 120);
        afz_out_str(out, "</code>");
        put_stack(out, report->flight, row->track->subject.id);
        afz_out_fmt(out, "</th><td class=\"pk\">%s</td><td class=\"wh\">%s</td></tr>\n",
                    afz_report_value(value, AFZ_REPORT_BYTES, row->bytes),
                    afz_report_value(share, AFZ_REPORT_PERCENT, row->bytes / all));
}

void afz_report_sites(struct afz_out *out, const struct afz_report *report)
{
        struct afz_site_top top;
        char time[AFZ_REPORT_TEXT_CAP], value[AFZ_REPORT_TEXT_CAP], share[AFZ_REPORT_TEXT_CAP];
        uint32_t peak_ms;
        if (!afz_site_peak(report->flight, &peak_ms) ||
            !afz_site_top_at(report->flight, peak_ms, &top))
                return;
        afz_out_fmt(out,
                    "<section class=\"card sites\" id=\"sites\"><h2>Which lines held it</h2>\n<p "
                    "class=\"dim\">What was allocated at each line of the program and not freed, "
                    "when all of them together held most: after %s. Estimated from samples; from "
                    "1 MB on, blocks are counted.</p>\n"
                    "<table class=\"legend\"><thead><tr><th><span class=\"sr\">line</span></th>"
                    "<th>at the peak</th><th>share</th></tr></thead><tbody>\n",
                    afz_report_time(time, peak_ms));
        double told = 0;
        for (unsigned i = 0; i < top.rows; i++) {
                if (top.row[i].bytes < LEAST_SHARE * top.seen_bytes)
                        break;
                put_row(out, report, &top.row[i], top.seen_bytes);
                told += top.row[i].bytes;
        }
        if (told < top.seen_bytes)
                afz_out_fmt(out,
                            "<tr><th scope=\"row\">everywhere else</th><td class=\"pk\">%s</td><td "
                            "class=\"wh\">%s</td></tr>\n",
                            afz_report_value(value, AFZ_REPORT_BYTES, top.seen_bytes - told),
                            afz_report_value(share, AFZ_REPORT_PERCENT,
                                             (top.seen_bytes - told) / top.seen_bytes));
        afz_out_str(out, "</tbody></table></section>\n");
}
