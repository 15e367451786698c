#include "json_view.h"

#include <string.h>

#include "json.h"
#include "role.h"

/* What a subject is called besides its name. NULL: the name (or a metric) says it all. */
static const struct {
        const char *id, *detail;
} keys[AFZ_KIND_COUNT] = {
        [AFZ_KIND_CPU] = {"core", "detail"},    [AFZ_KIND_PROC] = {"pid", "command"},
        [AFZ_KIND_DISK] = {"device", "detail"}, [AFZ_KIND_FS] = {"mount", "detail"},
        [AFZ_KIND_GPU] = {"gpu", "uuid"},
};

static void put_value(struct afz_json *j, const struct afz_metric_info *info, int64_t value)
{
        if (info->id == AFZ_PROC_ROLE) {
                bool known = value >= 0 && value < AFZ_ROLE_COUNT;
                afz_json_str(j, known ? afz_role_name((enum afz_role)value) : NULL);
        } else if (info->unit == AFZ_UNIT_STATE) {
                char letter[2] = {(char)value, 0};
                afz_json_str(j, letter);
        } else {
                afz_json_i64(j, value);
        }
}

static void put_metrics(struct afz_json *j, const struct afz_sample *s)
{
        const struct afz_kind_info *kind = &afz_kind_table[s->subject.kind];
        for (unsigned i = 0; i < kind->metrics; i++) {
                int64_t v;
                afz_json_key(j, kind->metric[i].name);
                if (afz_sample_get(s, kind->metric[i].id, &v))
                        put_value(j, &kind->metric[i], v);
                else
                        afz_json_null(j);
        }
}

static void put_rates(struct afz_json *j, const struct afz_window *w, const struct afz_sample *s)
{
        const struct afz_kind_info *kind = &afz_kind_table[s->subject.kind];
        bool any = false;
        for (unsigned i = 0; i < kind->metrics; i++) {
                const struct afz_metric_info *info = &kind->metric[i];
                double rate;
                char key[96];
                if (info->type != AFZ_COUNTER)
                        continue;
                if (!any) {
                        afz_json_key(j, "rates");
                        afz_json_open(j, '{');
                }
                any = true;
                size_t n = strnlen(info->name, sizeof key - sizeof "_per_s");
                memcpy(key, info->name, n);
                memcpy(key + n, "_per_s", sizeof "_per_s");
                afz_json_key(j, key);
                if (afz_window_rate(w, s, info->id, &rate))
                        afz_json_double(j, rate, 3);
                else
                        afz_json_null(j);
        }
        if (any)
                afz_json_close(j, '}');
}

static void put_sample(struct afz_json *j, const struct afz_window *w, const struct afz_sample *s)
{
        enum afz_kind kind = s->subject.kind;
        const char *id = keys[kind].id;
        bool one_of_many = afz_kind_table[kind].plural && s->subject.id != AFZ_CPU_ALL;

        afz_json_open(j, '{');
        if (one_of_many) {
                if (id)
                        afz_json_key(j, id), afz_json_u64(j, s->subject.id);
                if (kind == AFZ_KIND_PROC)
                        afz_json_key(j, "start"), afz_json_u64(j, s->subject.start);
                afz_json_key(j, "name"), afz_json_str(j, s->name);
                afz_json_key(j, keys[kind].detail ? keys[kind].detail : "detail");
                afz_json_str(j, s->detail);
                afz_json_key(j, "note"), afz_json_str(j, s->note);
        }
        put_metrics(j, s);
        put_rates(j, w, s);
        afz_json_close(j, '}');
}

static void put_kind(struct afz_json *j, const struct afz_window *w, enum afz_kind kind)
{
        const struct afz_kind_info *info = &afz_kind_table[kind];
        size_t cursor = 0;
        const struct afz_sample *s;

        if (!info->plural || kind == AFZ_KIND_CPU) {
                s = info->plural ? afz_window_find(w, kind, AFZ_CPU_ALL) : afz_window_one(w, kind);
                afz_json_key(j, info->name);
                if (s)
                        put_sample(j, w, s);
                else
                        afz_json_null(j);
        }
        if (!info->plural)
                return;
        afz_json_key(j, info->plural);
        afz_json_open(j, '[');
        while ((s = afz_window_next(w, kind, &cursor)))
                if (kind != AFZ_KIND_CPU || s->subject.id != AFZ_CPU_ALL)
                        put_sample(j, w, s);
        afz_json_close(j, ']');
}

static void put_events(struct afz_json_view *view, struct afz_json *j, const struct afz_window *w)
{
        size_t from = view->events_seen < w->events ? view->events_seen : w->events;
        size_t missed =
                w->events - from > AFZ_WINDOW_EVENTS ? w->events - from - AFZ_WINDOW_EVENTS : 0;
        afz_json_key(j, "events");
        afz_json_open(j, '[');
        for (size_t i = from + missed; i < w->events; i++) {
                const struct afz_event *e = &w->event[i % AFZ_WINDOW_EVENTS];
                afz_json_open(j, '{');
                afz_json_key(j, "t_ns"), afz_json_u64(j, e->t_ns);
                afz_json_key(j, "kind"), afz_json_str(j, afz_event_name(e->kind));
                afz_json_key(j, "code"), afz_json_i64(j, e->code);
                afz_json_key(j, "text"), afz_json_str(j, e->text);
                afz_json_close(j, '}');
        }
        afz_json_close(j, ']');
        afz_json_key(j, "events_missed"), afz_json_u64(j, missed);
        view->events_seen = w->events;
}

static void put_unavailable(struct afz_json *j, const struct afz_window *w)
{
        afz_json_key(j, "unavailable");
        afz_json_open(j, '[');
        for (size_t i = 0; i < w->sources; i++) {
                const struct afz_source *s = &w->source[i];
                if (s->error == 0 && !s->why)
                        continue;
                afz_json_open(j, '{');
                afz_json_key(j, "sense"), afz_json_str(j, s->name);
                afz_json_key(j, "why");
                afz_json_str(j, s->why ? s->why : "could not be read this time");
                afz_json_close(j, '}');
        }
        afz_json_close(j, ']');
}

static void put_or_null(struct afz_json *j, const char *key, bool known, int64_t value)
{
        afz_json_key(j, key);
        if (known)
                afz_json_i64(j, value);
        else
                afz_json_null(j);
}

/* What it is for, by name, on the host and on GPUs; null: no framework tells. */
static void put_uses(struct afz_json *j, const struct afz_lines_now *lines)
{
        static const char *const place[2] = {"host", "gpu"};
        afz_json_key(j, "used_for");
        if (lines->uses[0] + lines->uses[1] == 0) {
                afz_json_null(j);
                return;
        }
        afz_json_open(j, '{');
        for (int gpu = 0; gpu < 2; gpu++) {
                afz_json_key(j, place[gpu]), afz_json_open(j, '{');
                for (uint32_t i = 0; i < lines->uses[gpu]; i++) {
                        afz_json_key(j, lines->use[gpu][i].name);
                        afz_json_u64(j, lines->use[gpu][i].bytes);
                }
                afz_json_close(j, '}');
        }
        afz_json_close(j, '}');
        put_or_null(j, "batch_count", lines->batch > 0, (int64_t)lines->batch);
        put_or_null(j, "micro_count", lines->micro > 0, (int64_t)lines->micro);
        afz_json_key(j, "ooms_count"), afz_json_u64(j, lines->ooms);
}

static void put_lines(struct afz_json *j, const struct afz_lines_now *lines)
{
        afz_json_key(j, "lines");
        if (!lines || !lines->known) {
                afz_json_null(j);
                return;
        }
        afz_json_open(j, '{');
        afz_json_key(j, "live_bytes"), afz_json_u64(j, lines->live_bytes);
        put_or_null(j, "step_count", lines->step > 0, (int64_t)lines->step);
        put_or_null(j, "growth_s", lines->growth_s > 0, lines->growth_s);
        afz_json_key(j, "processes_count"), afz_json_u64(j, lines->processes);
        afz_json_key(j, "probe"), afz_json_str(j, lines->words);
        afz_json_key(j, "top"), afz_json_open(j, '[');
        for (uint32_t i = 0; i < lines->rows; i++) {
                const struct afz_line_now *line = &lines->row[i];
                afz_json_open(j, '{');
                afz_json_key(j, "name"), afz_json_str(j, line->name);
                afz_json_key(j, "live_bytes"), afz_json_u64(j, line->live_bytes);
                put_or_null(j, "growth_bytes", lines->growth_s > 0, line->growth_bytes);
                afz_json_key(j, "memory"), afz_json_str(j, line->memory);
                afz_json_key(j, "processes_count"), afz_json_u64(j, line->processes);
                afz_json_close(j, '}');
        }
        afz_json_close(j, ']');
        put_uses(j, lines);
        afz_json_close(j, '}');
}

void afz_json_tick(struct afz_json_view *view, struct afz_out *out, const struct afz_window *window,
                   uint64_t wall_ns)
{
        struct afz_json j = {.out = out};

        afz_json_open(&j, '{');
        afz_json_key(&j, "schema"), afz_json_u64(&j, AFZ_JSON_SCHEMA);
        afz_json_key(&j, "t_ns"), afz_json_u64(&j, window->t_ns);
        afz_json_key(&j, "wall_ns"), afz_json_u64(&j, wall_ns);
        afz_json_key(&j, "tick"), afz_json_u64(&j, window->ticks);
        afz_json_key(&j, "job_pid");
        if (window->job_pid)
                afz_json_u64(&j, window->job_pid);
        else
                afz_json_null(&j);
        afz_json_key(&j, "limit");
        afz_json_open(&j, '{');
        afz_json_key(&j, "kind"), afz_json_str(&j, afz_limit_name(window->limit.kind));
        afz_json_key(&j, "text"), afz_json_str(&j, window->limit.text);
        afz_json_close(&j, '}');
        for (int kind = AFZ_KIND_NONE + 1; kind < AFZ_KIND_COUNT; kind++)
                put_kind(&j, window, (enum afz_kind)kind);
        put_events(view, &j, window);
        put_unavailable(&j, window);
        put_lines(&j, view->lines);
        afz_json_close(&j, '}');
        afz_out_char(out, '\n');
}

void afz_json_metrics(struct afz_out *out)
{
        struct afz_json j = {.out = out};

        afz_json_open(&j, '[');
        for (int k = AFZ_KIND_NONE + 1; k < AFZ_KIND_COUNT; k++) {
                const struct afz_kind_info *kind = &afz_kind_table[k];
                for (unsigned i = 0; i < kind->metrics; i++) {
                        const struct afz_metric_info *m = &kind->metric[i];
                        afz_json_open(&j, '{');
                        afz_json_key(&j, "kind"), afz_json_str(&j, kind->name);
                        afz_json_key(&j, "key");
                        afz_json_str(&j, kind->plural ? kind->plural : kind->name);
                        afz_json_key(&j, "name"), afz_json_str(&j, m->name);
                        afz_json_key(&j, "unit"), afz_json_str(&j, afz_unit_name(m->unit));
                        afz_json_key(&j, "type"), afz_json_str(&j, afz_metric_type_name(m->type));
                        afz_json_key(&j, "meaning"), afz_json_str(&j, m->meaning);
                        afz_json_close(&j, '}');
                }
        }
        afz_json_close(&j, ']');
        afz_out_char(out, '\n');
}
