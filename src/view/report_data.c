/* What the script knows: the lines as whole numbers, with what one of them stands for. -1 is
 * "nothing known here". `hi` is how far the most lies above the mean, where it ever does. */
#include <math.h>

#include "json.h"
#include "report_parts.h"

/* A line is told with this fineness: more than one sees. */
#define FINE 4000.0

static const char *const unit_names[AFZ_REPORT_UNITS] = {
        [AFZ_REPORT_BYTES] = "bytes",     [AFZ_REPORT_PER_S] = "per_s",
        [AFZ_REPORT_PERCENT] = "percent", [AFZ_REPORT_CORES] = "cores",
        [AFZ_REPORT_SECONDS] = "seconds",
};

static void put_numbers(struct afz_json *j, const struct afz_report_line *line, double scale,
                        bool hi)
{
        afz_json_open(j, '[');
        for (unsigned i = 0; i < AFZ_REPORT_BUCKETS; i++) {
                const struct afz_report_bucket *b = &line->bucket[i];
                if (b->weight <= 0)
                        afz_json_i64(j, -1);
                else
                        afz_json_i64(j, lround((hi ? b->hi - b->mid : b->mid) / scale));
        }
        afz_json_close(j, ']');
}

static bool spreads(const struct afz_report_line *line, double scale)
{
        for (unsigned i = 0; i < AFZ_REPORT_BUCKETS; i++)
                if (line->bucket[i].weight > 0 && line->bucket[i].hi - line->bucket[i].mid > scale)
                        return true;
        return false;
}

static void put_series(struct afz_json *j, const struct afz_report_panel *panel, unsigned i)
{
        const struct afz_report_line *line = &panel->series[i]->line;
        double scale = line->peak > 0 ? line->peak / FINE : 1;
        char id[40];
        struct afz_out text = afz_out_to(-1, id, sizeof id - 1);

        afz_out_fmt(&text, "%s-%u", panel->id, i);
        id[text.len] = '\0';
        afz_json_open(j, '{');
        afz_json_key(j, "id"), afz_json_str(j, id);
        afz_json_key(j, "unit"), afz_json_str(j, unit_names[panel->unit]);
        afz_json_key(j, "scale"), afz_json_double(j, scale, -1);
        afz_json_key(j, "joint"), afz_json_u64(j, line->joint);
        if (panel->series[i]->stacked)
                afz_json_key(j, "stacked"), afz_json_bool(j, true);
        afz_json_key(j, "mid"), put_numbers(j, line, scale, false);
        if (spreads(line, scale))
                afz_json_key(j, "hi"), put_numbers(j, line, scale, true);
        afz_json_close(j, '}');
}

static void put_kind(struct afz_json *j, const struct afz_report_ledger *ledger, unsigned kind)
{
        const double scale = 65536;
        char id[] = "ledger-00";
        struct afz_out text = afz_out_to(-1, id + 7, 2);
        afz_out_u64(&text, kind);
        id[7 + text.len] = '\0';
        afz_json_open(j, '{');
        afz_json_key(j, "id"), afz_json_str(j, id);
        afz_json_key(j, "unit"), afz_json_str(j, "bytes");
        afz_json_key(j, "scale"), afz_json_double(j, scale, 0);
        afz_json_key(j, "at"), afz_json_open(j, '[');
        for (unsigned m = 0; m < ledger->moments; m++)
                afz_json_u64(j, ledger->moment[m].t_ms);
        afz_json_close(j, ']');
        afz_json_key(j, "mid"), afz_json_open(j, '[');
        for (unsigned m = 0; m < ledger->moments; m++)
                afz_json_i64(j, lround((double)ledger->moment[m].bytes[kind] / scale));
        afz_json_close(j, ']');
        afz_json_close(j, '}');
}

void afz_report_data(struct afz_out *out, const struct afz_report *report,
                     const struct afz_report_picture *picture)
{
        struct afz_json j = {.out = out};
        afz_out_str(out, "<script type=\"application/json\" id=\"data\">");
        afz_json_open(&j, '{');
        afz_json_key(&j, "end_ms"), afz_json_u64(&j, picture->end_ms);
        afz_json_key(&j, "started_s"), afz_json_i64(&j, report->started_s);
        afz_json_key(&j, "run");
        afz_report_json_text(out, report->run, 64);
        j.comma = true;
        afz_json_key(&j, "series"), afz_json_open(&j, '[');
        for (unsigned p = 0; p < picture->count; p++)
                for (unsigned i = 0; i < picture->panel[p].count; i++)
                        put_series(&j, &picture->panel[p], i);
        for (unsigned k = 0; report->ledger && k < report->ledger->kinds; k++)
                put_kind(&j, report->ledger, k);
        afz_json_close(&j, ']');
        afz_json_close(&j, '}');
        afz_out_str(out, "</script>\n");
}
