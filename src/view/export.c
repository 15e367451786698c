#include "export.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "agent_event.h"
#include "count_of.h"
#include "export_parts.h"
#include "secret.h"

const struct afz_exporter afz_exporters[] = {
        {"csv", afz_export_csv},
        {"jsonl", afz_export_jsonl},
        {"openmetrics", afz_export_openmetrics},
        {"chrome-trace", afz_export_chrome_trace},
        {"collapsed", afz_export_collapsed, .of_sites = true},
        {"speedscope", afz_export_speedscope, .of_sites = true},
        {"pprof", afz_export_pprof, .of_sites = true},
        {0},
};

const struct afz_kind_info *afz_export_kind(const struct afz_track *track)
{
        unsigned kind = (unsigned)track->subject.kind;
        return kind > AFZ_KIND_NONE && kind < AFZ_KIND_COUNT ? &afz_kind_table[kind] : NULL;
}

const struct afz_metric_info *afz_export_metric(const struct afz_track *track,
                                                const struct afz_column *column)
{
        const struct afz_kind_info *kind = afz_export_kind(track);
        if (!kind || afz_metric_kind(column->metric) != track->subject.kind ||
            afz_metric_index(column->metric) >= kind->metrics)
                return NULL;
        return &kind->metric[afz_metric_index(column->metric)];
}

char *afz_export_id(const struct afz_track *track, char buf[AFZ_EXPORT_ID_CAP])
{
        const struct afz_kind_info *kind = afz_export_kind(track);
        uint64_t id = track->subject.id;
        if (!kind || !kind->plural)
                buf[0] = '\0';
        else if (track->subject.kind == AFZ_KIND_CPU && id == AFZ_CPU_ALL)
                snprintf(buf, AFZ_EXPORT_ID_CAP, "all");
        else if (track->subject.kind == AFZ_KIND_DISK)
                snprintf(buf, AFZ_EXPORT_ID_CAP, "%" PRIu64 ":%" PRIu64, id >> 20, id & 0xfffff);
        else if (track->subject.kind == AFZ_KIND_GPU_PROC)
                snprintf(buf, AFZ_EXPORT_ID_CAP, "%" PRIu64 ":%" PRIu64, id >> 32, id & UINT32_MAX);
        else
                snprintf(buf, AFZ_EXPORT_ID_CAP, "%" PRIu64, id);
        return buf;
}

void afz_export_decimal(struct afz_out *out, int64_t value, unsigned decimals)
{
        uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value, scale = 1;
        for (unsigned i = 0; i < decimals; i++)
                scale *= 10;
        if (value < 0)
                afz_out_char(out, '-');
        afz_out_u64(out, size / scale);
        if (decimals == 0)
                return;
        afz_out_char(out, '.');
        for (uint64_t digit = scale / 10; digit > 0; digit /= 10)
                afz_out_char(out, (char)('0' + size / digit % 10));
}

void afz_export_seconds(struct afz_out *out, uint64_t ms)
{
        afz_export_decimal(out, (int64_t)ms, 3);
}

const char *afz_export_mark_kind(const struct afz_mark *mark)
{
        static const char *const name[AFZ_MARK_COUNT] = {
                [AFZ_MARK_EVENT] = "event", [AFZ_MARK_ACTION] = "action",
                [AFZ_MARK_SAID] = "said",   [AFZ_MARK_ATTEMPT] = "attempt",
                [AFZ_MARK_GAP] = "gap",     [AFZ_MARK_STACK] = "stack",
                [AFZ_MARK_SITE] = "site",   [AFZ_MARK_AGENT] = "agent",
        };
        return (unsigned)mark->kind < AFZ_COUNT_OF(name) ? name[mark->kind] : NULL;
}

char *afz_export_mark_name(const struct afz_mark *mark, char buf[AFZ_EXPORT_MARK_CAP])
{
        const char *kind = afz_export_mark_kind(mark);
        uint64_t event = (uint64_t)mark->code >> 32;
        if (mark->kind == AFZ_MARK_EVENT && event < AFZ_EVENT_COUNT)
                snprintf(buf, AFZ_EXPORT_MARK_CAP, "%s",
                         afz_event_name((enum afz_event_kind)event));
        else if (mark->kind == AFZ_MARK_ACTION && mark->code >= 0 && mark->code < AFZ_ACTION_COUNT)
                snprintf(buf, AFZ_EXPORT_MARK_CAP, "%s",
                         afz_action_name((enum afz_action)mark->code));
        else if (mark->kind == AFZ_MARK_AGENT && mark->code >= 0 && mark->code < AFZ_AGENT_EVENTS)
                snprintf(buf, AFZ_EXPORT_MARK_CAP, "%s",
                         afz_agent_event_name((enum afz_agent_event)mark->code));
        else if (mark->kind == AFZ_MARK_ATTEMPT)
                snprintf(buf, AFZ_EXPORT_MARK_CAP, "%s %" PRId64, kind, mark->code);
        else
                snprintf(buf, AFZ_EXPORT_MARK_CAP, "%s", kind ? kind : "");
        return buf;
}

int64_t afz_export_mark_code(const struct afz_mark *mark)
{
        bool halved = mark->kind == AFZ_MARK_EVENT || mark->kind == AFZ_MARK_STACK;
        return halved ? (int64_t)((uint64_t)mark->code & UINT32_MAX) : mark->code;
}

void afz_export_command(struct afz_json *j, const char *cmd)
{
        char text[4096];
        struct afz_out out = afz_out_to(-1, text, sizeof text - 1);
        afz_secret_put(&out, afz_span_str(cmd ? cmd : ""));
        text[out.len] = '\0';
        afz_json_str(j, text);
}

static void put_bytes(struct afz_json *j, const char *key, uint64_t bytes)
{
        afz_json_key(j, key);
        if (bytes == 0 || bytes == UINT64_MAX)
                afz_json_null(j);
        else
                afz_json_u64(j, bytes);
}

static void put_text(struct afz_json *j, const char *key, const char *text)
{
        afz_json_key(j, key);
        afz_json_str(j, text && text[0] ? text : NULL);
}

void afz_export_head(struct afz_json *j, const struct afz_flight *flight)
{
        const struct afz_flight_head *head = &flight->head;
        char started[32] = "";
        time_t s = (time_t)head->started_s;
        struct tm tm;

        if (gmtime_r(&s, &tm))
                strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &tm);
        put_text(j, "run", head->run);
        put_text(j, "host", head->host);
        put_text(j, "started", started);
        afz_json_key(j, "started_s"), afz_json_i64(j, head->started_s);
        afz_json_key(j, "end_s"), afz_json_double(j, flight->end_ms / 1e3, 3);
        afz_json_key(j, "ended"), afz_json_bool(j, flight->ended);
        afz_json_key(j, "holes"), afz_json_u64(j, flight->holes);
        afz_json_key(j, "cmd"), afz_export_command(j, head->cmd);
        put_text(j, "cwd", head->cwd);
        put_text(j, "git", head->git);
        afz_json_key(j, "cores"), afz_json_u64(j, head->cores);
        put_bytes(j, "ram_total_bytes", head->ram_total_bytes);
        put_bytes(j, "swap_total_bytes", head->swap_total_bytes);
        put_bytes(j, "budget_bytes", head->budget_bytes);
        put_bytes(j, "swap_bytes", head->swap_bytes);
        put_text(j, "tier",
                 head->tier < AFZ_TIER_COUNT ? afz_tier_name((enum afz_tier)head->tier) : NULL);
}
