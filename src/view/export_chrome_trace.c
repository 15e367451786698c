/* The trace event format of Chrome, which Perfetto opens: a row of counters for each subject, a bar
 * for the life of each process and for each brake, and a flag for what happened.
 *
 * Everything in that format belongs to a process. The job's have their own numbers; the machine,
 * the job as a whole and the devices get numbers beyond those that Linux gives. */
#include <inttypes.h>
#include <stdio.h>

#include "export_parts.h"

/* Linux counts processes up to 2^22. Marks and brakes have a row each: flags on a bar are not seen.
 */
enum { FIRST_MADE_UP = 1 << 23, BRAKES = FIRST_MADE_UP - 1 };

static uint64_t pid_of(const struct afz_flight *flight, const struct afz_track *track)
{
        if (track->subject.kind == AFZ_KIND_PROC)
                return track->subject.id & UINT32_MAX;
        return FIRST_MADE_UP + (uint64_t)(track - flight->track) + 1;
}

/* An event with what all have; the caller adds to it and closes it. */
static void open_event_of(struct afz_json *j, const char *phase, uint64_t pid, uint64_t tid,
                          uint32_t t_ms, const char *name)
{
        afz_json_open(j, '{');
        afz_json_key(j, "ph"), afz_json_str(j, phase);
        afz_json_key(j, "pid"), afz_json_u64(j, pid);
        afz_json_key(j, "tid"), afz_json_u64(j, tid);
        afz_json_key(j, "ts"), afz_json_u64(j, (uint64_t)t_ms * 1000);
        afz_json_key(j, "name"), afz_json_str(j, name);
}

static void open_event(struct afz_json *j, const char *phase, uint64_t pid, uint32_t t_ms,
                       const char *name)
{
        open_event_of(j, phase, pid, pid, t_ms, name);
}

static void put_name(struct afz_json *j, uint64_t pid, uint64_t tid, const char *what,
                     const char *name)
{
        open_event_of(j, "M", pid, tid, 0, what);
        afz_json_key(j, "args"), afz_json_open(j, '{');
        afz_json_key(j, "name"), afz_json_str(j, name);
        afz_json_close(j, '}');
        afz_json_close(j, '}');
}

static void put_order(struct afz_json *j, uint64_t pid, uint64_t place)
{
        open_event(j, "M", pid, 0, "process_sort_index");
        afz_json_key(j, "args"), afz_json_open(j, '{');
        afz_json_key(j, "sort_index"), afz_json_u64(j, place);
        afz_json_close(j, '}');
        afz_json_close(j, '}');
}

/* "the job as its guard sees it", "disk vda", "python3". */
static void name_track(struct afz_json *j, const struct afz_flight *flight,
                       const struct afz_track *track)
{
        const struct afz_kind_info *kind = afz_export_kind(track);
        char text[160], id[AFZ_EXPORT_ID_CAP];
        uint64_t pid = pid_of(flight, track);
        if (track->subject.kind == AFZ_KIND_PROC)
                snprintf(text, sizeof text, "%.100s", track->name[0] ? track->name : "process");
        else if (track->subject.kind == AFZ_KIND_SELF && track->name[0]) /* guard, scout, writer */
                snprintf(text, sizeof text, "%s: %.40s", kind->what, track->name);
        else if (!kind->plural)
                snprintf(text, sizeof text, "%s", kind->what);
        else
                snprintf(text, sizeof text, "%s %.100s", kind->name,
                         track->name[0] ? track->name : afz_export_id(track, id));
        put_name(j, pid, pid, "process_name", text);
        /* The guard's looks and the machine first, then the job, then devices. */
        put_order(j, pid, track->subject.kind == AFZ_KIND_HOLD ? 0 : track->subject.kind);
}

static void put_counter(struct afz_json *j, uint64_t pid, uint32_t t_ms, const char *name)
{
        open_event(j, "C", pid, t_ms, name);
        afz_json_key(j, "args"), afz_json_open(j, '{');
        afz_json_key(j, "value");
}

static void close_counter(struct afz_json *j)
{
        afz_json_close(j, '}');
        afz_json_close(j, '}');
}

static void put_gauge(struct afz_json *j, uint64_t pid, const struct afz_metric_info *metric,
                      const struct afz_column *column)
{
        char most[96];
        snprintf(most, sizeof most, "%s (most)", metric->name);
        for (size_t i = 0; i < column->count; i++) {
                const struct afz_point *p = &column->point[i];
                if (metric->type == AFZ_FACT && i > 0 && p->mean == p[-1].mean)
                        continue;
                put_counter(j, pid, p->t_ms, metric->name), afz_json_i64(j, p->mean);
                close_counter(j);
                /* A mean hides the peak that one looks for. */
                if (p->span_ms == 0 || p->most == p->mean)
                        continue;
                put_counter(j, pid, p->t_ms, most), afz_json_i64(j, p->most);
                close_counter(j);
        }
}

/* A counter only ever grows: its rate is what one wants to see. */
static void put_rate(struct afz_json *j, uint64_t pid, const struct afz_metric_info *metric,
                     const struct afz_column *column)
{
        char name[96];
        snprintf(name, sizeof name, "%s/s", metric->name);
        for (size_t i = 1; i < column->count; i++) {
                const struct afz_point *a = &column->point[i - 1], *b = &column->point[i];
                if (b->t_ms <= a->t_ms || b->mean < a->mean)
                        continue; /* it was reset */
                double grown = (double)b->mean - (double)a->mean;
                put_counter(j, pid, a->t_ms, name);
                afz_json_double(j, grown * 1e3 / (b->t_ms - a->t_ms), 3);
                close_counter(j);
        }
}

static void put_life(struct afz_json *j, uint64_t pid, const struct afz_track *track)
{
        if (track->subject.kind != AFZ_KIND_PROC || track->first_ms > track->last_ms)
                return;
        put_name(j, pid, pid, "thread_name", "life");
        open_event(j, "X", pid, track->first_ms, track->name[0] ? track->name : "process");
        afz_json_key(j, "dur"),
                afz_json_u64(j, (track->last_ms - track->first_ms) * UINT64_C(1000));
        afz_json_key(j, "cat"), afz_json_str(j, "process");
        afz_json_key(j, "args"), afz_json_open(j, '{');
        afz_json_key(j, "command"), afz_export_command(j, track->detail);
        afz_json_key(j, "note"), afz_json_str(j, track->note);
        afz_json_close(j, '}');
        afz_json_close(j, '}');
}

static void put_track(struct afz_json *j, const struct afz_flight *flight,
                      const struct afz_track *track)
{
        uint64_t pid = pid_of(flight, track);
        name_track(j, flight, track);
        put_life(j, pid, track);
        for (size_t c = 0; c < track->columns; c++) {
                const struct afz_metric_info *metric = afz_export_metric(track, &track->column[c]);
                if (!metric || metric->unit == AFZ_UNIT_STATE)
                        continue;
                if (metric->type == AFZ_COUNTER)
                        put_rate(j, pid, metric, &track->column[c]);
                else
                        put_gauge(j, pid, metric, &track->column[c]);
        }
}

/* From each brake to what ended it: let go, or an end. */
static void put_brakes(struct afz_json *j, const struct afz_flight *flight)
{
        for (size_t i = 0; i < flight->marks; i++) {
                const struct afz_mark *mark = &flight->mark[i];
                uint32_t end = flight->end_ms;
                if (mark->kind != AFZ_MARK_ACTION || mark->code != AFZ_ACTION_BRAKE)
                        continue;
                for (size_t k = i + 1; k < flight->marks; k++) {
                        const struct afz_mark *next = &flight->mark[k];
                        if (next->kind == AFZ_MARK_ACTION &&
                            (next->code == AFZ_ACTION_RELEASE || next->code == AFZ_ACTION_KILL ||
                             next->code == AFZ_ACTION_BRAKE)) {
                                end = next->t_ms;
                                break;
                        }
                }
                open_event_of(j, "X", FIRST_MADE_UP, BRAKES, mark->t_ms, "braked");
                afz_json_key(j, "dur"), afz_json_u64(j, (end - mark->t_ms) * UINT64_C(1000));
                afz_json_key(j, "cat"), afz_json_str(j, "brake");
                afz_json_close(j, '}');
        }
}

static void put_mark(struct afz_json *j, const struct afz_mark *mark)
{
        char name[AFZ_EXPORT_MARK_CAP];
        open_event(j, "i", FIRST_MADE_UP, mark->t_ms, afz_export_mark_name(mark, name));
        afz_json_key(j, "s"), afz_json_str(j, "t");
        afz_json_key(j, "cat"), afz_json_str(j, afz_export_mark_kind(mark));
        afz_json_key(j, "args"), afz_json_open(j, '{');
        afz_json_key(j, "text"), afz_json_str(j, mark->text);
        afz_json_key(j, "code"), afz_json_i64(j, afz_export_mark_code(mark));
        afz_json_close(j, '}');
        afz_json_close(j, '}');
}

void afz_export_chrome_trace(const struct afz_flight *flight, struct afz_out *out)
{
        struct afz_json j = {.out = out};
        afz_json_open(&j, '{');
        afz_json_key(&j, "displayTimeUnit"), afz_json_str(&j, "ms");
        afz_json_key(&j, "otherData"), afz_json_open(&j, '{');
        afz_export_head(&j, flight);
        afz_json_close(&j, '}');
        afz_json_key(&j, "traceEvents"), afz_json_open(&j, '[');
        put_name(&j, FIRST_MADE_UP, FIRST_MADE_UP, "process_name", "Antifreeze");
        put_name(&j, FIRST_MADE_UP, FIRST_MADE_UP, "thread_name", "what happened");
        put_name(&j, FIRST_MADE_UP, BRAKES, "thread_name", "the brake");
        put_order(&j, FIRST_MADE_UP, 0);
        for (size_t t = 0; t < flight->tracks; t++)
                if (afz_export_kind(&flight->track[t]))
                        put_track(&j, flight, &flight->track[t]);
        put_brakes(&j, flight);
        for (size_t m = 0; m < flight->marks; m++)
                if (afz_export_mark_kind(&flight->mark[m]))
                        put_mark(&j, &flight->mark[m]);
        afz_json_close(&j, ']');
        afz_json_close(&j, '}');
        afz_out_char(out, '\n');
}
