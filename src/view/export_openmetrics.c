/* OpenMetrics text, with the times of the readings: for Prometheus and its kin. A family is one
 * metric of one kind of subject, in base units; all its series stand together, each by time. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "count_of.h"
#include "export_parts.h"
#include "secret.h"
#include "utf8.h"

enum { NAME_CAP = 128 };

/* How a unit of ours is told: seconds for ns, and the like. */
static const struct unit {
        const char *ours, *base; /* how names end; base NULL: no unit */
        unsigned decimals;       /* that a base unit has more digits */
        bool absent;             /* cannot be told: a letter */
} units[AFZ_UNITS] = {
        [AFZ_UNIT_BYTES] = {"bytes", "bytes", 0, false},
        [AFZ_UNIT_NS] = {"ns", "seconds", 9, false},
        [AFZ_UNIT_COUNT] = {"count", NULL, 0, false},
        [AFZ_UNIT_PERMYRIAD] = {"permyriad", "ratio", 4, false},
        [AFZ_UNIT_HUNDREDTHS] = {"hundredths", NULL, 2, false},
        [AFZ_UNIT_HZ] = {"hz", "hertz", 0, false},
        [AFZ_UNIT_MILLICELSIUS] = {"millicelsius", "celsius", 3, false},
        [AFZ_UNIT_MILLIWATTS] = {"milliwatts", "watts", 3, false},
        [AFZ_UNIT_MICROJOULES] = {"microjoules", "joules", 6, false},
        [AFZ_UNIT_BYTES_PER_S] = {"bytes_per_s", "bytes_per_second", 0, false},
        [AFZ_UNIT_BITS_PER_S] = {"bits_per_s", "bits_per_second", 0, false},
        [AFZ_UNIT_FLAG] = {"flag", NULL, 0, false},
        [AFZ_UNIT_STATE] = {"", NULL, 0, true},
        [AFZ_UNIT_CODE] = {"", NULL, 0, false},
};

/* Old points stand for a span: its mean, and beside it the least and the most. */
enum part { MEAN, LEAST, MOST, PARTS };

struct family {
        enum afz_kind kind;
        const struct afz_metric_info *metric;
        const struct unit *unit;
        enum part part;
        char name[NAME_CAP];
};

/* "antifreeze_hold_need_bytes", "..._need_highest_bytes"; without "_count" and "_flag", which say
 * something else here. */
static void name_family(struct family *f)
{
        static const char *const part[PARTS] = {
                [MEAN] = "", [LEAST] = "_lowest", [MOST] = "_highest"};
        struct afz_span stem = afz_span_str(f->metric->name);
        size_t cut = strlen(f->unit->ours);
        if (cut > 0 && stem.n > cut + 1 && afz_span_ends(stem, f->unit->ours) &&
            stem.p[stem.n - cut - 1] == '_')
                stem.n -= cut + 1;
        /* "_total" is for counters alone. */
        const char *total =
                f->metric->type != AFZ_COUNTER && afz_span_ends(stem, "_total") && !f->unit->base
                        ? "_number"
                        : "";
        snprintf(f->name, sizeof f->name, "antifreeze_%s_%.*s%s%s%s%s",
                 afz_kind_table[f->kind].name, (int)stem.n, stem.p, total, part[f->part],
                 f->unit->base ? "_" : "", f->unit->base ? f->unit->base : "");
}

/* Of a label or of help: quotes, backslashes and newlines are escaped, all else is UTF-8. */
static void put_escaped(struct afz_out *out, const char *text)
{
        for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
                n = afz_utf8_length(text, left);
                if (n == 0) {
                        n = 1;
                        afz_out_str(out, "\xef\xbf\xbd");
                } else if (*text == '\n') {
                        afz_out_str(out, "\\n");
                } else if (*text == '"' || *text == '\\') {
                        afz_out_char(out, '\\');
                        afz_out_char(out, *text);
                } else if ((unsigned char)*text < 0x20 || *text == 0x7f) {
                        afz_out_char(out, '?');
                } else {
                        afz_out_bytes(out, text, n);
                }
        }
}

static void put_label(struct afz_out *out, char before, const char *name, const char *value)
{
        afz_out_char(out, before);
        afz_out_str(out, name);
        afz_out_str(out, "=\"");
        put_escaped(out, value);
        afz_out_char(out, '"');
}

static void put_time(struct afz_out *out, const struct afz_flight *flight, uint32_t t_ms)
{
        int64_t ms;
        afz_out_char(out, ' ');
        if (__builtin_mul_overflow(flight->head.started_s, 1000, &ms) ||
            __builtin_add_overflow(ms, t_ms, &ms))
                ms = t_ms;
        afz_export_decimal(out, ms, 3);
        afz_out_char(out, '\n');
}

static void put_about(struct afz_out *out, const char *family, const char *type, const char *unit,
                      const char *help)
{
        afz_out_fmt(out, "# TYPE %s %s\n", family, type);
        if (unit)
                afz_out_fmt(out, "# UNIT %s %s\n", family, unit);
        afz_out_fmt(out, "# HELP %s ", family);
        put_escaped(out, help);
        afz_out_char(out, '\n');
}

static void put_labels(struct afz_out *out, const struct afz_flight *flight,
                       const struct afz_track *track)
{
        char id[AFZ_EXPORT_ID_CAP], start[24];
        afz_export_id(track, id);
        /* Two series never have the same labels, whatever a recording says. */
        if (!id[0] && track->subject.id)
                snprintf(id, sizeof id, "%" PRIu64, track->subject.id);
        put_label(out, '{', "run", flight->head.run);
        if (id[0])
                put_label(out, ',', "id", id);
        /* A pid that is used again is another process. */
        if (track->subject.start) {
                snprintf(start, sizeof start, "%" PRIu64, track->subject.start);
                put_label(out, ',', "start", start);
        }
        if (track->name[0])
                put_label(out, ',', "name", track->name);
        afz_out_char(out, '}');
}

/* Whether a point is told in this family. A series has one value a time, and a counter none below
 * zero. */
static bool tells(const struct family *f, const struct afz_point *p, const struct afz_point *before)
{
        if (before && p->t_ms <= before->t_ms)
                return false;
        if (f->metric->type == AFZ_COUNTER)
                return p->mean >= 0;
        return f->part == MEAN || p->span_ms > 0;
}

static void put_series(struct afz_out *out, const struct afz_flight *flight, const struct family *f,
                       const struct afz_track *track, const struct afz_column *column)
{
        const struct afz_point *before = NULL;
        for (size_t i = 0; i < column->count; i++) {
                const struct afz_point *p = &column->point[i];
                if (!tells(f, p, before))
                        continue;
                before = p;
                afz_out_str(out, f->name);
                if (f->metric->type == AFZ_COUNTER)
                        afz_out_str(out, "_total");
                put_labels(out, flight, track);
                afz_out_char(out, ' ');
                afz_export_decimal(out,
                                   f->part == LEAST  ? p->least
                                   : f->part == MOST ? p->most
                                                     : p->mean,
                                   f->unit->decimals);
                put_time(out, flight, p->t_ms);
        }
}

static bool has_any(const struct family *f, const struct afz_column *column)
{
        for (size_t i = 0; column && i < column->count; i++)
                if (tells(f, &column->point[i], NULL))
                        return true;
        return false;
}

static void put_family(struct afz_out *out, const struct afz_flight *flight, const struct family *f)
{
        const struct afz_track *track;
        bool any = false;
        for (size_t cursor = 0; (track = afz_flight_next(flight, f->kind, &cursor));) {
                const struct afz_column *column = afz_track_column(track, f->metric->id);
                if (!has_any(f, column))
                        continue;
                if (!any)
                        put_about(out, f->name,
                                  f->metric->type == AFZ_COUNTER ? "counter" : "gauge",
                                  f->unit->base, f->metric->meaning);
                any = true;
                put_series(out, flight, f, track, column);
        }
}

static bool is_mark(const struct afz_mark *mark, const char *kind, const char *name)
{
        const char *own = afz_export_mark_kind(mark);
        char buf[AFZ_EXPORT_MARK_CAP];
        return own && strcmp(own, kind) == 0 &&
               (!name || strcmp(afz_export_mark_name(mark, buf), name) == 0);
}

/* How often something has happened so far; one series for each kind of mark and what of it. */
static void put_count(struct afz_out *out, const struct afz_flight *flight, const char *kind,
                      const char *name)
{
        const struct afz_mark *last = NULL;
        uint64_t n = 0;
        for (size_t i = 0; i <= flight->marks; i++) {
                const struct afz_mark *mark = i < flight->marks ? &flight->mark[i] : NULL;
                if (mark && !is_mark(mark, kind, name))
                        continue;
                /* One value a time: of those that came together, the last. */
                if (last && (!mark || mark->t_ms != last->t_ms)) {
                        afz_out_str(out, "antifreeze_marks_total");
                        put_label(out, '{', "run", flight->head.run);
                        put_label(out, ',', "mark", kind);
                        put_label(out, ',', "name", name ? name : kind);
                        afz_out_fmt(out, "} %" PRIu64, n);
                        put_time(out, flight, last->t_ms);
                }
                last = mark;
                n++;
        }
}

static void put_marks(struct afz_out *out, const struct afz_flight *flight)
{
        static const char *const others[] = {"said", "attempt", "step", "gap"};
        put_about(out, "antifreeze_marks", "counter", NULL, "what has happened so far");
        for (int i = 0; i < AFZ_EVENT_COUNT; i++)
                put_count(out, flight, "event", afz_event_name((enum afz_event_kind)i));
        for (int i = 0; i < AFZ_ACTION_COUNT; i++)
                put_count(out, flight, "action", afz_action_name((enum afz_action)i));
        for (size_t i = 0; i < AFZ_COUNT_OF(others); i++)
                put_count(out, flight, others[i], NULL);
}

static void put_run(struct afz_out *out, const struct afz_flight *flight)
{
        const struct afz_flight_head *head = &flight->head;
        char cmd[1024];
        put_about(out, "antifreeze_run", "info", NULL, "the run that was recorded");
        afz_out_str(out, "antifreeze_run_info");
        put_label(out, '{', "run", head->run);
        put_label(out, ',', "host", head->host);
        put_label(out, ',', "cmd", afz_secret_text(head->cmd ? head->cmd : "", cmd, sizeof cmd));
        put_label(out, ',', "git", head->git ? head->git : "");
        afz_out_str(out, "} 1");
        put_time(out, flight, 0);
}

void afz_export_openmetrics(const struct afz_flight *flight, struct afz_out *out)
{
        put_run(out, flight);
        for (int k = AFZ_KIND_NONE + 1; k < AFZ_KIND_COUNT; k++)
                for (unsigned m = 0; m < afz_kind_table[k].metrics; m++) {
                        struct family f = {.kind = (enum afz_kind)k,
                                           .metric = &afz_kind_table[k].metric[m]};
                        f.unit = &units[f.metric->unit];
                        int parts = f.metric->type == AFZ_COUNTER ? 1 : PARTS;
                        for (int part = MEAN; part < parts && !f.unit->absent; part++) {
                                f.part = (enum part)part;
                                name_family(&f);
                                put_family(out, flight, &f);
                        }
                }
        put_marks(out, flight);
        afz_out_str(out, "# EOF\n");
}
