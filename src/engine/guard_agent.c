/* The agent in the job's Python programs: what it is given to know, what it tells of, and what that
 * means for who waits for the job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "control_line.h"
#include "count_of.h"
#include "guard_state.h"
#include "wire.h"

/* ---- what it is given ---- */

/* Which each attempt finds as this run means it: one inside another has none of the other's. */
static const char *const names[] = {
        "ANTIFREEZE_POLICY",  "ANTIFREEZE_GPU_BUDGET", "ANTIFREEZE_AMP",  "ANTIFREEZE_INEXACT",
        "ANTIFREEZE_ATTEMPT", "ANTIFREEZE_RESUME",     "ANTIFREEZE_LEAN",
};

void afz_guard_agent_open(void)
{
        for (size_t i = 0; i < AFZ_COUNT_OF(names); i++)
                (void)unsetenv(names[i]);
}

unsigned afz_guard_agent_environment(struct afz_guard *g, const char **ret)
{
        static const char *const policies[AFZ_POLICY_COUNT] = {
                [AFZ_POLICY_WATCH] = "ANTIFREEZE_POLICY=watch",
                [AFZ_POLICY_PROTECT] = "ANTIFREEZE_POLICY=protect",
                [AFZ_POLICY_ADAPT] = "ANTIFREEZE_POLICY=adapt",
        };
        const struct afz_guard_order *order = g->order;
        struct afz_guard_agent *a = &g->agent;
        unsigned n = 0;
        ret[n++] = policies[order->policy];
        snprintf(a->attempt, sizeof a->attempt, "ANTIFREEZE_ATTEMPT=%u", g->plan.attempt + 1);
        ret[n++] = a->attempt;
        if (order->gpu_budget_bytes > 0 && order->policy != AFZ_POLICY_WATCH) {
                snprintf(a->gpu_budget, sizeof a->gpu_budget, "ANTIFREEZE_GPU_BUDGET=%llu",
                         (unsigned long long)order->gpu_budget_bytes);
                ret[n++] = a->gpu_budget;
        }
        if (order->amp)
                ret[n++] = "ANTIFREEZE_AMP=1";
        if (order->allow_inexact)
                ret[n++] = "ANTIFREEZE_INEXACT=1";
        if (g->plan.lean > 0) {
                snprintf(a->lean, sizeof a->lean, "ANTIFREEZE_LEAN=%u", g->plan.lean);
                ret[n++] = a->lean;
        }
        if (a->saved[0] != '\0') {
                snprintf(a->resume, sizeof a->resume, "ANTIFREEZE_RESUME=%s", a->saved);
                ret[n++] = a->resume;
        }
        return n;
}

/* ---- what it tells ---- */

/* Who has something to say does not wait for one that is lost: those were begun anew, perhaps. */
static void note_alive(struct afz_guard_agent *a, uint64_t now_ns)
{
        if (a->lost_ns > 0)
                a->lost_ns = now_ns;
}

void afz_guard_agent_hello(void *ctx, uint32_t abilities)
{
        struct afz_guard *g = ctx;
        /* Nobody takes it back; who cannot may be another. */
        g->agent.now.smaller |= (abilities & AFZ_ABILITY_SHRINK) != 0;
        note_alive(&g->agent, afz_guard_now(g));
        g->slow_next_ns = 0; /* the ladder is to know it at once */
}

void afz_guard_agent_saved(void *ctx, const char *path)
{
        struct afz_guard *g = ctx;
        snprintf(g->agent.saved, sizeof g->agent.saved, "%s", path);
        g->agent.now.saved = true;
        note_alive(&g->agent, afz_guard_now(g));
}

static void note_split(struct afz_guard_agent *a, struct afz_span text)
{
        uint64_t batch, micro;
        if (!afz_agent_event_number(text, "batch", &batch) ||
            !afz_agent_event_number(text, "micro", &micro))
                return;
        a->now.learned = afz_restart_halvings(batch, micro);
        a->now.least = micro <= 1;
}

/* Who refuses to make steps smaller does so the next time, too, unless it says that it takes a
 * start for it. Other things are refused as well: if it does not say what, it is about what went
 * before. */
static void note_refusal(struct afz_guard_agent *a, struct afz_span text)
{
        uint64_t restart = 0;
        struct afz_span what;
        bool split = afz_agent_event_value(text, "what", &what) ? afz_span_eq(what, "split")
                                                                : a->oom_ns > 0;
        (void)afz_agent_event_number(text, "restart", &restart);
        if (split)
                a->refused = restart == 0;
}

/* One that the program caught itself is not why it ends, and neither is one before it. */
static void note_oom(struct afz_guard_agent *a, struct afz_span text, uint64_t now_ns)
{
        uint64_t swallowed = 0;
        (void)afz_agent_event_number(text, "swallowed", &swallowed);
        a->oom_ns = swallowed == 0 ? now_ns : 0;
}

/* One of several that train together ends for want of memory. */
static void note_lost(struct afz_guard_agent *a, struct afz_span text, uint64_t now_ns)
{
        uint64_t lost = 0;
        if (afz_agent_event_number(text, "lost", &lost) && lost > 0 && a->lost_ns == 0)
                a->lost_ns = now_ns;
}

/* A step that was refused memory and is made in parts from now on was gotten over. */
static void note_event(struct afz_guard_agent *a, enum afz_agent_event event, struct afz_span text,
                       uint64_t now_ns)
{
        switch (event) {
        case AFZ_AGENT_OOM:
                note_oom(a, text, now_ns);
                break;
        case AFZ_AGENT_SPLIT:
                a->oom_ns = 0;
                note_split(a, text);
                break;
        case AFZ_AGENT_GROW:
                note_split(a, text);
                break;
        case AFZ_AGENT_RESUME:
                (void)afz_agent_event_number(text, "step", &a->base_step);
                break;
        case AFZ_AGENT_REFUSE:
                note_refusal(a, text);
                break;
        case AFZ_AGENT_NOTE:
                note_lost(a, text, now_ns);
                break;
        default:
                break;
        }
}

static const struct {
        uint64_t say_ns;    /* people read one line of a kind in so long */
        uint64_t record_ns; /* and the recording has room for one event, a thousand in a quarter of
                               an hour, */
        uint64_t burst;     /* and so many at once: a change of size is some of them */
} rule = {
        .say_ns = AFZ_NS_PER_S,
        .record_ns = AFZ_NS_PER_S,
        .burst = 64,
};

/* An agent that goes wrong must not fill the disk: whether one more may be kept. An error is the
 * last word of a process, and what the end is explained by: whatever else was told leaves it room.
 */
static bool has_room(struct afz_guard_agent *a, enum afz_agent_event event, uint64_t now_ns)
{
        uint64_t *spent_ns = event == AFZ_AGENT_ERROR ? &a->spent_for_errors_ns : &a->spent_ns;
        uint64_t full_ns = rule.burst * rule.record_ns;
        uint64_t from_ns = now_ns > full_ns ? now_ns - full_ns : 0;
        if (*spent_ns < from_ns)
                *spent_ns = from_ns;
        if (*spent_ns + rule.record_ns > now_ns)
                return false;
        *spent_ns += rule.record_ns;
        return true;
}

/* So that no character is cut. */
static int fitting(struct afz_span text, size_t most)
{
        size_t n = text.n < most ? text.n : most;
        while (n > 0 && n < text.n && ((unsigned char)text.p[n] & 0xc0) == 0x80)
                n--;
        return (int)n;
}

void afz_guard_agent_event(void *ctx, enum afz_agent_event event, const char *text)
{
        struct afz_guard *g = ctx;
        struct afz_guard_agent *a = &g->agent;
        struct afz_span sentence = afz_agent_event_sentence(afz_span_str(text));
        uint64_t now = afz_guard_now(g);
        note_alive(a, now);
        note_event(a, event, afz_span_str(text), now);
        if (!has_room(a, event, now))
                return;
        afz_guard_record_agent(g, event, text);
        /* Every epoch has a feed, and an error is printed by Python: a judge says what matters. */
        if (event == AFZ_AGENT_FEED || event == AFZ_AGENT_ERROR)
                return;
        if (sentence.n == 0 || (a->said_ns[event] > 0 && now - a->said_ns[event] < rule.say_ns))
                return;
        a->said_ns[event] = now;
        afz_guard_say(g, afz_agent_event_name(event), false, "%.*s",
                      fitting(sentence, sizeof((struct afz_word *)NULL)->text - 1), sentence.p);
}

/* ---- several that train together ---- */

static const struct {
        uint64_t settle_ns; /* the others come to where they wait, and the keeper has seen it */
        uint64_t wait_ns;   /* those who start such a job end it in a few seconds; torch itself
                               waits for 10 to 30 minutes */
} ranks = {
        .settle_ns = 5 * AFZ_NS_PER_S,
        .wait_ns = 15 * AFZ_NS_PER_S,
};

void afz_guard_agent_turn(struct afz_guard *g)
{
        struct afz_guard_agent *a = &g->agent;
        uint64_t step = 0, saved, since_ns = afz_guard_now(g) - a->lost_ns;
        if (a->lost_ns == 0 || g->server || g->order->policy != AFZ_POLICY_ADAPT)
                return;
        if (!g->keeper)
                return; /* nobody knows whether they make steps */
        (void)afz_keeper_steps(g->keeper, &step, &saved);
        if (since_ns < ranks.settle_ns)
                a->lost_step = step;
        if (since_ns < ranks.wait_ns)
                return;
        a->lost_ns = 0;
        if (step != a->lost_step || a->gave_up)
                return; /* they go on */
        a->gave_up = true;
        afz_guard_say(g, "kill", true,
                      "one of its processes ran out of memory %.0f s ago, and the others wait for "
                      "it: all are ended (SIGKILL)",
                      (double)since_ns / (double)AFZ_NS_PER_S);
        afz_guard_release(g);
        (void)g->hold.row->kill(g->hold.state);
}

/* ---- what would be lost, and what is ---- */

void afz_guard_say_unsaved(struct afz_guard *g)
{
        uint64_t step, saved;
        if (g->agent.told_unsaved || afz_checkpoint_can(&g->checkpoint) || g->agent.now.saved ||
            !afz_keeper_steps(g->keeper, &step, &saved) || (saved > 0 && saved != AFZ_TOLD_NOT))
                return;
        g->agent.told_unsaved = true;
        afz_guard_say(
                g, "unsaved", false,
                "nothing of its %llu steps is saved as far as can be seen, and it cannot be "
                "asked to: if it has to be stopped, they are lost (antifreeze.on_checkpoint() "
                "or --checkpoint-signal help)",
                (unsigned long long)step);
}

#define STEPS(n) (unsigned long long)(n), (n) == 1 ? "" : "s"

void afz_guard_say_lost(struct afz_guard *g)
{
        uint64_t step, saved, base = g->agent.base_step;
        if (!afz_keeper_steps(g->keeper, &step, &saved))
                return;
        if (base > 0 && saved == AFZ_TOLD_NOT)
                saved = 0; /* it began with what an attempt before had saved */
        step += base;
        saved += saved == AFZ_TOLD_NOT ? 0 : base;
        bool known = saved != AFZ_TOLD_NOT && saved > 0;
        if (known && saved <= step)
                afz_guard_say(g, "lost-steps", true,
                              "%llu step%s lost: it was at step %llu, and step %llu is saved",
                              STEPS(step - saved), (unsigned long long)step,
                              (unsigned long long)saved);
        else if (!known && g->agent.now.saved)
                afz_guard_say(g, "lost-steps", true,
                              "it was at step %llu; what it did since it saved %s is lost",
                              (unsigned long long)step, g->agent.saved);
        else if (!known)
                afz_guard_say(g, "lost-steps", true, "%llu step%s lost: nothing was saved%s",
                              STEPS(step), saved == 0 ? "" : " as far as can be seen");
}
