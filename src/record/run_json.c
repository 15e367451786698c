/* A run as JSON: what verdict.json holds and `why --json` prints (docs/run-folder.md). The keys and
 * their order are a contract with scripts; new ones go to the end. run_recall.c reads it back. */
#include <inttypes.h>
#include <time.h>

#include "clock.h"
#include "run.h"
#include "run_words.h"

/* Parts of 100000, without the locale's idea of a decimal point. */
static void json_fraction(struct afz_json *j, double v)
{
        uint64_t parts = (uint64_t)(v * 1e5 + 0.5);
        afz_out_fmt(j->out, "%" PRIu64 ".%05" PRIu64, parts / 100000, parts % 100000);
        j->comma = true;
}

static void json_end(struct afz_json *j, const struct afz_end *end)
{
        afz_json_key(j, "end");
        if (end->how == AFZ_END_RUNNING) {
                afz_json_null(j);
                return;
        }
        afz_json_open(j, '{');
        afz_json_key(j, "how"), afz_json_str(j, afz_end_name(end->how));
        afz_json_key(j, "code");
        if (end->code >= 0)
                afz_json_i64(j, end->code);
        else
                afz_json_null(j);
        afz_json_close(j, '}');
}

/* 0, 0 is the whole run, and not told. */
static void json_span(struct afz_json *j, const struct afz_verdict *v)
{
        bool all = v->from_ms == 0 && v->to_ms == 0;
        afz_json_key(j, "from_s");
        if (all)
                afz_json_null(j);
        else
                afz_json_double(j, v->from_ms / 1e3, 3);
        afz_json_key(j, "to_s");
        if (all)
                afz_json_null(j);
        else
                afz_json_double(j, v->to_ms / 1e3, 3);
}

static void json_where(struct afz_json *j, const struct afz_where *where)
{
        afz_json_key(j, "where");
        if (!where->file[0]) {
                afz_json_null(j);
                return;
        }
        afz_json_open(j, '{');
        afz_json_key(j, "file"), afz_json_str(j, where->file);
        afz_json_key(j, "line");
        if (where->line > 0)
                afz_json_i64(j, where->line);
        else
                afz_json_null(j);
        afz_json_key(j, "function"), afz_json_str(j, where->function[0] ? where->function : NULL);
        afz_json_close(j, '}');
}

static void json_verdict(struct afz_json *j, const struct afz_verdict *v)
{
        double confidence = v->confidence < 0 ? 0 : v->confidence > 1 ? 1 : v->confidence;
        afz_json_open(j, '{');
        afz_json_key(j, "id"), afz_json_str(j, v->id);
        afz_json_key(j, "level"), afz_json_str(j, afz_level_name(v->level));
        afz_json_key(j, "confidence"), afz_json_double(j, confidence, 2);
        afz_json_key(j, "summary"), afz_json_str(j, v->summary);
        afz_json_key(j, "evidence"), afz_json_open(j, '[');
        for (size_t i = 0; i < AFZ_EVIDENCE_MAX; i++)
                if (v->evidence[i][0])
                        afz_json_str(j, v->evidence[i]);
        afz_json_close(j, ']');
        json_where(j, &v->where);
        afz_json_key(j, "fix"), afz_json_str(j, v->fix[0] ? v->fix : NULL);
        afz_json_key(j, "caused_by"), afz_json_str(j, v->caused_by[0] ? v->caused_by : NULL);
        json_span(j, v);
        afz_json_close(j, '}');
}

void afz_run_put_verdicts(struct afz_json *j, const struct afz_outcome *outcome)
{
        afz_json_key(j, "verdicts"), afz_json_open(j, '[');
        for (unsigned i = 0; i < outcome->verdicts && i < AFZ_VERDICTS_MAX; i++)
                json_verdict(j, &outcome->verdict[i]);
        afz_json_close(j, ']');
}

static void json_extras(struct afz_json *j, const struct afz_run_page *page, uint64_t duration_ns)
{
        char started[32] = "";
        time_t s = (time_t)page->started_s;
        struct tm tm;
        bool has_budget = afz_run_has_budget(page);

        if (gmtime_r(&s, &tm))
                strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &tm);
        afz_json_key(j, "attempts"), afz_json_u64(j, UINT64_C(1) + page->did[AFZ_ACTION_RESTART]);
        afz_json_key(j, "did"), afz_json_open(j, '{');
        for (int i = 0; i < AFZ_ACTION_COUNT; i++) {
                afz_json_key(j, afz_action_name((enum afz_action)i));
                afz_json_u64(j, page->did[i]);
        }
        afz_json_close(j, '}');
        afz_json_key(j, "budget_bytes"),
                afz_json_known_u64(j, has_budget ? page->budget_bytes : UINT64_MAX);
        afz_json_key(j, "swap_bytes"),
                afz_json_known_u64(j, has_budget ? page->swap_bytes : UINT64_MAX);
        afz_json_key(j, "cmd"), afz_json_str(j, page->cmd);
        afz_json_key(j, "started"), afz_json_str(j, started[0] ? started : NULL);
        afz_json_key(j, "duration_s");
        afz_json_double(j, (double)duration_ns / (double)AFZ_NS_PER_S, 3);
}

const char *const afz_run_cause_names[AFZ_CAUSE_COUNT] = {
        [AFZ_CAUSE_NONE] = "none",         [AFZ_CAUSE_BUDGET] = "budget",
        [AFZ_CAUSE_PRESSURE] = "pressure", [AFZ_CAUSE_KERNEL] = "kernel",
        [AFZ_CAUSE_SHM] = "shm",           [AFZ_CAUSE_DISK] = "disk",
};

/* What the guard knew at the end, so that the recording can be judged again. null: it told nothing.
 */
static void json_facts(struct afz_json *j, const struct afz_facts *facts)
{
        afz_json_key(j, "facts");
        if (facts->end.how == AFZ_END_RUNNING) {
                afz_json_null(j);
                return;
        }
        afz_json_open(j, '{');
        afz_json_key(j, "stop_cause"), afz_json_str(j, afz_run_cause_names[facts->stop_cause]);
        afz_json_key(j, "storm"), afz_json_bool(j, facts->storm);
        afz_json_key(j, "watch_only"), afz_json_bool(j, facts->watch_only);
        afz_json_key(j, "timed_out"), afz_json_bool(j, facts->timed_out);
        afz_json_key(j, "checkpoint_signal"), afz_json_i64(j, facts->checkpoint_signal);
        afz_json_key(j, "parts_stopped"), afz_json_u64(j, facts->parts_stopped);
        afz_json_key(j, "attempt"), afz_json_u64(j, facts->attempt);
        afz_json_key(j, "batch"), afz_json_u64(j, facts->batch);
        afz_json_key(j, "accum"), afz_json_u64(j, facts->accum);
        afz_json_key(j, "hard_bytes"), afz_json_u64(j, facts->hard_bytes);
        afz_json_key(j, "stop_need_bytes"), afz_json_u64(j, facts->stop_need_bytes);
        afz_json_key(j, "slope_bytes_per_s"), afz_json_i64(j, facts->slope_bytes_per_s);
        afz_json_key(j, "largest"), afz_json_open(j, '{');
        afz_json_key(j, "pid"), afz_json_u64(j, facts->largest.pid);
        afz_json_key(j, "bytes"), afz_json_u64(j, facts->largest.bytes);
        afz_json_key(j, "name"), afz_json_str(j, facts->largest.name);
        afz_json_close(j, '}');
        afz_json_key(j, "other"), afz_json_open(j, '{');
        afz_json_key(j, "grown_bytes"), afz_json_u64(j, facts->other.grown_bytes);
        afz_json_key(j, "name"), afz_json_str(j, facts->other.name);
        afz_json_close(j, '}');
        afz_json_key(j, "saved"), afz_json_str(j, facts->saved);
        afz_json_key(j, "not_again"), afz_json_str(j, facts->not_again);
        afz_json_close(j, '}');
}

void afz_run_put_json(struct afz_out *out, const struct afz_run_page *page,
                      const struct afz_outcome *outcome, uint64_t duration_ns)
{
        struct afz_json j = {.out = out};
        uint64_t gpu = page->gpu_peak_bytes;

        afz_json_open(&j, '{');
        afz_json_key(&j, "schema"), afz_json_u64(&j, 1);
        afz_json_key(&j, "run"), afz_json_str(&j, page->id);
        json_end(&j, &outcome->end);
        afz_json_key(&j, "peak"), afz_json_open(&j, '{');
        afz_json_key(&j, "ram_bytes"), afz_json_known_u64(&j, page->peak_bytes);
        afz_json_key(&j, "gpu_bytes"), afz_json_known_u64(&j, gpu == 0 ? AFZ_GPU_UNKNOWN : gpu);
        afz_json_close(&j, '}');
        afz_json_key(&j, "tier"), afz_json_str(&j, afz_tier_name((enum afz_tier)page->tier));
        afz_json_key(&j, "cost"), afz_json_open(&j, '{');
        afz_json_key(&j, "cpu_fraction"), json_fraction(&j, afz_run_cost(page, duration_ns));
        afz_json_close(&j, '}');
        afz_run_put_verdicts(&j, outcome);
        json_extras(&j, page, duration_ns);
        json_facts(&j, &page->facts);
        afz_json_close(&j, '}');
        afz_out_char(out, '\n');
}
