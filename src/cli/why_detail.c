#include "why_detail.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent_event.h"
#include "history.h"
#include "leak.h"
#include "memory_ledger.h"
#include "quantity.h"
#include "why_now.h"
#include "why_sites.h"
#include "why_stacks.h"
#include "why_use.h"

/* Of the time line, so much is shown; what led to the end matters most. */
enum { FIRST_LINES = 8, LAST_LINES = 24 };

static const char *lasts(char buf[AFZ_DURATION_TEXT_CAP], double ms)
{
        const double most_ms = 1e12; /* thirty years: beyond that it is only large */
        return afz_format_duration(buf, AFZ_DURATION_TEXT_CAP,
                                   (uint64_t)(fmin(fmax(ms, 0), most_ms) * 1e6));
}

static void put_recording(struct afz_out *out, const struct afz_flight *flight, bool running,
                          const char *lacking)
{
        char text[320], took[AFZ_DURATION_TEXT_CAP], holes[64] = "";
        if (flight->tracks == 0) {
                snprintf(text, sizeof text, "none%s%s: this is from what the guard knew alone",
                         lacking[0] ? ": " : "", lacking);
        } else {
                if (flight->holes)
                        snprintf(holes, sizeof holes, "; %u parts were damaged and left out",
                                 (unsigned)flight->holes);
                snprintf(text, sizeof text, "%s of %zu processes, devices and the like%s%s",
                         lasts(took, flight->end_ms), flight->tracks,
                         flight->ended || running ? "" : ", not closed in order", holes);
        }
        afz_run_put_row(out, "recording", text);
}

/* "in 11 min (8 min to 15 min) at +240M a minute, if nothing changes" */
static void put_forecast(struct afz_out *out, const struct afz_flight *flight)
{
        struct afz_trend trend;
        struct afz_forecast f;
        char text[160], at[AFZ_DURATION_TEXT_CAP], soon[AFZ_DURATION_TEXT_CAP];
        char late[AFZ_DURATION_TEXT_CAP] = "never", rate[AFZ_SIZE_TEXT_CAP];
        if (!afz_leak_forecast(flight, AFZ_TREND_LIVE, &trend, &f))
                return;
        if (isfinite(f.latest_ms))
                lasts(late, f.latest_ms);
        snprintf(text, sizeof text,
                 "it is full in about %s (%s at the soonest, %s at the latest), at +%s a minute",
                 lasts(at, f.at_ms), lasts(soon, f.soonest_ms), late,
                 afz_format_size(rate, sizeof rate, (uint64_t)fabs(trend.slope_per_s * 60)));
        afz_run_put_row(out, "forecast", text);
}

/* ---- the time line ---- */

struct line {
        uint32_t from_ms, to_ms;
        unsigned count; /* of brakes in a row */
        char text[160];
};

static bool is_brake(const struct afz_mark *mark)
{
        return mark->kind == AFZ_MARK_ACTION &&
               (mark->code == AFZ_ACTION_BRAKE || mark->code == AFZ_ACTION_RELEASE);
}

/* False: it is not for the time line. */
static bool describe(const struct afz_mark *mark, char *buf, size_t cap)
{
        switch (mark->kind) {
        case AFZ_MARK_ACTION:
                /* What was said stands there itself. */
                if (mark->code < 0 || mark->code >= AFZ_ACTION_COUNT ||
                    mark->code == AFZ_ACTION_TELL)
                        return false;
                snprintf(buf, cap, "%s", afz_run_deed((enum afz_action)mark->code));
                return true;
        case AFZ_MARK_SAID:
                /* These two frame it, and are told anyway. */
                if (strncmp(mark->text, "start:", 6) == 0 ||
                    strncmp(mark->text, "verdict:", 8) == 0)
                        return false;
                snprintf(buf, cap, "said: %s", mark->text);
                return true;
        case AFZ_MARK_EVENT:
                snprintf(buf, cap, "kernel: %s", mark->text);
                return true;
        case AFZ_MARK_ATTEMPT:
                if (mark->code > 1)
                        snprintf(buf, cap, "started, attempt %lld", (long long)mark->code);
                else
                        snprintf(buf, cap, "started");
                return true;
        case AFZ_MARK_AGENT: /* what it said in words stands there as said */
                if (mark->code != AFZ_AGENT_OOM)
                        return false;
                afz_agent_event_oom_words(afz_span_str(mark->text), buf, cap);
                return true;
        case AFZ_MARK_GAP:
                snprintf(buf, cap, "%lld records were lost here", (long long)mark->code);
                return true;
        default:
                return false;
        }
}

/* The line that begins at mark *at, and moves behind it; false at the end. Brakes and releases in a
 * row are one. */
static bool next_line(const struct afz_flight *flight, size_t *at, struct line *ret)
{
        for (; *at < flight->marks; ++*at) {
                const struct afz_mark *mark = &flight->mark[*at];
                *ret = (struct line){.from_ms = mark->t_ms, .to_ms = mark->t_ms};
                if (!describe(mark, ret->text, sizeof ret->text))
                        continue;
                for (; *at < flight->marks && is_brake(&flight->mark[*at]); ++*at) {
                        ret->count += flight->mark[*at].code == AFZ_ACTION_BRAKE;
                        ret->to_ms = flight->mark[*at].t_ms;
                }
                *at += !is_brake(mark);
                return true;
        }
        return false;
}

static void put_line(struct afz_out *out, const struct line *line)
{
        char text[224], took[AFZ_DURATION_TEXT_CAP], title[16];
        snprintf(title, sizeof title, "%.1f s", line->from_ms / 1e3);
        if (line->count > 1)
                snprintf(text, sizeof text, "%s, %u x in %s", line->text, line->count,
                         lasts(took, (double)(line->to_ms - line->from_ms)));
        else
                snprintf(text, sizeof text, "%s", line->text);
        afz_run_put_row(out, title, text);
}

static void put_time_line(struct afz_out *out, const struct afz_flight *flight)
{
        struct line line;
        size_t lines = 0, n = 0;
        for (size_t at = 0; next_line(flight, &at, &line);)
                lines++;
        if (lines == 0)
                return;
        afz_out_str(out, "what happened when\n");
        for (size_t at = 0; next_line(flight, &at, &line); n++) {
                if (n < FIRST_LINES || n + LAST_LINES >= lines)
                        put_line(out, &line);
                else if (n == FIRST_LINES)
                        afz_out_fmt(out, "  ...        %zu more; antifreeze export has them all\n",
                                    lines - FIRST_LINES - LAST_LINES);
        }
}

/* ---- the ledger ---- */

static void put_ledger_row(struct afz_out *out, const struct afz_ledger_row *row)
{
        char text[200], title[AFZ_SIZE_TEXT_CAP], share[16] = "";
        if (row->in_need)
                snprintf(share, sizeof share, "%3.0f %%  ", row->share * 100);
        snprintf(text, sizeof text, "%s%s: %s", row->in_need ? share : "beside it: ", row->name,
                 row->what);
        afz_run_put_row(out, afz_format_size(title, sizeof title, row->bytes), text);
}

static void put_ledger_process(struct afz_out *out, const struct afz_ledger_process *process)
{
        char text[200], title[AFZ_SIZE_TEXT_CAP];
        snprintf(text, sizeof text, "%3.0f %%  %s (pid %llu%s%s)", process->share * 100,
                 process->name, (unsigned long long)process->pid, process->role[0] ? ", " : "",
                 process->role);
        afz_run_put_row(out, afz_format_size(title, sizeof title, process->bytes), text);
}

/* Of a run that is over: where it needed most; else how it stands. */
static void put_ledger(struct afz_out *out, const struct afz_flight *flight, bool running)
{
        struct afz_ledger ledger;
        char whole[AFZ_SIZE_TEXT_CAP], at[AFZ_DURATION_TEXT_CAP], more[AFZ_SIZE_TEXT_CAP];
        if (!(running ? afz_ledger_now : afz_ledger_peak)(flight, &ledger) || ledger.rows == 0)
                return;
        afz_out_fmt(out, "its memory %s, %s after the start: %s\n",
                    running ? "just now" : "when it needed most", lasts(at, ledger.t_ms),
                    afz_format_size(whole, sizeof whole, ledger.need_bytes));
        for (unsigned i = 0; i < ledger.rows; i++)
                put_ledger_row(out, &ledger.row[i]);
        if (ledger.processes > 0)
                afz_out_str(out, "its largest processes\n");
        for (unsigned i = 0; i < ledger.processes; i++)
                put_ledger_process(out, &ledger.process[i]);
        if (ledger.more_processes > 0)
                afz_out_fmt(out, "  %-10s in %u more\n",
                            afz_format_size(more, sizeof more, ledger.more_bytes),
                            ledger.more_processes);
}

static void put_changed(struct afz_out *out, const char *id)
{
        char since[AFZ_RUN_ID_CAP], text[AFZ_CHANGED_CAP], row[AFZ_CHANGED_CAP + 64];
        if (afz_history_changed(id, since, text) <= 0)
                return;
        snprintf(row, sizeof row, "since %s, which ended well: %s", since, text);
        afz_run_put_row(out, "changed", row);
}

void afz_why_put(struct afz_out *out, const struct afz_run_known *known,
                 const struct afz_flight *flight, bool full)
{
        const struct afz_run_page *page = &known->page;
        char now[AFZ_WHY_NOW_CAP];
        if (known->outcome.end.how == AFZ_END_RUNNING)
                afz_run_put_live_text(out, known, afz_why_now(known, flight, now), full);
        else
                (full ? afz_run_put_full_text : afz_run_put_text)(out, page, &known->outcome,
                                                                  known->duration_ns);
}

void afz_why_detail(struct afz_out *out, const struct afz_run_known *known,
                    const struct afz_flight *flight, const char *lacking)
{
        bool running = known->outcome.end.how == AFZ_END_RUNNING;
        afz_why_put(out, known, flight, true);
        put_recording(out, flight, running, lacking);
        if (running)
                put_forecast(out, flight);
        put_changed(out, known->page.id);
        afz_why_adapted(out, flight, &known->outcome.end);
        afz_why_use(out, flight, running, true);
        put_ledger(out, flight, running);
        afz_why_sites(out, flight, true);
        afz_why_stacks(out, flight, true);
        put_time_line(out, flight);
}
