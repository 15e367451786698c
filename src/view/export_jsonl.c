/* JSON lines: the run, its subjects, what was read of each at one instant, and the marks. */
#include "export_parts.h"

static void put_type(struct afz_json *j, const char *type)
{
        afz_json_open(j, '{');
        afz_json_key(j, "type"), afz_json_str(j, type);
}

/* The object is on its line; the next has one of its own. */
static void end_line(struct afz_json *j)
{
        afz_json_close(j, '}');
        afz_out_char(j->out, '\n');
        j->comma = false;
}

static void put_subject(struct afz_json *j, const struct afz_track *track)
{
        char id[AFZ_EXPORT_ID_CAP];
        afz_json_key(j, "kind"), afz_json_str(j, afz_export_kind(track)->name);
        afz_json_key(j, "id"), afz_json_str(j, afz_export_id(track, id)[0] ? id : NULL);
        afz_json_key(j, "name"), afz_json_str(j, track->name[0] ? track->name : NULL);
}

static void put_seconds(struct afz_json *j, bool known, uint32_t ms)
{
        if (known)
                afz_json_double(j, ms / 1e3, 3);
        else
                afz_json_null(j);
}

static void put_track(struct afz_json *j, const struct afz_track *track)
{
        put_type(j, "subject");
        put_subject(j, track);
        afz_json_key(j, "detail"), afz_export_command(j, track->detail);
        afz_json_key(j, "note"), afz_json_str(j, track->note);
        bool seen = track->first_ms <= track->last_ms;
        afz_json_key(j, "first_s"), put_seconds(j, seen, track->first_ms);
        afz_json_key(j, "last_s"), put_seconds(j, seen, track->last_ms);
        end_line(j);
}

/* How far each column of a track is told. */
struct cursor {
        size_t columns, at[AFZ_METRICS_PER_KIND];
};

/* The next point of a column; NULL at its end, and of a metric that is not known. */
static const struct afz_point *point_of(const struct afz_track *track, const struct cursor *cursor,
                                        size_t c)
{
        const struct afz_column *column = &track->column[c];
        if (cursor->at[c] >= column->count || !afz_export_metric(track, column))
                return NULL;
        return &column->point[cursor->at[c]];
}

/* The instant that comes next. */
static const struct afz_point *earliest(const struct afz_track *track, const struct cursor *cursor)
{
        const struct afz_point *first = NULL;
        for (size_t c = 0; c < cursor->columns; c++) {
                const struct afz_point *p = point_of(track, cursor, c);
                if (p && (!first || p->t_ms < first->t_ms))
                        first = p;
        }
        return first;
}

static void put_value(struct afz_json *j, const struct afz_metric_info *metric, int64_t value)
{
        char letter[2] = {(char)value, '\0'};
        afz_json_key(j, metric->name);
        if (metric->unit == AFZ_UNIT_STATE && value > ' ' && value < 0x7f)
                afz_json_str(j, letter);
        else
                afz_json_i64(j, value);
}

/* One of "values", "min", "max" of the points at this instant. */
static void put_values(struct afz_json *j, const struct afz_track *track,
                       const struct cursor *cursor, const struct afz_point *now, const char *which)
{
        afz_json_key(j, which), afz_json_open(j, '{');
        for (size_t c = 0; c < cursor->columns; c++) {
                const struct afz_point *p = point_of(track, cursor, c);
                if (p && p->t_ms == now->t_ms && p->span_ms == now->span_ms)
                        put_value(j, afz_export_metric(track, &track->column[c]),
                                  which[0] == 'v'   ? p->mean
                                  : which[1] == 'i' ? p->least
                                                    : p->most);
        }
        afz_json_close(j, '}');
}

static void step(const struct afz_track *track, struct cursor *cursor, struct afz_point now)
{
        for (size_t c = 0; c < cursor->columns; c++) {
                const struct afz_point *p = point_of(track, cursor, c);
                if (p && p->t_ms == now.t_ms && p->span_ms == now.span_ms)
                        cursor->at[c]++;
        }
}

static void put_samples(struct afz_json *j, const struct afz_track *track)
{
        struct cursor cursor = {.columns = track->columns};
        const struct afz_point *now;
        if (cursor.columns > AFZ_METRICS_PER_KIND)
                cursor.columns = AFZ_METRICS_PER_KIND;
        while ((now = earliest(track, &cursor))) {
                put_type(j, "sample");
                afz_json_key(j, "t_s"), afz_json_double(j, now->t_ms / 1e3, 3);
                put_subject(j, track);
                if (now->span_ms)
                        afz_json_key(j, "span_s"), afz_json_double(j, now->span_ms / 1e3, 3);
                put_values(j, track, &cursor, now, "values");
                if (now->span_ms) {
                        put_values(j, track, &cursor, now, "min");
                        put_values(j, track, &cursor, now, "max");
                }
                end_line(j);
                step(track, &cursor, *now);
        }
}

static void put_mark(struct afz_json *j, const struct afz_mark *mark)
{
        char name[AFZ_EXPORT_MARK_CAP];
        put_type(j, "mark");
        afz_json_key(j, "t_s"), afz_json_double(j, mark->t_ms / 1e3, 3);
        afz_json_key(j, "mark"), afz_json_str(j, afz_export_mark_kind(mark));
        afz_json_key(j, "name"), afz_json_str(j, afz_export_mark_name(mark, name));
        afz_json_key(j, "code"), afz_json_i64(j, afz_export_mark_code(mark));
        afz_json_key(j, "text"), afz_json_str(j, mark->text);
        end_line(j);
}

void afz_export_jsonl(const struct afz_flight *flight, struct afz_out *out)
{
        struct afz_json j = {.out = out};
        put_type(&j, "run");
        afz_json_key(&j, "schema"), afz_json_u64(&j, 1);
        afz_export_head(&j, flight);
        end_line(&j);
        for (size_t t = 0; t < flight->tracks; t++)
                if (afz_export_kind(&flight->track[t]))
                        put_track(&j, &flight->track[t]);
        for (size_t t = 0; t < flight->tracks; t++)
                if (afz_export_kind(&flight->track[t]))
                        put_samples(&j, &flight->track[t]);
        for (size_t m = 0; m < flight->marks; m++)
                if (afz_export_mark_kind(&flight->mark[m]))
                        put_mark(&j, &flight->mark[m]);
}
