/* A run in words and in JSON: what verdict.txt and verdict.json hold and `why` prints. The keys and
 * their order are a contract with scripts; new ones go to the end. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "json.h"
#include "quantity.h"
#include "run.h"
#include "span.h"

static double fraction(const struct afz_run_page *page, uint64_t duration_ns)
{
        return duration_ns == 0 ? 0 : (double)page->cpu_ns / (double)duration_ns;
}

/* Under --policy watch there is none. */
static bool has_budget(const struct afz_run_page *page)
{
        return page->budget_bytes != 0 && page->budget_bytes != UINT64_MAX;
}

/* Parts of 100000, without the locale's idea of a decimal point. */
static void json_fraction(struct afz_json *j, double v)
{
        uint64_t parts = (uint64_t)(v * 1e5 + 0.5);
        afz_out_fmt(j->out, "%" PRIu64 ".%05" PRIu64, parts / 100000, parts % 100000);
        j->comma = true;
}

static void json_bytes(struct afz_json *j, const char *key, uint64_t bytes)
{
        afz_json_key(j, key);
        if (bytes == UINT64_MAX)
                afz_json_null(j);
        else
                afz_json_u64(j, bytes);
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

static void json_verdict(struct afz_json *j, const struct afz_verdict *v)
{
        double confidence = v->confidence < 0 ? 0 : v->confidence > 1 ? 1 : v->confidence;
        afz_json_open(j, '{');
        afz_json_key(j, "id"), afz_json_str(j, v->id);
        afz_json_key(j, "level"), afz_json_str(j, afz_level_name(v->level));
        afz_json_key(j, "confidence"), afz_json_double(j, confidence, 2);
        afz_json_key(j, "summary"), afz_json_str(j, v->summary);
        afz_json_key(j, "evidence"), afz_json_open(j, '[');
        for (size_t i = 0; i < sizeof v->evidence / sizeof v->evidence[0]; i++)
                if (v->evidence[i][0])
                        afz_json_str(j, v->evidence[i]);
        afz_json_close(j, ']');
        afz_json_key(j, "where"), afz_json_null(j);
        afz_json_key(j, "fix"), afz_json_str(j, v->fix[0] ? v->fix : NULL);
        afz_json_close(j, '}');
}

static void json_extras(struct afz_json *j, const struct afz_run_page *page, uint64_t duration_ns)
{
        char started[32] = "";
        time_t s = (time_t)page->started_s;
        struct tm tm;

        if (gmtime_r(&s, &tm))
                strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &tm);
        afz_json_key(j, "attempts"), afz_json_u64(j, UINT64_C(1) + page->did[AFZ_ACTION_RESTART]);
        afz_json_key(j, "did"), afz_json_open(j, '{');
        for (int i = 0; i < AFZ_ACTION_COUNT; i++) {
                afz_json_key(j, afz_action_name((enum afz_action)i));
                afz_json_u64(j, page->did[i]);
        }
        afz_json_close(j, '}');
        json_bytes(j, "budget_bytes", has_budget(page) ? page->budget_bytes : UINT64_MAX);
        json_bytes(j, "swap_bytes", has_budget(page) ? page->swap_bytes : UINT64_MAX);
        afz_json_key(j, "cmd"), afz_json_str(j, page->cmd);
        afz_json_key(j, "started"), afz_json_str(j, started[0] ? started : NULL);
        afz_json_key(j, "duration_s");
        afz_json_double(j, (double)duration_ns / (double)AFZ_NS_PER_S, 3);
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
        json_bytes(&j, "ram_bytes", page->peak_bytes);
        json_bytes(&j, "gpu_bytes", gpu == 0 ? AFZ_GPU_UNKNOWN : gpu);
        afz_json_close(&j, '}');
        afz_json_key(&j, "tier"), afz_json_str(&j, afz_tier_name((enum afz_tier)page->tier));
        afz_json_key(&j, "cost"), afz_json_open(&j, '{');
        afz_json_key(&j, "cpu_fraction"), json_fraction(&j, fraction(page, duration_ns));
        afz_json_close(&j, '}');
        afz_json_key(&j, "verdicts"), afz_json_open(&j, '[');
        for (unsigned i = 0; i < outcome->verdicts && i < AFZ_VERDICTS_MAX; i++)
                json_verdict(&j, &outcome->verdict[i]);
        afz_json_close(&j, ']');
        json_extras(&j, page, duration_ns);
        afz_json_close(&j, '}');
        afz_out_char(out, '\n');
}

/* "  because    text": a text of ours or of the user's, made printable. */
static void row(struct afz_out *out, const char *title, const char *text)
{
        char safe[512];
        afz_span_copy(afz_span_str(text), safe, sizeof safe);
        afz_out_fmt(out, "  %-10s %s\n", title, safe);
}

static const char *end_words(const struct afz_end *end, char *buf, size_t cap)
{
        static const char *const words[AFZ_END_COUNT] = {
                [AFZ_END_RUNNING] = "still running",
                [AFZ_END_EXIT] = "the program ended by itself, exit status",
                [AFZ_END_SIGNAL] = "the program was ended by signal",
                [AFZ_END_STOPPED] = "stopped by Antifreeze to protect the machine",
                [AFZ_END_OOM_KILLED] = "killed by the kernel at the limit that Antifreeze set",
                [AFZ_END_LOST] = "lost: nobody saw the end",
                [AFZ_END_UNKNOWN] = "ended; its exit status is not known",
        };
        if (end->how == AFZ_END_EXIT)
                snprintf(buf, cap, "%s %d", words[end->how], end->code);
        else if (end->how == AFZ_END_SIGNAL)
                snprintf(buf, cap, "%s %d (%s)", words[end->how], end->code, strsignal(end->code));
        else
                snprintf(buf, cap, "%s", words[end->how]);
        return buf;
}

static void put_verdict(struct afz_out *out, const struct afz_verdict *v, bool first)
{
        char text[96];
        snprintf(text, sizeof text, "%s (%s, confidence %d %%)", v->id, afz_level_name(v->level),
                 (int)(v->confidence * 100 + 0.5));
        if (!first)
                row(out, "also", v->summary);
        row(out, "verdict", text);
        for (size_t i = 0; i < sizeof v->evidence / sizeof v->evidence[0]; i++)
                if (v->evidence[i][0])
                        row(out, "because", v->evidence[i]);
        if (v->fix[0])
                row(out, "fix", v->fix);
}

static void put_memory(struct afz_out *out, const struct afz_run_page *page, bool running)
{
        char peak[AFZ_SIZE_TEXT_CAP], budget[AFZ_SIZE_TEXT_CAP], swap[AFZ_SIZE_TEXT_CAP];
        char now[AFZ_SIZE_TEXT_CAP + 8] = "", text[160];
        uint64_t gpu = page->gpu_peak_bytes;

        if (running)
                snprintf(now, sizeof now, "now %s, ",
                         afz_format_size(peak, sizeof peak, page->need_bytes));
        afz_format_size(peak, sizeof peak, page->peak_bytes);
        afz_format_size(budget, sizeof budget, page->budget_bytes);
        afz_format_size(swap, sizeof swap, page->swap_bytes);
        if (!has_budget(page))
                snprintf(text, sizeof text, "%speak %s, no budget", now, peak);
        else if (page->swap_bytes == 0 || page->swap_bytes == UINT64_MAX)
                snprintf(text, sizeof text, "%speak %s of a budget of %s", now, peak, budget);
        else
                snprintf(text, sizeof text, "%speak %s of a budget of %s, and %s of swap beyond it",
                         now, peak, budget, swap);
        row(out, "memory", text);
        if (gpu != 0 && gpu != AFZ_GPU_UNKNOWN) {
                snprintf(text, sizeof text, "peak %s", afz_format_size(peak, sizeof peak, gpu));
                row(out, "GPU", text);
        }
}

static void put_did(struct afz_out *out, const struct afz_run_page *page)
{
        char text[256] = "";
        size_t at = 0;
        for (int i = 0; i < AFZ_ACTION_COUNT && at < sizeof text; i++)
                if (page->did[i])
                        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %u x",
                                               at ? ", " : "", afz_action_name((enum afz_action)i),
                                               page->did[i]);
        row(out, "did", at ? text : "nothing: it was not needed");
}

static void put_time(struct afz_out *out, const struct afz_run_page *page, uint64_t duration_ns)
{
        char took[AFZ_DURATION_TEXT_CAP], started[40] = "", text[160];
        uint64_t parts = (uint64_t)(fraction(page, duration_ns) * 1e4 + 0.5);
        time_t s = (time_t)page->started_s;
        struct tm tm;

        if (localtime_r(&s, &tm))
                strftime(started, sizeof started, ", from %Y-%m-%d %H:%M:%S", &tm);
        snprintf(text, sizeof text, "%s%s; Antifreeze took %" PRIu64 ".%02" PRIu64 " %% of a core",
                 afz_format_duration(took, sizeof took, duration_ns), started, parts / 100,
                 parts % 100);
        row(out, "took", text);
}

void afz_run_put_text(struct afz_out *out, const struct afz_run_page *page,
                      const struct afz_outcome *outcome, uint64_t duration_ns)
{
        static const char *const held_by[AFZ_TIER_COUNT] = {
                [AFZ_TIER_NONE] = "none: fast looking and signals",
                [AFZ_TIER_CGROUP1] = "cgroup1: the kernel's limits, cgroup v1",
                [AFZ_TIER_CGROUP2] = "cgroup2: the kernel's limits, cgroup v2",
                [AFZ_TIER_SCOPE] = "scope: the kernel's limits, a systemd scope",
        };
        char ended[128], head[256];
        unsigned verdicts =
                outcome->verdicts < AFZ_VERDICTS_MAX ? outcome->verdicts : AFZ_VERDICTS_MAX;
        end_words(&outcome->end, ended, sizeof ended);
        afz_span_copy(afz_span_str(verdicts ? outcome->verdict[0].summary : ended), head,
                      sizeof head);
        /* The form of the first line is relied on by run_find.c: "run ID: ". */
        afz_out_fmt(out, "run %s: %s\n", page->id, head);
        for (unsigned i = 0; i < verdicts; i++)
                put_verdict(out, &outcome->verdict[i], i == 0);
        if (verdicts)
                row(out, "ended", ended);
        row(out, "tier", held_by[page->tier < AFZ_TIER_COUNT ? page->tier : AFZ_TIER_NONE]);
        put_memory(out, page, outcome->end.how == AFZ_END_RUNNING);
        put_did(out, page);
        if (outcome->end.how == AFZ_END_RUNNING && page->braked)
                row(out, "just now", "the job is braked");
        put_time(out, page, duration_ns);
        row(out, "command", page->cmd);
}
