/* How it ended: the last judge, and the one that always has something to say once a run is over.
 * The guard asks it alone, with an empty flight, in the moment of the end; `why` and the report ask
 * it again with the recording, which tells whose limit a kill was, and what the kernel said. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent_tale.h"
#include "end_clues.h"
#include "end_killed.h"
#include "end_refused.h"
#include "hang_stacks.h"
#include "judge_words.h"
#include "judges.h"
#include "leak.h"
#include "site_top.h"
#include "step_clock.h"

/* How sure, in one place. What the guard did itself it knows; what others did is inferred. */
static const struct {
        double budget, pressure, storm; /* stopped by the ladder */
        double crash, crash_with_line;  /* with the kernel's own word for it */
        double signal, asked;           /* somebody's signal; our own checkpoint signal */
        double of_shell;                /* by what is added to 128 in an exit status */
        double exit, clean;
        double clean_level;   /* its memory was seen level */
        double clean_grown;   /* it grew, and nobody can say why ... */
        double clean_rising;  /* ... steadily, to the end */
        double grew;          /* of the level at the end: that is growth */
        uint64_t far_divisor; /* a peak below this part of what it may use is far from it */
        uint64_t other_bytes; /* what another program must have grown by, to be named */
        uint32_t show_ms;     /* before the end: where to look in the report */
        double line_share;    /* of what lines held, what one must have to be named; */
        double line_need;     /* and of the peak, since lines may be of a small part only */
        size_t error_words;   /* bytes of an error that are told: its line is to follow them */
} rule = {
        .budget = 0.95,
        .pressure = 0.7, /* the machine was short; whether the job was the reason is less certain */
        .storm = 0.95,
        .crash = 0.8, /* abort() is also how libraries give up for want of memory */
        .crash_with_line = 0.95,
        .signal = 0.8, /* a program may also send itself a signal */
        .asked = 0.8,
        .of_shell = 0.7, /* a program may end with any number */
        .exit = 0.75,    /* that it ended so is certain; that nothing outside led to it is not */
        .clean = 0.9,
        .clean_level = 0.95,
        .clean_grown = 0.8,
        .clean_rising = 0.6, /* nothing tells the one from the other */
        .grew = 0.2,
        .far_divisor = 2,                  /* from half on, memory may have had a part in it */
        .other_bytes = UINT64_C(64) << 20, /* less comes and goes in any browser */
        .show_ms = 30000,
        .line_share = 0.5,
        .line_need = 0.25,
        .error_words = 120,
};

static bool is_crash(int sig)
{
        return sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE ||
               sig == SIGABRT || sig == SIGSYS || sig == SIGTRAP;
}

/* The signal that a shell means by an exit status; 0: none. */
static int signal_of_status(int code)
{
        int sig = code - 128;
        bool known = is_crash(sig) || sig == SIGKILL || sig == SIGTERM || sig == SIGINT ||
                     sig == SIGPIPE;
        return known ? sig : 0;
}

static struct afz_verdict *shown(const struct afz_case *c, struct afz_verdict *v)
{
        uint32_t end = c->flight->end_ms;
        if (v) {
                v->from_ms = end > rule.show_ms ? end - rule.show_ms : 0;
                v->to_ms = end;
        }
        return v;
}

static struct afz_verdict *say(const struct afz_case *c, struct afz_outcome *ret, const char *id,
                               enum afz_level level, double confidence)
{
        struct afz_verdict *v = afz_outcome_add(ret, id, level, confidence);
        return level != AFZ_LEVEL_OK ? shown(c, v) : v;
}

/* ---- what holds for every end ---- */

/* What it needed, and what it was allowed; false: so little that memory was no part of this. */
static bool note_memory(const struct afz_case *c, struct afz_verdict *v)
{
        const struct afz_facts *f = &c->facts;
        bool limited = !f->watch_only && c->budget_bytes > 0;
        bool far = limited && v->level != AFZ_LEVEL_ACT && f->end.how != AFZ_END_LOST &&
                   c->peak_bytes < c->budget_bytes / rule.far_divisor;
        if (far)
                afz_verdict_note(v, "its memory was far from the limit: %s at most, of %s",
                                 SIZE(c->peak_bytes), SIZE(c->budget_bytes));
        else if (!limited)
                afz_verdict_note(v, "peak need %s", SIZE(c->peak_bytes));
        else if (c->swap_bytes == 0)
                afz_verdict_note(v, "peak need %s; %s of RAM and no swap were allowed",
                                 SIZE(c->peak_bytes), SIZE(c->budget_bytes));
        else
                afz_verdict_note(v, "peak need %s; %s of RAM and %s of swap were allowed",
                                 SIZE(c->peak_bytes), SIZE(c->budget_bytes), SIZE(c->swap_bytes));
        return !far;
}

/* The line that held most of it, if one did. The one that asked for too much is known already where
 * somebody told it: what was asked for was not there yet. */
static void note_line(const struct afz_case *c, struct afz_verdict *v)
{
        struct afz_site_top top;
        uint32_t peak_ms;
        if (!afz_site_peak(c->flight, &peak_ms) || !afz_site_top_at(c->flight, peak_ms, &top) ||
            top.row[0].bytes < rule.line_share * top.seen_bytes ||
            top.row[0].bytes < rule.line_need * (double)c->peak_bytes)
                return;
        if (v->where.line == 0)
                afz_site_where(top.row[0].track, &v->where);
        afz_verdict_note(v, "%s of it was allocated at %s", SIZE(top.row[0].bytes),
                         top.row[0].track->name);
}

static void note_figures(const struct afz_case *c, struct afz_verdict *v)
{
        const struct afz_facts *f = &c->facts;
        bool near = note_memory(c, v);
        if (near)
                note_line(c, v);
        if (near && f->largest.pid > 0)
                afz_verdict_note(v, "%s (pid %llu) held most: %s", f->largest.name,
                                 (unsigned long long)f->largest.pid, SIZE(f->largest.bytes));
        if (f->slope_bytes_per_s > 0)
                afz_verdict_note(v, "it grew by %.0f MB/s at the end",
                                 (double)f->slope_bytes_per_s / (1 << 20));
        if (f->saved[0] != '\0')
                afz_verdict_note(v, "checkpoint: %.140s", f->saved);
        if (f->not_again[0] != '\0')
                afz_verdict_note(v, "not started again: %s", f->not_again);
        if (f->stop_cause != AFZ_CAUSE_NONE && f->other.grown_bytes > rule.other_bytes)
                afz_verdict_note(v, "outside of the job, %s grew by %s meanwhile", f->other.name,
                                 SIZE(f->other.grown_bytes));
}

/* ---- stopped by us ---- */

static struct afz_verdict *say_pressure(const struct afz_case *c, struct afz_outcome *ret)
{
        const struct afz_facts *f = &c->facts;
        struct afz_verdict *v = say(c, ret, "host-exhaustion", AFZ_LEVEL_ACT, rule.pressure);
        if (!v)
                return NULL;
        snprintf(v->summary, sizeof v->summary,
                 "stopped to protect the machine, which stayed short of memory while the job was "
                 "slowed down: it held %s%s%s",
                 SIZE(f->stop_need_bytes), f->other.grown_bytes > 0 ? "; most growth was by " : "",
                 f->other.grown_bytes > 0 ? f->other.name : "");
        snprintf(v->fix, sizeof v->fix,
                 "close other programs, or give the job less: --budget with a smaller batch");
        return v;
}

static struct afz_verdict *say_stopped(const struct afz_case *c, struct afz_outcome *ret)
{
        const struct afz_facts *f = &c->facts;
        struct afz_verdict *v;
        if (!f->storm && f->stop_cause == AFZ_CAUSE_PRESSURE)
                return say_pressure(c, ret);
        if (f->storm) {
                v = say(c, ret, "fork-storm", AFZ_LEVEL_ACT, rule.storm);
                if (!v)
                        return NULL;
                snprintf(v->summary, sizeof v->summary,
                         "stopped: it started processes without end");
                snprintf(v->fix, sizeof v->fix,
                         "look for a worker that starts workers; on spawn platforms, guard the "
                         "main module with if __name__ == \"__main__\"");
                return v;
        }
        v = say(c, ret, "host-exhaustion", AFZ_LEVEL_ACT, rule.budget);
        if (!v)
                return NULL;
        snprintf(v->summary, sizeof v->summary,
                 "stopped to protect the machine: the job needed %s of the %s it may use, and was "
                 "growing",
                 SIZE(f->stop_need_bytes), SIZE(f->hard_bytes));
        snprintf(v->fix, sizeof v->fix,
                 "a smaller batch, streaming the data, or freeing what is kept between steps; if "
                 "the RAM is there, --budget raises the limit");
        return v;
}

static struct afz_verdict *say_parts(const struct afz_case *c, struct afz_outcome *ret)
{
        unsigned parts = c->facts.parts_stopped;
        struct afz_verdict *v = say(c, ret, "host-exhaustion", AFZ_LEVEL_ACT, rule.budget);
        if (!v)
                return NULL;
        snprintf(v->summary, sizeof v->summary,
                 "%u of the server's kernels %s stopped alone to protect the machine; the server "
                 "went on",
                 parts, parts == 1 ? "was" : "were");
        snprintf(v->fix, sizeof v->fix,
                 "fewer notebooks at once, or less data in one; if the RAM is there, --budget "
                 "raises the limit");
        return v;
}

/* ---- killed for memory ---- */

static struct afz_verdict *say_killed_for_memory(const struct afz_case *c,
                                                 const struct afz_kill_clue *clue,
                                                 struct afz_outcome *ret)
{
        struct afz_verdict *v = say(c, ret, "oom-killed", AFZ_LEVEL_ACT, clue->confidence);
        if (v)
                afz_end_put_killed(c, clue, v);
        return v;
}

/* ---- ended by a signal that was not ours ---- */

static struct afz_verdict *say_crash(const struct afz_case *c, int sig, bool of_shell,
                                     struct afz_outcome *ret)
{
        const struct afz_mark *line = afz_fault_clue_of(c);
        double sure = line ? rule.crash_with_line : of_shell ? rule.of_shell : rule.crash;
        struct afz_verdict *v =
                sig == SIGABRT || sig == SIGSEGV ? shown(c, afz_end_refused(c, ret)) : NULL;
        if (v) {
                afz_verdict_note(v, "it crashed then (%s)", strsignal(sig));
                return v;
        }
        v = say(c, ret, "crash", AFZ_LEVEL_WARN, sure);
        if (!v)
                return NULL;
        snprintf(v->summary, sizeof v->summary, "%s crashed (%s)",
                 of_shell ? "a program that it started" : "it", strsignal(sig));
        snprintf(v->fix, sizeof v->fix,
                 "read the last lines that it printed; python -X faulthandler shows where");
        if (line)
                afz_verdict_note(v, "the kernel's log: %.170s", line->text);
        else if (sig == SIGABRT && afz_end_was_full(c))
                afz_verdict_note(v, "its need was near what it may use: it may have given up when "
                                    "it was refused memory");
        afz_end_note_denied(c, v);
        return v;
}

static struct afz_verdict *say_checkpoint_signal(const struct afz_case *c, struct afz_outcome *ret)
{
        struct afz_verdict *v = say(c, ret, "checkpoint-signal", AFZ_LEVEL_WARN, rule.asked);
        if (!v)
                return NULL;
        snprintf(v->summary, sizeof v->summary,
                 "our --checkpoint-signal (%s) ended it: it does not handle that signal",
                 strsignal(c->facts.end.code));
        snprintf(v->fix, sizeof v->fix, "let the program handle it, or save by --checkpoint-cmd");
        return v;
}

static struct afz_verdict *say_signal(const struct afz_case *c, int sig, bool of_shell,
                                      struct afz_outcome *ret)
{
        bool wanted = sig == SIGINT || sig == SIGPIPE;
        uint64_t available;
        if (is_crash(sig))
                return say_crash(c, sig, of_shell, ret);
        if (sig == c->facts.checkpoint_signal && c->did[AFZ_ACTION_CHECKPOINT] && !of_shell)
                return say_checkpoint_signal(c, ret);
        struct afz_verdict *v =
                say(c, ret, "killed-externally", wanted ? AFZ_LEVEL_OK : AFZ_LEVEL_WARN,
                    of_shell ? rule.of_shell : rule.signal);
        if (!v)
                return NULL;
        if (sig == SIGINT)
                snprintf(v->summary, sizeof v->summary, "it was interrupted (Ctrl-C or SIGINT)");
        else if (sig == SIGPIPE)
                snprintf(v->summary, sizeof v->summary, "who read its output went away (SIGPIPE)");
        else
                snprintf(v->summary, sizeof v->summary, "somebody ended %s (%s), not Antifreeze",
                         of_shell ? "a program that it started" : "it", strsignal(sig));
        if (!wanted && afz_end_was_short(c, &available)) {
                afz_verdict_note(v,
                                 "the machine was short of memory then (%s could still be had): a "
                                 "program that watches over it may have done it",
                                 SIZE(available));
                snprintf(v->fix, sizeof v->fix,
                         "look at what systemd-oomd or earlyoom say (journalctl -b -e); a smaller "
                         "--budget leaves the machine more");
        }
        return v;
}

/* ---- ended as it was asked for ---- */

/* By the signal that it got when its time was over: SIGTERM, and SIGKILL where it does not hear. */
static bool is_timed_out(const struct afz_case *c)
{
        const struct afz_end *end = &c->facts.end;
        int sig = end->how == AFZ_END_SIGNAL ? end->code
                  : end->how == AFZ_END_EXIT ? end->code - 128 /* it says so itself */
                                             : 0;
        return c->facts.timed_out && (sig == SIGTERM || sig == SIGKILL);
}

/* No finding: what else was found about it comes first. */
static struct afz_verdict *say_timed_out(const struct afz_case *c, struct afz_outcome *ret)
{
        struct afz_verdict *v = say(c, ret, "killed-externally", AFZ_LEVEL_OK, 1);
        if (v)
                snprintf(v->summary, sizeof v->summary,
                         "it was ended when its time was over, as --time asks");
        return v;
}

/* ---- ended by itself, or out of sight ---- */

/* What timeout(1) ends with when it has ended what it ran; batch systems have copied it. */
enum { STATUS_OF_TIMEOUT = 124 };

static struct afz_verdict *say_timeout(const struct afz_case *c, struct afz_outcome *ret)
{
        struct afz_verdict *v = say(c, ret, "killed-externally", AFZ_LEVEL_WARN, rule.of_shell);
        if (!v)
                return NULL;
        snprintf(v->summary, sizeof v->summary, "a time limit ended it after %s, not Antifreeze",
                 LASTS(c->flight->end_ms));
        afz_verdict_note(v, "exit status %d: so timeout(1) tells that the time was over",
                         STATUS_OF_TIMEOUT);
        snprintf(v->fix, sizeof v->fix, "give it more time, or let it save before the limit");
        return v;
}

/* What Python printed last, and the line that it came from. It ends with 1 then: where the job
 * ended with another number, that was a program which others have gotten over. */
static void put_error(const struct afz_tale *tale, int code, struct afz_verdict *v)
{
        struct afz_where where = {0};
        struct afz_span words;
        char place[160];
        if (!afz_tale_error(tale, &where, &words))
                return;
        /* So that the place has room behind it, and no character is cut. */
        size_t n = words.n < rule.error_words ? words.n : rule.error_words;
        while (n > 0 && n < words.n && ((unsigned char)words.p[n] & 0xc0) == 0x80)
                n--;
        (void)afz_where_words(&where, place, sizeof place);
        if (code != 1) {
                afz_verdict_note(v, "a Python program in it had failed: %.*s%s",
                                 (int)strcspn(words.p, ": "), words.p, place);
                return;
        }
        v->where = where;
        snprintf(v->summary, sizeof v->summary, "it ended with an error that nobody caught: %.*s%s",
                 (int)n, words.p, place);
        afz_verdict_note(v, "its exit status was %d", code);
}

static struct afz_verdict *say_status(const struct afz_case *c, struct afz_outcome *ret)
{
        int code = c->facts.end.code, sig = signal_of_status(code);
        struct afz_verdict *v;
        if (code == STATUS_OF_TIMEOUT)
                return say_timeout(c, ret);
        if (sig) {
                v = say_signal(c, sig, true, ret);
                if (v)
                        afz_verdict_note(v,
                                         "exit status %d: so shells tell that a program was "
                                         "ended by a signal",
                                         code);
                return v;
        }
        v = shown(c, afz_end_refused(c, ret));
        if (v)
                return v;
        v = say(c, ret, "exception", AFZ_LEVEL_WARN, rule.exit);
        if (!v)
                return NULL;
        snprintf(v->summary, sizeof v->summary, "it ended by itself with exit status %d", code);
        snprintf(v->fix, sizeof v->fix, "read the last lines that it printed");
        if (afz_end_was_full(c))
                afz_verdict_note(v, "its need was near what it may use when it ended");
        struct afz_tale tale;
        afz_tale_of(c->flight, &c->facts.end, afz_end_last_start(c->flight), &tale);
        put_error(&tale, code, v);
        if (tale.counted_ooms > 0 && tale.ooms[false] + tale.ooms[true] == 0)
                afz_verdict_note(v, "it had met %llu error%s for want of memory",
                                 (unsigned long long)tale.counted_ooms,
                                 tale.counted_ooms == 1 ? "" : "s");
        afz_end_note_denied(c, v);
        return v;
}

static struct afz_verdict *say_unknown(const struct afz_case *c, struct afz_outcome *ret)
{
        struct afz_verdict *v = say(c, ret, "not-known", AFZ_LEVEL_UNKNOWN, 1);
        if (v)
                snprintf(v->summary, sizeof v->summary, "it ended; only its parent knows how");
        return v;
}

static struct afz_verdict *say_lost(const struct afz_case *c, struct afz_outcome *ret)
{
        struct afz_verdict *v = say(c, ret, "lost", AFZ_LEVEL_UNKNOWN, 1);
        if (v)
                afz_verdict_lost(v, c->flight->head.tier != AFZ_TIER_NONE);
        return v;
}

static void note_last_recorded(const struct afz_flight *flight, struct afz_verdict *v)
{
        uint64_t disk = (afz_flight_disk_ns(flight) + 999999) / 1000000;
        if (flight->end_ms == 0)
                return;
        if (disk == 0)
                afz_verdict_note(v, "the last that was recorded is %s after the start",
                                 LASTS(flight->end_ms));
        else
                afz_verdict_note(v,
                                 "the last that was recorded is %s after the start; up to a second "
                                 "more is lost, and what the disk took to write: here up to %s",
                                 LASTS(flight->end_ms), LASTS(disk));
}

static struct afz_verdict *say_machine_lost(const struct afz_case *c, struct afz_outcome *ret)
{
        struct afz_verdict *v = say(c, ret, "machine-lost", AFZ_LEVEL_UNKNOWN, 1);
        if (!v)
                return NULL;
        afz_verdict_note(v, "the machine has been booted anew since, and no end was recorded");
        note_last_recorded(c->flight, v);
        afz_verdict_machine_lost(v, afz_end_signs(c, v));
        return v;
}

/* ---- nothing was wrong ---- */

/* How its memory went: "; its memory stayed level" only where it was looked at for long enough.
 * What grew to the end may have been a leak all the same, and is said less surely. */
static const char *floor_words(const struct afz_case *c, struct afz_verdict *v)
{
        const struct afz_track *hold = afz_flight_one(c->flight, AFZ_KIND_HOLD);
        struct afz_trend trend = afz_trend_judge(&(struct afz_trend_ask){
                .column = afz_flight_need(c->flight),
                .braked = afz_track_column(hold, AFZ_HOLD_BRAKED),
                .from_ms = afz_end_last_start(c->flight),
                .to_ms = UINT32_MAX,
                .when = AFZ_TREND_ENDED,
        });
        if (trend.blocks == 0 || trend.to_ms <= trend.from_ms)
                return "";
        double moved = (double)trend.floor_last - (double)trend.floor_first;
        const char *over = LASTS(trend.to_ms - trend.from_ms);
        if (trend.growth == AFZ_GROWTH_FLAT) {
                const struct afz_column *clock =
                        afz_step_column(c->flight, trend.from_ms, trend.to_ms);
                long long steps = afz_step_count(clock, trend.from_ms, trend.to_ms);
                v->confidence = rule.clean_level;
                if (-moved > rule.grew * (double)trend.floor_first)
                        return ""; /* it gave much back: level is another word */
                afz_verdict_note(v,
                                 steps ? "the memory that it keeps moved by %s over %s, %lld steps"
                                       : "the memory that it keeps moved by %s over %s",
                                 SIZE(moved < 0 ? -moved : moved), over, steps);
                return "; its memory stayed level";
        }
        if (moved < rule.grew * (double)trend.floor_last)
                return "";
        v->confidence = trend.growth == AFZ_GROWTH_LEAK ? rule.clean_rising : rule.clean_grown;
        if (trend.growth == AFZ_GROWTH_WARMING)
                return "";
        afz_verdict_note(v,
                         "the memory that it keeps grew by %s over %s: data that it put together, "
                         "or a leak that was not seen for long enough",
                         SIZE(moved), over);
        return "";
}

static struct afz_verdict *say_clean(const struct afz_case *c, struct afz_outcome *ret)
{
        const struct afz_facts *f = &c->facts;
        struct afz_kill_clue clue = afz_kill_clue_of(c);
        /* It ended well, but something worth a word was found: that says more than "clean". */
        for (unsigned i = 0; i < ret->verdicts; i++)
                if (ret->verdict[i].level >= AFZ_LEVEL_WARN)
                        return NULL;
        struct afz_verdict *v = say(c, ret, "clean", AFZ_LEVEL_OK, rule.clean);
        if (!v)
                return NULL;
        const char *flat = floor_words(c, v);
        if (f->watch_only || f->hard_bytes == 0)
                snprintf(v->summary, sizeof v->summary, "it ended well; it needed %s%s",
                         SIZE(c->peak_bytes), flat);
        else if (f->attempt > 0 && f->batch == 0)
                snprintf(v->summary, sizeof v->summary,
                         "it ended well in attempt %u, after memory had run out before; it needed "
                         "%s of %s",
                         f->attempt + 1, SIZE(c->peak_bytes), SIZE(f->hard_bytes));
        else if (f->attempt > 0)
                snprintf(v->summary, sizeof v->summary,
                         "it ended well with batch %llu and accumulation %llu, after larger ones "
                         "did not fit; it needed %s of %s",
                         (unsigned long long)f->batch, (unsigned long long)f->accum,
                         SIZE(c->peak_bytes), SIZE(f->hard_bytes));
        else
                snprintf(v->summary, sizeof v->summary,
                         "nothing was wrong: it needed %s of the %s it may use%s",
                         SIZE(c->peak_bytes), SIZE(f->hard_bytes), flat);
        if (clue.line)
                afz_verdict_note(v, "on the way the kernel killed one of its processes: %.130s",
                                 clue.line);
        afz_end_note_denied(c, v);
        return v;
}

static struct afz_verdict *say_end(const struct afz_case *c, struct afz_outcome *ret)
{
        const struct afz_end *end = &c->facts.end;
        struct afz_kill_clue clue = {0};
        if (is_timed_out(c))
                return say_timed_out(c, ret);
        if (end->how == AFZ_END_OOM_KILLED || end->how == AFZ_END_SIGNAL ||
            (end->how == AFZ_END_EXIT && end->code != 0))
                clue = afz_kill_clue_of(c);
        if (clue.of != AFZ_LIMIT_NONE)
                return say_killed_for_memory(c, &clue, ret);
        switch (end->how) {
        case AFZ_END_STOPPED:
                return say_stopped(c, ret);
        case AFZ_END_SIGNAL:
                return say_signal(c, end->code, false, ret);
        case AFZ_END_EXIT:
                if (end->code != 0)
                        return say_status(c, ret);
                return c->facts.parts_stopped > 0 ? say_parts(c, ret) : say_clean(c, ret);
        case AFZ_END_LOST:
                return c->rebooted ? say_machine_lost(c, ret) : say_lost(c, ret);
        case AFZ_END_RUNNING:
                return NULL;
        default:
                return say_unknown(c, ret);
        }
}

void afz_judge_end(const struct afz_case *c, struct afz_outcome *ret)
{
        struct afz_verdict *v = say_end(c, ret);
        bool seen = c->facts.end.how != AFZ_END_LOST || c->peak_bytes > 0;
        if (v && seen)
                note_figures(c, v);
}
