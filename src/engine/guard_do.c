#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include "clock.h"
#include "guard_state.h"

void afz_guard_did(struct afz_guard *g, enum afz_action action)
{
        atomic_fetch_add_explicit(&g->run->page->did[action], 1, memory_order_relaxed);
        afz_guard_record_action(g, action);
}

static void brake(struct afz_guard *g)
{
        if (g->braked)
                return;
        /* Said first: should we die between the two, the front thaws what is not frozen. */
        atomic_store(&g->run->page->braked, 1);
        g->braked = true;
        if (g->hold.row->brake(g->hold.state) < 0) {
                g->braked = false;
                atomic_store(&g->run->page->braked, 0);
        }
}

void afz_guard_release(struct afz_guard *g)
{
        if (!g->braked)
                return;
        (void)g->hold.row->release(g->hold.state);
        afz_guard_record_action(g, AFZ_ACTION_RELEASE);
        g->braked = false;
        atomic_store(&g->run->page->braked, 0);
}

static void note_asked(struct afz_guard *g)
{
        if (g->asked_ns == 0)
                g->asked_ns = g->pulse.t_ns;
}

static void note_stop(struct afz_guard *g, const struct afz_decision *decision)
{
        note_asked(g);
        if (g->stop_ns != 0)
                return;
        uint64_t need = 0;
        (void)afz_pulse_get(&g->pulse, AFZ_PULSE_NEED, &need);
        g->stop_ns = g->pulse.t_ns;
        g->stop_need_bytes = need;
        g->stop_cause = decision->cause;
        g->stop_storm = decision->storm;
}

static const char *cause_words(enum afz_cause cause)
{
        static const char *const words[AFZ_CAUSE_COUNT] = {
                [AFZ_CAUSE_NONE] = "",
                [AFZ_CAUSE_BUDGET] = "its memory is nearly at its budget",
                [AFZ_CAUSE_PRESSURE] = "the machine is short of memory",
                [AFZ_CAUSE_KERNEL] = "the kernel killed a part of it at its limit",
                [AFZ_CAUSE_SHM] = "/dev/shm is nearly full",
                [AFZ_CAUSE_DISK] = "a disk is nearly full",
        };
        return words[cause];
}

#define NEAR_S  0.3 /* every wait ends when the limit is so near (the ladder's near_ns) */
#define SHORT_S 3.0 /* less than that to save is worth a number */
#define LEAST_S 0.1 /* and less than that is nothing: it takes that long to hear a signal */

/* A fast climb leaves less than the grace: who reads that it may save is not to be misled. */
static void say_interrupt(struct afz_guard *g, const struct afz_decision *decision)
{
        double rate = (double)decision->slope_bytes_per_s;
        double room = (double)g->lines.hard_bytes - (double)g->stop_need_bytes;
        double grace_s = (double)g->order->grace_ns / (double)AFZ_NS_PER_S;
        double left_s = rate > 0 ? room / rate - NEAR_S : grace_s;
        char time[64] = ", and may still save";
        if (left_s < LEAST_S)
                snprintf(time, sizeof time, "; if it grows on, there is no time to save");
        else if (left_s < grace_s && left_s < SHORT_S)
                snprintf(time, sizeof time, "; if it grows on, it has %.1f s to save", left_s);
        else if (grace_s < SHORT_S)
                snprintf(time, sizeof time, ", and has %.1f s to save (--grace)", grace_s);
        afz_guard_say(g, "interrupt", true, "%s: it is asked to end (SIGINT)%s",
                      cause_words(decision->cause), time);
}

/* The end of the time that it was given, if it was. */
static void say_kill(struct afz_guard *g, enum afz_cause cause, bool asked)
{
        double after_s = (double)(g->pulse.t_ns - g->ladder.stop_ns) / (double)AFZ_NS_PER_S;
        const char *why = cause_words(cause);
        if (!asked)
                afz_guard_say(g, "kill", true, "%s%sthere is no time to ask: killed (SIGKILL)", why,
                              why[0] ? ", and " : "");
        else if (after_s < LEAST_S)
                afz_guard_say(g, "kill", true, "it grows too fast for that: killed (SIGKILL)");
        else
                afz_guard_say(g, "kill", true,
                              "it did not end by itself: killed (SIGKILL) after %.1f s", after_s);
}

static void stop(struct afz_guard *g, const struct afz_decision *decision, enum afz_action action)
{
        bool asked = g->stop_asked, first = !g->killed;
        afz_guard_release(g); /* a frozen job can handle no signal */
        note_stop(g, decision);
        if (!g->stop_asked && g->control) {
                char line[160];
                snprintf(line, sizeof line, "stop %s %s",
                         decision->cause == AFZ_CAUSE_PRESSURE ? "pressure" : "budget",
                         cause_words(decision->cause));
                afz_control_tell(g->control, line);
        }
        g->stop_asked = true;
        if (action != AFZ_ACTION_KILL ||
            !g->killed) /* once, though it is done until all are gone */
                afz_guard_did(g, action);
        g->killed |= action == AFZ_ACTION_KILL;
        switch (action) {
        case AFZ_ACTION_INTERRUPT:
                say_interrupt(g, decision);
                (void)afz_stop_signal(&g->env, g->spawn.pid, g->spawn.pidfd, 0, SIGINT);
                break;
        case AFZ_ACTION_TERMINATE:
                afz_guard_say(g, "terminate", true, "%s: it is asked to end (SIGTERM)",
                              cause_words(decision->cause));
                (void)afz_stop_signal(&g->env, g->spawn.pid, g->spawn.pidfd, 0, SIGTERM);
                break;
        default:
                (void)g->hold.row->kill(g->hold.state);
                if (first)
                        say_kill(g, decision->cause, asked);
                break;
        }
}

#define AGAIN_NS (60 * AFZ_NS_PER_S)

/* Steps that come near the budget and go back climb anew each time: once said, that is no news for
 * a while, unless it comes nearer still. */
static bool is_old_news(struct afz_guard *g, enum afz_cause cause, uint64_t need)
{
        uint64_t nearer = g->warned_bytes + g->lines.hard_bytes / 32;
        if (cause != AFZ_CAUSE_BUDGET || g->parts > 0)
                return false;
        if (g->warned_ns > 0 && g->pulse.t_ns - g->warned_ns < AGAIN_NS && need < nearer)
                return true;
        g->warned_ns = g->pulse.t_ns;
        g->warned_bytes = need;
        return false;
}

static void tell(struct afz_guard *g, const struct afz_decision *decision)
{
        uint64_t need = 0;
        (void)afz_pulse_get(&g->pulse, AFZ_PULSE_NEED, &need);
        double rate = (double)decision->slope_bytes_per_s;
        if (is_old_news(g, decision->cause, need))
                return;
        afz_guard_did(g, AFZ_ACTION_TELL);
        if (decision->cause == AFZ_CAUSE_BUDGET && g->parts > 0)
                afz_guard_warn_part(g);
        if (decision->storm)
                afz_guard_say(g, "warn", false, "it starts processes without end");
        else if (decision->cause == AFZ_CAUSE_BUDGET && rate > 0 && need < g->lines.hard_bytes)
                afz_guard_say(g, "warn", false,
                              "it needs %s of the %s it may use and grows by %.0f MB/s: full in "
                              "%.1f s",
                              SIZE(need), SIZE(g->lines.hard_bytes), rate / (1 << 20),
                              ((double)g->lines.hard_bytes - (double)need) / rate);
        else if (decision->cause == AFZ_CAUSE_BUDGET)
                afz_guard_say(g, "warn", false, "it needs %s of the %s it may use", SIZE(need),
                              SIZE(g->lines.hard_bytes));
        else if (decision->cause == AFZ_CAUSE_PRESSURE && g->report.other.grown_bytes > 0)
                afz_guard_say(g, "warn", false,
                              "the machine is short of memory (%s outside of the job grew by %s): "
                              "the job is slowed down",
                              g->report.other.name, SIZE(g->report.other.grown_bytes));
        else if (decision->cause != AFZ_CAUSE_KERNEL || !g->server) /* told already */
                afz_guard_say(g, "warn", false, "%s", cause_words(decision->cause));
        if (decision->cause == AFZ_CAUSE_BUDGET)
                afz_guard_say_unsaved(g);
}

/* A program that does not handle the signal would die of it. A shell hands it to its children. */
static bool handles(struct afz_guard *g, int sig)
{
        char path[32], buf[8192];
        struct afz_span text, line;
        uint64_t caught;
        snprintf(path, sizeof path, "%d/status", (int)g->spawn.pid);
        if (afz_stop_is_shell(&g->env, g->spawn.pid) ||
            afz_env_read_record(&g->env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) < 0)
                return true;
        while (afz_span_take_line(&text, &line) == 0)
                if (afz_span_take_prefix(&line, "SigCgt:") == 0) {
                        line = afz_span_trim(line);
                        return afz_span_take_hex(&line, &caught) < 0 || caught >> (sig - 1) & 1;
                }
        return true;
}

static void checkpoint(struct afz_guard *g)
{
        const struct afz_guard_order *order = g->order;
        if (order->checkpoint_signal && !order->checkpoint_cmd &&
            !(g->control && afz_control_can_checkpoint(g->control)) &&
            !handles(g, order->checkpoint_signal)) {
                afz_guard_say(g, "checkpoint", true,
                              "not asked to save: it does not handle the --checkpoint-signal, and "
                              "would end by it");
                return;
        }
        afz_guard_release(g);
        if (g->ladder.stage >= AFZ_STAGE_ASKED) /* earlier it is no end that begins */
                note_asked(g);
        afz_guard_did(g, AFZ_ACTION_CHECKPOINT);
        if (afz_checkpoint_ask(&g->checkpoint, afz_guard_now(g)) == AFZ_CHECKPOINT_SIGNAL)
                (void)afz_stop_ask(&g->env, g->spawn.pid, g->spawn.pidfd, order->checkpoint_signal);
        afz_guard_say(g, "checkpoint", false, "asked the job to save a checkpoint");
}

static void shrink(struct afz_guard *g)
{
        if (!g->control || afz_control_ask_shrink(g->control) == 0)
                return;
        afz_guard_did(g, AFZ_ACTION_SHRINK);
        afz_guard_say(g, "shrink", false,
                      afz_control_can_split(g->control) ? "asked the job for smaller steps"
                                                        : "asked the job to use less memory");
}

void afz_guard_do(struct afz_guard *g, const struct afz_decision *decision)
{
        uint32_t todo = decision->actions;
#define WANTS(action) (todo >> (action)&1)
        if (WANTS(AFZ_ACTION_RELEASE))
                afz_guard_release(g);
        if (WANTS(AFZ_ACTION_TELL))
                tell(g, decision);
        if (WANTS(AFZ_ACTION_BRAKE)) {
                brake(g);
                afz_guard_did(g, AFZ_ACTION_BRAKE);
        }
        if (WANTS(AFZ_ACTION_SQUEEZE)) {
                (void)g->hold.row->squeeze(g->hold.state, decision->squeeze_bytes);
                afz_guard_did(g, AFZ_ACTION_SQUEEZE);
        }
        if (WANTS(AFZ_ACTION_SHRINK))
                shrink(g);
        if (WANTS(AFZ_ACTION_CHECKPOINT))
                checkpoint(g);
        bool ends = WANTS(AFZ_ACTION_INTERRUPT) || WANTS(AFZ_ACTION_TERMINATE) ||
                    WANTS(AFZ_ACTION_KILL);
        if (ends && g->parts > 0 && !g->stop_asked && afz_guard_stop_part(g))
                return;
        static const enum afz_action stops[] = {AFZ_ACTION_INTERRUPT, AFZ_ACTION_TERMINATE,
                                                AFZ_ACTION_KILL};
        for (unsigned i = 0; i < sizeof stops / sizeof *stops; i++)
                if (WANTS(stops[i]))
                        stop(g, decision, stops[i]);
#undef WANTS
}
