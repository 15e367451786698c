/* Where threads stood when nothing moved, or before the job was stopped. A stack is lines,
 * innermost first. */
#include <stdio.h>
#include <string.h>

#include "report_parts.h"

/* So many, and so much of each: enough for a loader with its workers. The last ones are told. */
enum { STACKS = 48, STACK_BYTES = 4000 };

static void put_lines(struct afz_out *out, const char *text)
{
        char line[400];
        size_t left = strnlen(text, STACK_BYTES);
        while (left > 0) {
                size_t n = strcspn(text, "\n");
                n = n < left ? n : left;
                snprintf(line, sizeof line, "%.*s", (int)n, text);
                afz_report_text(out, line, sizeof line);
                afz_out_char(out, '\n');
                text += n < left ? n + 1 : n;
                left -= n < left ? n + 1 : n;
        }
        if (*text)
                afz_out_str(out, "…\n");
}

static void put_stack(struct afz_out *out, const struct afz_flight *flight,
                      const struct afz_mark *mark)
{
        uint64_t code = (uint64_t)mark->code, pid = code >> 32, tid = code & UINT32_MAX;
        const struct afz_track *process = afz_flight_find(flight, AFZ_KIND_PROC, pid);
        char time[AFZ_REPORT_TEXT_CAP];
        afz_out_str(out, "<h3>");
        afz_report_text(out, process ? process->name : "process", 40);
        afz_out_fmt(out, " %llu", (unsigned long long)pid);
        if (tid != pid)
                afz_out_fmt(out, ", thread %llu", (unsigned long long)tid);
        bool picture = afz_mark_is_picture(mark);
        afz_out_fmt(out, " <span class=\"dim\">after %s%s</span></h3>\n<pre>",
                    afz_report_time(time, mark->t_ms),
                    picture ? ", held still by Antifreeze before it was asked to end" : "");
        put_lines(out, mark->text + (picture ? strlen(AFZ_STACK_FROZEN) : 0));
        afz_out_str(out, "</pre>\n");
}

void afz_report_stacks(struct afz_out *out, const struct afz_report *report)
{
        const struct afz_flight *flight = report->flight;
        size_t all = 0, seen = 0;
        for (size_t i = 0; i < flight->marks; i++)
                all += flight->mark[i].kind == AFZ_MARK_STACK;
        if (all == 0)
                return;
        afz_out_fmt(
                out,
                "<section class=\"card stacks\" id=\"stacks\"><h2>Where its threads stood</h2>\n"
                "<details><summary>%zu stacks</summary>\n",
                all);
        for (size_t i = 0; i < flight->marks; i++) {
                if (flight->mark[i].kind != AFZ_MARK_STACK)
                        continue;
                if (seen++ + STACKS >= all)
                        put_stack(out, flight, &flight->mark[i]);
        }
        if (all > STACKS)
                afz_out_fmt(out, "<p class=\"dim\">The last %d of %zu are shown.</p>\n", STACKS,
                            all);
        afz_out_str(out, "</details></section>\n");
}
