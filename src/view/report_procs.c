/* The process tree over time: who lived when, and how large each became. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_parts.h"
#include "role.h"
#include "secret.h"

/* The largest ones; the rest is counted. */
enum { ROWS = 24, DEEPEST = 8 };

struct row {
        const struct afz_track *track;
        const struct afz_column *memory;
        int64_t peak, ppid;
        uint32_t peak_ms;
        int depth;
        bool done;
};

struct tree {
        unsigned count;
        size_t all;
        struct row row[ROWS];
        unsigned order[ROWS], ordered;
};

/* Its share of the job's need; where that is not known, what is resident. */
static const struct afz_column *memory_of(const struct afz_track *track)
{
        static const enum afz_metric metrics[] = {AFZ_PROC_NEED, AFZ_PROC_PSS, AFZ_PROC_RSS_ANON,
                                                  AFZ_PROC_RSS};
        for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
                const struct afz_column *column = afz_track_column(track, metrics[i]);
                if (column && column->count)
                        return column;
        }
        return NULL;
}

static struct row row_of(const struct afz_track *track)
{
        const struct afz_column *ppid = afz_track_column(track, AFZ_PROC_PPID);
        struct row row = {.track = track,
                          .memory = memory_of(track),
                          .ppid = ppid && ppid->count ? ppid->point[0].mean : -1};
        for (size_t i = 0; row.memory && i < row.memory->count; i++) {
                if (row.memory->point[i].most <= row.peak)
                        continue;
                row.peak = row.memory->point[i].most;
                row.peak_ms = row.memory->point[i].t_ms;
        }
        return row;
}

static void keep(struct tree *tree, const struct row *row)
{
        unsigned at = tree->count;
        if (tree->count < ROWS) {
                tree->count++;
        } else {
                at = 0;
                for (unsigned i = 1; i < ROWS; i++)
                        if (tree->row[i].peak < tree->row[at].peak)
                                at = i;
                if (row->peak <= tree->row[at].peak)
                        return;
        }
        tree->row[at] = *row;
}

static bool is_child(const struct row *row, const struct row *of)
{
        return row->ppid == (int64_t)of->track->subject.id && row != of &&
               row->track->first_ms >= of->track->first_ms;
}

/* The one that came first among those that are a child of `of` (NULL: of none here). */
static struct row *next_child(struct tree *tree, const struct row *of)
{
        struct row *best = NULL;
        for (unsigned i = 0; i < tree->count; i++) {
                struct row *row = &tree->row[i];
                bool fits = of && is_child(row, of);
                for (unsigned k = 0; !of && k < tree->count && !fits; k++)
                        fits = is_child(row, &tree->row[k]);
                if (!of)
                        fits = !fits;
                if (row->done || !fits)
                        continue;
                if (!best || row->track->first_ms < best->track->first_ms ||
                    (row->track->first_ms == best->track->first_ms &&
                     row->track->subject.id < best->track->subject.id))
                        best = row;
        }
        return best;
}

static void order_below(struct tree *tree, struct row *row, int depth)
{
        row->done = true;
        row->depth = depth < DEEPEST ? depth : DEEPEST;
        tree->order[tree->ordered++] = (unsigned)(row - tree->row);
        for (struct row *child; (child = next_child(tree, row));)
                order_below(tree, child, depth + 1);
}

static void find_tree(struct tree *tree, const struct afz_flight *flight)
{
        const struct afz_track *track;
        struct row *root;
        for (size_t cursor = 0; (track = afz_flight_next(flight, AFZ_KIND_PROC, &cursor));) {
                struct row row = row_of(track);
                tree->all++;
                keep(tree, &row);
        }
        while ((root = next_child(tree, NULL)))
                order_below(tree, root, 0);
        for (unsigned i = 0; i < tree->count; i++) /* a circle of parents: somebody lies */
                if (!tree->row[i].done)
                        order_below(tree, &tree->row[i], 0);
}

static void put_life(struct afz_out *out, const struct row *row, uint32_t end_ms, double most)
{
        double from = (double)AFZ_REPORT_WIDE * row->track->first_ms / end_ms;
        double to = (double)AFZ_REPORT_WIDE * row->track->last_ms / end_ms;
        if (row->track->first_ms > row->track->last_ms)
                from = to = 0;
        if (to - from < 20)
                to = from + 20; /* two pixels, however short it was */
        afz_out_fmt(
                out,
                "<svg class=\"paths life\" width=\"100%%\" height=\"22\" viewBox=\"0 0 %d %d\" "
                "preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect x=\"%.0f\" width=\"%.0f\" "
                "height=\"%d\"/>",
                AFZ_REPORT_WIDE, AFZ_REPORT_TALL, from, to - from, AFZ_REPORT_TALL);
        struct afz_report_line *line = row->memory ? malloc(sizeof *line) : NULL;
        if (line) { /* without memory for it, the bar alone says when it lived */
                afz_report_line_init(line, end_ms);
                afz_report_line_gauge(line, row->memory, 0, 1);
                afz_report_plot_area(out, line, most, "c1");
        }
        free(line);
        afz_out_str(out, "</svg>");
}

static void put_row(struct afz_out *out, const struct row *row, uint32_t end_ms, double most)
{
        const struct afz_track *t = row->track;
        char value[AFZ_REPORT_TEXT_CAP], time[AFZ_REPORT_TEXT_CAP], from[AFZ_REPORT_TEXT_CAP];
        char detail[512];
        int64_t role = AFZ_ROLE_OTHER;
        uint32_t lived = t->last_ms > t->first_ms ? t->last_ms - t->first_ms : 0;

        (void)afz_column_last(afz_track_column(t, AFZ_PROC_ROLE), UINT32_MAX, &role);
        afz_out_fmt(out, "<tr><th scope=\"row\" class=\"d%d\"><span class=\"name\" title=\"",
                    row->depth);
        afz_report_text(out,
                        t->detail[0] ? afz_secret_text(t->detail, detail, sizeof detail) : t->name,
                        300);
        afz_out_str(out, "\">");
        afz_report_text(out, t->name, 40);
        afz_out_fmt(out, "</span> <small>%llu", (unsigned long long)t->subject.id);
        if (role > AFZ_ROLE_OTHER && role < AFZ_ROLE_COUNT)
                afz_out_fmt(out, " · %s", afz_role_name((enum afz_role)role));
        afz_out_str(out, "</small></th><td class=\"track\">");
        put_life(out, row, end_ms, most);
        if (row->memory)
                afz_report_value(value, AFZ_REPORT_BYTES, (double)row->peak);
        else
                snprintf(value, sizeof value, "–");
        afz_out_fmt(out,
                    "</td><td class=\"pk\">%s</td><td class=\"wh\">%s</td><td "
                    "class=\"wh\">%s</td></tr>\n",
                    value, afz_report_time(from, t->first_ms <= t->last_ms ? t->first_ms : 0),
                    afz_report_time(time, lived));
}

int afz_report_processes(struct afz_out *out, const struct afz_report *report,
                         const struct afz_report_picture *picture)
{
        struct tree *tree = calloc(1, sizeof *tree);
        double most = 1;
        if (!tree)
                return -ENOMEM;
        find_tree(tree, report->flight);
        for (unsigned i = 0; i < tree->count; i++)
                if ((double)tree->row[i].peak > most)
                        most = (double)tree->row[i].peak;
        if (tree->count) {
                afz_out_str(
                        out,
                        "<section class=\"card\" id=\"processes\"><h2>Processes</h2>\n<p "
                        "class=\"dim\">Who "
                        "lived when. The height is its share of the job's memory, on one scale for "
                        "all.</p>\n<div class=\"scroll\"><table "
                        "class=\"procs\"><thead><tr><th>process"
                        "</th><th></th><th>peak</th><th>began</th><th>lived</th></tr></"
                        "thead><tbody>\n");
                for (unsigned i = 0; i < tree->ordered; i++)
                        put_row(out, &tree->row[tree->order[i]], picture->end_ms, most);
                afz_out_str(out, "</tbody></table></div>\n");
                if (tree->all > tree->count)
                        afz_out_fmt(out, "<p class=\"dim\">The %u largest of %zu are shown.</p>\n",
                                    tree->count, tree->all);
                afz_out_str(out, "</section>\n");
        }
        free(tree);
        return 0;
}
