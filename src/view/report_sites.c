/* Which lines of the program held its memory, at the peak and at the end. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report_parts.h"
#include "site_top.h"
#include "stacks.h"

/* Lines below this share of what was seen are left to the last row. */
#define LEAST_SHARE 0.005

/* How far a figure may be off is told from this part of it on. */
#define OFF_SHARE 0.05

/* Less than this of the job's need is not worth a word: the two are not of the same instant. */
#define UNSEEN_SHARE 0.03

/* ---- a line ---- */

/* As afz_site_top_at() adds them up. */
static double held(const struct afz_flight *flight, const struct afz_track *line, uint32_t t_ms)
{
        const struct afz_track *site;
        uint32_t to_ms = t_ms < UINT32_MAX ? t_ms + 1 : t_ms;
        double sum = 0;
        for (size_t at = 0; (site = afz_flight_next(flight, AFZ_KIND_SITE, &at));) {
                int64_t bytes;
                if (afz_site_same_line(site, line) &&
                    afz_column_last(afz_track_column(site, AFZ_SITE_LIVE), to_ms, &bytes) &&
                    bytes > 0)
                        sum += (double)bytes;
        }
        return sum;
}

static void put_stack(struct afz_out *out, const struct afz_flight *flight, uint64_t id)
{
        const char *stack = afz_site_stack(flight, id);
        if (!stack[0])
                return;
        afz_out_str(out, "<details><summary>the stack</summary><pre>");
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

/* "Python's own objects, in 4 processes, give or take 12 %" */
static void put_what(struct afz_out *out, const struct afz_report *report,
                     const struct afz_site_row *row, uint32_t t_ms)
{
        static const char *const kinds[AFZ_MEMORIES] = {
                [AFZ_MEMORY_MAPPED] = "mapped",
                [AFZ_MEMORY_OBJECTS] = "Python's own objects",
                [AFZ_MEMORY_PINNED] = "pinned for a GPU",
                [AFZ_MEMORY_SHARED] = "shared memory",
        };
        enum afz_site_memory kind = afz_site_memory_of(row->track);
        int64_t processes = 0;
        char text[160];
        uint32_t to_ms = t_ms < UINT32_MAX ? t_ms + 1 : t_ms;
        double off = afz_line_off(report->flight, row);
        int n = 0;
        (void)afz_column_last(afz_track_column(row->track, AFZ_SITE_PROCESSES), to_ms, &processes);
        text[0] = '\0';
        if (kinds[kind])
                n += snprintf(text, sizeof text, "%s", kinds[kind]);
        if (processes > 1)
                n += snprintf(text + n, sizeof text - (size_t)n, "%sin %lld processes",
                              n ? ", " : "", (long long)processes);
        if (off >= OFF_SHARE)
                snprintf(text + n, sizeof text - (size_t)n, "%sgive or take %.0f\u202f%%",
                         n ? ", " : "", 100 * off);
        if (text[0])
                afz_out_fmt(out, "<small>%s</small>", text);
}

/* ---- the table ---- */

struct table {
        const struct afz_report *report;
        uint32_t peak_ms, end_ms;
        double peak, end; /* bytes of all lines; end 0: not another instant */
        double told_peak, told_end;
};

static void put_figures(struct afz_out *out, const struct table *t, double peak, double end)
{
        char value[AFZ_REPORT_TEXT_CAP], share[AFZ_REPORT_TEXT_CAP];
        double part = t->peak > 0 ? fmin(peak / t->peak, 1) : 0;
        afz_out_fmt(out,
                    "<td class=\"pk\">%s</td><td class=\"share\"><svg class=\"meter\" "
                    "width=\"72\" height=\"8\" aria-hidden=\"true\"><rect class=\"all\" "
                    "width=\"72\" height=\"8\" rx=\"2\"/><rect class=\"part\" width=\"%.1f\" "
                    "height=\"8\" rx=\"2\"/></svg> <span>%s</span></td>",
                    afz_report_value(value, AFZ_REPORT_BYTES, peak), 72 * part,
                    afz_report_value(share, AFZ_REPORT_PERCENT, part));
        if (t->end > 0)
                afz_out_fmt(out, "<td class=\"pk\">%s</td>",
                            end >= 1 ? afz_report_value(value, AFZ_REPORT_BYTES, end) : "–");
        afz_out_str(out, "</tr>\n");
}

static void put_row(struct afz_out *out, struct table *t, const struct afz_site_row *row,
                    uint32_t t_ms)
{
        const struct afz_flight *flight = t->report->flight;
        double peak = held(flight, row->track, t->peak_ms);
        double end = t->end > 0 ? held(flight, row->track, t->end_ms) : 0;
        afz_out_str(out, "<tr><th scope=\"row\"><code>");
        afz_report_text(out, row->track->name, 120);
        afz_out_str(out, "</code>");
        put_what(out, t->report, row, t_ms);
        put_stack(out, flight, row->track->subject.id);
        afz_out_str(out, "</th>");
        put_figures(out, t, peak, end);
        t->told_peak += peak;
        t->told_end += end;
}

static bool is_told(const struct afz_site_top *top, const struct afz_track *line)
{
        for (unsigned i = 0; i < top->rows; i++)
                if (top->row[i].bytes >= LEAST_SHARE * top->seen_bytes &&
                    strcmp(top->row[i].track->name, line->name) == 0 &&
                    strcmp(top->row[i].track->detail, line->detail) == 0)
                        return true;
        return false;
}

static void put_rows(struct afz_out *out, struct table *t, const struct afz_site_top *peak,
                     const struct afz_site_top *end)
{
        for (unsigned i = 0; i < peak->rows; i++)
                if (peak->row[i].bytes >= LEAST_SHARE * peak->seen_bytes)
                        put_row(out, t, &peak->row[i], t->peak_ms);
        for (unsigned i = 0; t->end > 0 && i < end->rows; i++)
                if (end->row[i].bytes >= LEAST_SHARE * end->seen_bytes &&
                    !is_told(peak, end->row[i].track))
                        put_row(out, t, &end->row[i], t->end_ms);
        if (t->told_peak < t->peak || t->told_end < t->end) {
                afz_out_str(out, "<tr><th scope=\"row\">everywhere else</th>");
                put_figures(out, t, fmax(t->peak - t->told_peak, 0), fmax(t->end - t->told_end, 0));
        }
}

/* ---- the section ---- */

/* "of 4.1 GB that the job needed then the probe saw 3.8 GB" */
static void put_words(struct afz_out *out, const struct table *t)
{
        char seen[AFZ_REPORT_TEXT_CAP], all[AFZ_REPORT_TEXT_CAP], time[AFZ_REPORT_TEXT_CAP];
        int64_t need = afz_stacks_need(t->report->flight, t->peak_ms, t->peak);
        afz_report_time(time, t->peak_ms);
        afz_report_value(seen, AFZ_REPORT_BYTES, t->peak);
        afz_report_value(all, AFZ_REPORT_BYTES, (double)need);
        afz_out_fmt(out,
                    "<p class=\"dim\">What was allocated at each line of the program and not "
                    "freed. All of them together held most after %s: ",
                    time);
        if ((double)need > t->peak * (1 + UNSEEN_SHARE))
                afz_out_fmt(out,
                            "of the %s that the job needed then, the probe saw %s. The rest was "
                            "not asked for by the program's lines: the programs themselves, what "
                            "allocators keep, what the kernel holds for them, and processes that "
                            "it could not look into. ",
                            all, seen);
        else
                afz_out_fmt(out, "%s%s. ", seen,
                            need > 0 ? ", which is all that the job needed then" : "");
        afz_out_str(out, "Small blocks are sampled, and the figures so far estimates; blocks of "
                         "1 MB and more are counted. Behind each line is the stack of the "
                         "way to it that held most, innermost first.</p>\n");
}

static void put_table(struct afz_out *out, struct table *t, const struct afz_site_top *peak,
                      const struct afz_site_top *end)
{
        char time[AFZ_REPORT_TEXT_CAP];
        afz_out_str(out, "<div class=\"scroll\"><table class=\"lines\"><thead><tr><th>line</th>"
                         "<th>at the peak</th><th>share</th>");
        if (t->end > 0)
                afz_out_fmt(out, "<th>at the end, <wbr/>after %s</th>",
                            afz_report_time(time, t->end_ms));
        afz_out_str(out, "</tr></thead><tbody>\n");
        put_rows(out, t, peak, end);
        afz_out_str(out, "</tbody></table></div>\n");
}

void afz_report_sites(struct afz_out *out, const struct afz_report *report)
{
        const struct afz_flight *flight = report->flight;
        struct afz_site_top peak, end;
        struct table t = {.report = report};
        const char *probe = afz_site_probe(flight);
        if (!afz_site_peak(flight, &t.peak_ms) || !afz_site_top_at(flight, t.peak_ms, &peak))
                return;
        t.peak = peak.seen_bytes;
        if (afz_site_end(flight, &t.end_ms) && t.end_ms != t.peak_ms &&
            afz_site_top_at(flight, t.end_ms, &end))
                t.end = end.seen_bytes;
        afz_out_str(out,
                    "<section class=\"card sites\" id=\"sites\"><h2>Which lines held it</h2>\n");
        put_words(out, &t);
        put_table(out, &t, &peak, &end);
        if (probe[0]) {
                afz_out_str(out, "<p class=\"dim\">Of the probe: ");
                afz_report_text(out, probe, 600);
                afz_out_str(out, ".</p>\n");
        }
        afz_out_str(out, "</section>\n");
}
