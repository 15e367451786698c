/* What the memory was for: a table for the host and one for GPU memory, at the peak and at the end;
 * and what was adapted on the way. */
#include <stdio.h>

#include "report_parts.h"

static void put_row(struct afz_out *out, const struct afz_report_uses_of *place, unsigned i)
{
        char peak[AFZ_REPORT_TEXT_CAP], share[AFZ_REPORT_TEXT_CAP], end[AFZ_REPORT_TEXT_CAP];
        afz_out_str(out, "<tr><th scope=\"row\">");
        afz_report_text(out, place->row[i].name, 60);
        afz_out_str(out, "<small>");
        afz_report_text(out, place->row[i].what, 160);
        afz_out_fmt(out, "</small></th><td>%s</td><td>%s</td><td>%s</td></tr>\n",
                    place->has_peak ? afz_report_value(peak, AFZ_REPORT_BYTES,
                                                       (double)place->row[i].peak_bytes)
                                    : "–",
                    place->has_peak && place->peak_bytes
                            ? afz_report_value(share, AFZ_REPORT_PERCENT,
                                               (double)place->row[i].peak_bytes /
                                                       (double)place->peak_bytes)
                            : "",
                    place->has_end ? afz_report_value(end, AFZ_REPORT_BYTES,
                                                      (double)place->row[i].end_bytes)
                                   : "–");
}

static void put_place(struct afz_out *out, const struct afz_report_uses_of *place, bool gpu,
                      bool named)
{
        char peak[AFZ_REPORT_TEXT_CAP], end[AFZ_REPORT_TEXT_CAP];
        if (place->rows == 0)
                return;
        if (named)
                afz_out_fmt(out, "<h3>%s</h3>\n", gpu ? "GPU memory" : "Main memory");
        afz_out_str(out, "<div class=\"scroll\"><table class=\"uses\"><thead><tr><th><span "
                         "class=\"sr\">purpose</span></th><th>at the peak</th><th>share</th><th>at "
                         "the end</th></tr></thead><tbody>\n");
        for (unsigned i = 0; i < place->rows; i++)
                put_row(out, place, i);
        afz_out_fmt(out,
                    "<tr class=\"sum\"><th scope=\"row\">all of it</th><td>%s</td><td></td>"
                    "<td>%s</td></tr>\n</tbody></table></div>\n",
                    place->has_peak
                            ? afz_report_value(peak, AFZ_REPORT_BYTES, (double)place->peak_bytes)
                            : "–",
                    place->has_end
                            ? afz_report_value(end, AFZ_REPORT_BYTES, (double)place->end_bytes)
                            : "–");
}

void afz_report_uses_put(struct afz_out *out, const struct afz_report *report)
{
        const struct afz_report_uses *uses = report->uses;
        if (!uses || (uses->of[0].rows == 0 && uses->of[1].rows == 0 && !uses->adapted[0]))
                return;
        afz_out_str(out, "<section class=\"card\" id=\"uses\"><h2>What the memory was for</h2>\n");
        if (uses->of[0].rows || uses->of[1].rows)
                afz_out_str(out, "<p class=\"dim\">As the program's framework tells it.</p>\n");
        if (uses->adapted[0]) {
                afz_out_str(out, "<p><strong>Adapted:</strong> ");
                afz_report_text(out, uses->adapted, sizeof uses->adapted);
                afz_out_str(out, ".</p>\n");
        }
        for (int gpu = 0; gpu < 2; gpu++)
                put_place(out, &uses->of[gpu], gpu, uses->of[0].rows && uses->of[1].rows);
        afz_out_str(out, "</section>\n");
}
