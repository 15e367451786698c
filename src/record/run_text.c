/* A run in words: what verdict.txt holds and `why` prints. First what a person needs who has ten
 * seconds: what happened, why we believe it, what to change. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "quantity.h"
#include "run.h"
#include "run_words.h"
#include "secret.h"
#include "span.h"

/* Evidence of the first verdict in the short form: the best comes first, and more is not read. */
enum { SHORT_EVIDENCE = 3 };

#define SHORT_RUN_NS UINT64_C(10000000000)

/* Where a row is turned over: an ordinary terminal, less the title. */
enum { TITLE_COLUMNS = 13, TEXT_COLUMNS = 80 - TITLE_COLUMNS };

/* How much of the text goes into one line: up to a blank, if there is one in reach. */
static size_t line_length(const char *text)
{
        size_t n = 0, columns = 0, blank = 0;
        for (; text[n] && (columns <= TEXT_COLUMNS || !blank); n++) {
                columns += ((unsigned char)text[n] & 0xc0) != 0x80;
                if (text[n] == ' ' && columns <= TEXT_COLUMNS + 1)
                        blank = n;
                else if (text[n] == ' ' && !blank)
                        return n;
        }
        return text[n] == '\0' && columns <= TEXT_COLUMNS ? n : blank ? blank : n;
}

/* A command line stays on one line, and --paste takes it out. What people show to others has no
 * passwords in it. */
static void put_command(struct afz_out *out, const char *cmd)
{
        char safe[AFZ_RUN_CMD_CAP];
        afz_out_fmt(out, "  %-10s %s\n", "command", afz_secret_text(cmd, safe, sizeof safe));
}

void afz_run_put_row(struct afz_out *out, const char *title, const char *text)
{
        char safe[512];
        const char *at = safe;
        afz_span_copy(afz_span_str(text), safe, sizeof safe);
        do {
                size_t n = line_length(at);
                afz_out_fmt(out, "  %-10s %.*s\n", title, (int)n, at);
                at += n + (at[n] == ' ');
                title = "";
        } while (*at);
}

const char *afz_run_sureness(double confidence)
{
        /* As people use these words: nine in ten, two in three, less. */
        return confidence >= 0.9 ? "almost certainly" : confidence >= 0.65 ? "probably" : "perhaps";
}

static const char *end_words(const struct afz_end *end, char *buf, size_t cap)
{
        static const char *const words[AFZ_END_COUNT] = {
                [AFZ_END_RUNNING] = "still running",
                [AFZ_END_EXIT] = "by itself, exit status",
                [AFZ_END_SIGNAL] = "by signal",
                [AFZ_END_STOPPED] = "stopped by Antifreeze to protect the machine",
                [AFZ_END_OOM_KILLED] = "killed by the kernel for want of memory",
                [AFZ_END_LOST] = "lost: nobody saw the end",
                [AFZ_END_UNKNOWN] = "its exit status is not known",
        };
        if (end->how == AFZ_END_EXIT)
                snprintf(buf, cap, "%s %d", words[end->how], end->code);
        else if (end->how == AFZ_END_SIGNAL)
                snprintf(buf, cap, "%s %d (%s)", words[end->how], end->code, strsignal(end->code));
        else
                snprintf(buf, cap, "%s", words[end->how]);
        return buf;
}

static void put_evidence(struct afz_out *out, const struct afz_verdict *v, int most)
{
        for (int i = 0; i < AFZ_EVIDENCE_MAX && most > 0; i++) {
                if (!v->evidence[i][0])
                        continue;
                afz_run_put_row(out, "because", v->evidence[i]);
                most--;
        }
}

static void put_verdict(struct afz_out *out, const struct afz_verdict *v, bool full)
{
        char text[128];
        bool is_guess = v->level == AFZ_LEVEL_WARN || v->level == AFZ_LEVEL_ACT;
        const char *sure = is_guess ? afz_run_sureness(v->confidence) : "";
        int n = snprintf(text, sizeof text, "%s%s%s", v->id, sure[0] ? ", " : "", sure);
        if (full && n > 0 && (size_t)n < sizeof text)
                snprintf(text + n, sizeof text - (size_t)n, " (confidence %.2f, level %s)",
                         v->confidence, afz_level_name(v->level));
        put_evidence(out, v, full ? AFZ_EVIDENCE_MAX : SHORT_EVIDENCE);
        if (v->fix[0])
                afz_run_put_row(out, "try", v->fix);
        afz_run_put_row(out, "verdict", text);
}

/* The others, each in a line: what the first led to, and what else was found. */
static void put_other(struct afz_out *out, const struct afz_verdict *v, bool full)
{
        afz_run_put_row(out, v->caused_by[0] ? "led to" : "also", v->summary);
        if (full)
                put_verdict(out, v, true);
}

/* "leak -> swap-thrash -> host-exhaustion": from a verdict that nothing caused along what it led
 * to. */
static void put_chain(struct afz_out *out, const struct afz_outcome *outcome)
{
        char text[AFZ_VERDICTS_MAX * (AFZ_VERDICT_ID_CAP + 4)] = "";
        size_t at = 0;
        const char *cause = outcome->verdict[0].id;
        for (unsigned i = 1; i < outcome->verdicts; i++) {
                const struct afz_verdict *v = &outcome->verdict[i];
                if (strcmp(v->caused_by, cause) != 0 &&
                    strcmp(v->caused_by, outcome->verdict[0].id))
                        continue;
                at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s", at ? "" : cause,
                                       " -> ", v->id);
                cause = v->id;
        }
        if (at)
                afz_run_put_row(out, "chain", text);
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
        if (!afz_run_has_budget(page))
                snprintf(text, sizeof text, "%speak %s, no budget", now, peak);
        else if (page->swap_bytes == 0 || page->swap_bytes == UINT64_MAX)
                snprintf(text, sizeof text, "%speak %s of a budget of %s", now, peak, budget);
        else
                snprintf(text, sizeof text, "%speak %s of a budget of %s, and %s of swap beyond it",
                         now, peak, budget, swap);
        afz_run_put_row(out, "memory", text);
        if (gpu != 0 && gpu != AFZ_GPU_UNKNOWN) {
                snprintf(text, sizeof text, "peak %s", afz_format_size(peak, sizeof peak, gpu));
                afz_run_put_row(out, "GPU", text);
        }
}

const char *afz_run_deed(enum afz_action action)
{
        static const char *const deeds[AFZ_ACTION_COUNT] = {
                [AFZ_ACTION_TELL] = "warned",
                [AFZ_ACTION_BRAKE] = "slowed it down",
                [AFZ_ACTION_RELEASE] = "let it go on",
                [AFZ_ACTION_SQUEEZE] = "pushed its cold memory out",
                [AFZ_ACTION_SHRINK] = "asked it to use less",
                [AFZ_ACTION_CHECKPOINT] = "asked it to save",
                [AFZ_ACTION_INTERRUPT] = "asked it to end (SIGINT)",
                [AFZ_ACTION_TERMINATE] = "asked it to end (SIGTERM)",
                [AFZ_ACTION_KILL] = "ended it (SIGKILL)",
                [AFZ_ACTION_RESTART] = "started it again, smaller",
        };
        return deeds[action];
}

static void put_did(struct afz_out *out, const struct afz_run_page *page, bool full)
{
        char text[320] = "", times[16];
        size_t at = 0;
        for (int i = 0; i < AFZ_ACTION_COUNT && at < sizeof text; i++) {
                /* That it was let go on after each brake goes without saying. */
                if (!page->did[i] || i == AFZ_ACTION_RELEASE)
                        continue;
                snprintf(times, sizeof times, " %u x", page->did[i]);
                at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s", at ? ", " : "",
                                       afz_run_deed((enum afz_action)i),
                                       page->did[i] > 1 ? times : "");
        }
        if (at || full)
                afz_run_put_row(out, "did", at ? text : "nothing: it was not needed");
}

/* What we took ourselves. Of a short run most is the start and the end: no share to go by. */
static const char *cost_words(const struct afz_run_page *page, uint64_t duration_ns, char *buf,
                              size_t cap)
{
        char took[AFZ_DURATION_TEXT_CAP];
        uint64_t parts = (uint64_t)(afz_run_cost(page, duration_ns) * 1e4 + 0.5);
        if (duration_ns < SHORT_RUN_NS)
                snprintf(buf, cap, "; Antifreeze took %s of processor time",
                         afz_format_duration(took, sizeof took, page->cpu_ns));
        else
                snprintf(buf, cap, "; Antifreeze took %" PRIu64 ".%02" PRIu64 " %% of a core",
                         parts / 100, parts % 100);
        return buf;
}

static void put_time(struct afz_out *out, const struct afz_run_page *page, uint64_t duration_ns,
                     bool running, bool full)
{
        char took[AFZ_DURATION_TEXT_CAP], started[40] = "", cost[80] = "", text[192];
        time_t s = (time_t)page->started_s;
        struct tm tm;

        if (localtime_r(&s, &tm))
                strftime(started, sizeof started, ", from %Y-%m-%d %H:%M:%S", &tm);
        if (full)
                cost_words(page, duration_ns, cost, sizeof cost);
        snprintf(text, sizeof text, "%s%s%s", afz_format_duration(took, sizeof took, duration_ns),
                 started, cost);
        afz_run_put_row(out, running ? "so far" : "took", text);
}

static void put_tier(struct afz_out *out, const struct afz_run_page *page)
{
        static const char *const held_by[AFZ_TIER_COUNT] = {
                [AFZ_TIER_NONE] = "none: fast looking and signals",
                [AFZ_TIER_CGROUP1] = "cgroup1: the kernel's limits, cgroup v1",
                [AFZ_TIER_CGROUP2] = "cgroup2: the kernel's limits, cgroup v2",
                [AFZ_TIER_SCOPE] = "scope: the kernel's limits, a systemd scope",
        };
        afz_run_put_row(out, "tier",
                        held_by[page->tier < AFZ_TIER_COUNT ? page->tier : AFZ_TIER_NONE]);
}

/* now: what comes first; NULL: what was found does. */
static void put_text(struct afz_out *out, const struct afz_run_page *page,
                     const struct afz_outcome *outcome, uint64_t duration_ns, const char *now,
                     bool full)
{
        char ended[128], head[sizeof outcome->verdict[0].summary];
        bool running = outcome->end.how == AFZ_END_RUNNING;
        unsigned verdicts =
                outcome->verdicts < AFZ_VERDICTS_MAX ? outcome->verdicts : AFZ_VERDICTS_MAX;
        end_words(&outcome->end, ended, sizeof ended);
        afz_span_copy(afz_span_str(now        ? now
                                   : verdicts ? outcome->verdict[0].summary
                                              : ended),
                      head, sizeof head);
        /* The form of the first line is relied on by run_find.c: "run ID: ". */
        afz_out_fmt(out, "run %s: %s\n", page->id, head);
        if (now && verdicts)
                afz_run_put_row(out, "found", outcome->verdict[0].summary);
        if (verdicts)
                put_verdict(out, &outcome->verdict[0], full);
        for (unsigned i = 1; i < verdicts; i++)
                put_other(out, &outcome->verdict[i], full);
        if (full && verdicts > 1)
                put_chain(out, outcome);
        if (verdicts && !now)
                afz_run_put_row(out, running ? "now" : "ended", ended);
        if (running && !now && page->braked)
                afz_run_put_row(out, "just now", "the job is braked");
        put_memory(out, page, running);
        put_did(out, page, full);
        if (full)
                put_tier(out, page);
        put_time(out, page, duration_ns, running, full);
        put_command(out, page->cmd);
}

void afz_run_put_text(struct afz_out *out, const struct afz_run_page *page,
                      const struct afz_outcome *outcome, uint64_t duration_ns)
{
        put_text(out, page, outcome, duration_ns, NULL, false);
}

void afz_run_put_full_text(struct afz_out *out, const struct afz_run_page *page,
                           const struct afz_outcome *outcome, uint64_t duration_ns)
{
        put_text(out, page, outcome, duration_ns, NULL, true);
}

void afz_run_put_live_text(struct afz_out *out, const struct afz_run_known *known, const char *now,
                           bool full)
{
        put_text(out, &known->page, &known->outcome, known->duration_ns, now, full);
}
