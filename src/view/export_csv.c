/* Comma-separated values (RFC 4180), tidy: one reading of one metric a line. */
#include <string.h>

#include "export_parts.h"
#include "utf8.h"

/* A spreadsheet takes what begins so for a formula, and a process may be named as one. */
static const char formula[] = "=+-@";

/* Always valid UTF-8 without control characters, quoted where it must be. */
static void put_text(struct afz_out *out, const char *text)
{
        bool quote = strpbrk(text, ",\"") != NULL;
        if (quote)
                afz_out_char(out, '"');
        if (text[0] && strchr(formula, text[0]))
                afz_out_char(out, '\'');
        for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
                n = afz_utf8_length(text, left);
                unsigned char c = (unsigned char)*text;
                if (n == 0) {
                        n = 1;
                        afz_out_str(out, "\xef\xbf\xbd");
                } else if (c == '\n') {
                        afz_out_str(out, " | "); /* a row stays a line: not all read RFC 4180 */
                } else if (c < 0x20 || c == 0x7f) {
                        afz_out_char(out, '?');
                } else if (c == '"') {
                        afz_out_str(out, "\"\"");
                } else {
                        afz_out_bytes(out, text, n);
                }
        }
        if (quote)
                afz_out_char(out, '"');
}

static void put_value(struct afz_out *out, const struct afz_metric_info *metric, int64_t value)
{
        if (metric->unit == AFZ_UNIT_STATE && value > ' ' && value < 0x7f && value != '"')
                afz_out_char(out, (char)value);
        else
                afz_out_i64(out, value);
}

static void put_point(struct afz_out *out, const struct afz_metric_info *metric,
                      const struct afz_point *point)
{
        afz_out_char(out, ',');
        put_value(out, metric, point->mean);
        afz_out_char(out, ',');
        if (point->span_ms)
                put_value(out, metric, point->least);
        afz_out_char(out, ',');
        if (point->span_ms)
                put_value(out, metric, point->most);
        afz_out_char(out, '\n');
}

static void put_column(struct afz_out *out, const struct afz_track *track,
                       const struct afz_column *column)
{
        const struct afz_metric_info *metric = afz_export_metric(track, column);
        char id[AFZ_EXPORT_ID_CAP];
        if (!metric)
                return;
        afz_export_id(track, id);
        for (size_t i = 0; i < column->count; i++) {
                afz_export_seconds(out, column->point[i].t_ms);
                afz_out_char(out, ',');
                afz_out_str(out, afz_export_kind(track)->name);
                afz_out_char(out, ',');
                afz_out_str(out, id);
                afz_out_char(out, ',');
                put_text(out, track->name);
                afz_out_char(out, ',');
                afz_out_str(out, metric->name);
                put_point(out, metric, &column->point[i]);
        }
}

static void put_mark(struct afz_out *out, const struct afz_mark *mark)
{
        const char *kind = afz_export_mark_kind(mark);
        char name[AFZ_EXPORT_MARK_CAP];
        if (!kind)
                return;
        afz_export_seconds(out, mark->t_ms);
        afz_out_str(out, ",mark,");
        afz_out_str(out, kind);
        afz_out_char(out, ',');
        put_text(out, mark->text);
        afz_out_char(out, ',');
        put_text(out, afz_export_mark_name(mark, name));
        afz_out_char(out, ',');
        afz_out_i64(out, afz_export_mark_code(mark));
        afz_out_str(out, ",,\n");
}

void afz_export_csv(const struct afz_flight *flight, struct afz_out *out)
{
        afz_out_str(out, "t_s,kind,id,name,metric,value,min,max\n");
        for (size_t t = 0; t < flight->tracks; t++)
                for (size_t c = 0; c < flight->track[t].columns; c++)
                        put_column(out, &flight->track[t], &flight->track[t].column[c]);
        for (size_t m = 0; m < flight->marks; m++)
                put_mark(out, &flight->mark[m]);
}
