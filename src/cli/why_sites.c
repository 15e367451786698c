#include "why_sites.h"

#include <stdio.h>
#include <string.h>

#include "quantity.h"
#include "run.h"
#include "site_top.h"
#include "span.h"
#include "stacks.h"

enum { FEW_ROWS = 3, FULL_ROWS = 8, STACK_LINES = 12 };

/* Less than this of what was seen is not worth a line. */
#define LEAST_SHARE 0.02

/* How far a figure may be off is told from this part of it on. */
#define OFF_SHARE 0.05

/* At the end much the same is held as at the peak: not told twice. */
#define SAME_SHARE 0.9

/* The job's need and its lines are not read at the same instant: less than this is no difference.
 */
#define UNSEEN_SHARE 0.03

/* "200M   26 %  train.py:42 in main()", with how far it may be off where that is much. */
static void put_row(struct afz_out *out, const struct afz_flight *flight,
                    const struct afz_site_row *row, double share)
{
        char size[AFZ_SIZE_TEXT_CAP], text[200], off_text[40] = "";
        double off = afz_line_off(flight, row);
        if (off >= OFF_SHARE)
                snprintf(off_text, sizeof off_text, ", give or take %.0f %%", 100 * off);
        afz_format_size(size, sizeof size, (uint64_t)row->bytes);
        snprintf(text, sizeof text, "%6s %4.0f %%  %s%s", size, 100 * share, row->track->name,
                 off_text);
        afz_run_put_row(out, "", text);
}

/* "of the 4.1G that it needed at its peak the probe saw 3.8G:" */
static void put_head(struct afz_out *out, const struct afz_flight *flight,
                     const struct afz_site_top *top, const char *when)
{
        char seen[AFZ_SIZE_TEXT_CAP], all[AFZ_SIZE_TEXT_CAP], text[160];
        int64_t need = afz_stacks_need(flight, top->t_ms, top->seen_bytes);
        afz_format_size(seen, sizeof seen, (uint64_t)top->seen_bytes);
        if ((double)need > top->seen_bytes * (1 + UNSEEN_SHARE))
                snprintf(text, sizeof text, "of the %s that it needed %s the probe saw %s:",
                         afz_format_size(all, sizeof all, (uint64_t)need), when, seen);
        else
                snprintf(text, sizeof text, "of the %s that its lines held %s:", seen, when);
        afz_run_put_row(out, "memory", text);
}

static void put_top(struct afz_out *out, const struct afz_flight *flight,
                    const struct afz_site_top *top, const char *when, unsigned most)
{
        double told = 0;
        char size[AFZ_SIZE_TEXT_CAP], text[160];
        put_head(out, flight, top, when);
        for (unsigned i = 0; i < top->rows && i < most; i++) {
                double share = top->row[i].bytes / top->seen_bytes;
                if (share < LEAST_SHARE && i > 0)
                        break;
                put_row(out, flight, &top->row[i], share);
                told += top->row[i].bytes;
        }
        double rest = top->seen_bytes - told;
        if (rest < LEAST_SHARE * top->seen_bytes)
                return;
        snprintf(text, sizeof text, "%6s %4.0f %%  everywhere else",
                 afz_format_size(size, sizeof size, (uint64_t)rest), 100 * rest / top->seen_bytes);
        afz_run_put_row(out, "", text);
}

/* The frames behind the line that holds most: who called it is often what is to be changed. */
static void put_stack(struct afz_out *out, const struct afz_flight *flight,
                      const struct afz_site_top *top)
{
        struct afz_span text = afz_span_str(afz_site_stack(flight, top->row[0].track->subject.id));
        unsigned lines = 0;
        while (text.n > 0 && lines < STACK_LINES) {
                const char *end = memchr(text.p, '\n', text.n);
                size_t n = end ? (size_t)(end - text.p) : text.n;
                char line[160];
                snprintf(line, sizeof line, "%s %.*s", lines == 0 ? "" : " <-", (int)n, text.p);
                afz_run_put_row(out, lines == 0 ? "its stack" : "", line);
                n += end != NULL;
                text = (struct afz_span){text.p + n, text.n - n};
                lines++;
        }
}

void afz_why_sites(struct afz_out *out, const struct afz_flight *flight, bool full)
{
        struct afz_site_top peak, end;
        uint32_t peak_ms, end_ms;
        bool known = afz_site_peak(flight, &peak_ms) && afz_site_top_at(flight, peak_ms, &peak);
        if (known)
                put_top(out, flight, &peak, "at its peak", full ? FULL_ROWS : FEW_ROWS);
        if (full && known && afz_site_end(flight, &end_ms) &&
            afz_site_top_at(flight, end_ms, &end) && end.seen_bytes < SAME_SHARE * peak.seen_bytes)
                put_top(out, flight, &end, "at the end", FULL_ROWS);
        if (!full)
                return;
        if (known)
                put_stack(out, flight, &peak);
        const char *probe = afz_site_probe(flight);
        if (known || probe[0])
                afz_run_put_row(out, "probe", probe[0] ? probe : "its last word is missing");
}
