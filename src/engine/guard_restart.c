/* Whether there is another attempt after this one, and what it will be like. */
#include <stdio.h>

#include "clock.h"
#include "guard_state.h"

static const struct {
        uint64_t unwind_ns; /* a program that ran out of memory, or was told to end, has ended by
                               then: it may save and free much before */
        uint64_t look_ns;   /* the keeper's last look at it takes some ms */
        uint64_t poll_ns;
} wait_for = {
        .unwind_ns = 60 * AFZ_NS_PER_S,
        .look_ns = 300 * AFZ_NS_PER_MS,
        .poll_ns = 5 * AFZ_NS_PER_MS,
};

/* It came so shortly before its end that it may be why it did not end well. */
static bool is_recent(const struct afz_guard *g, uint64_t t_ns)
{
        return t_ns > 0 && afz_guard_now(g) - t_ns < wait_for.unwind_ns;
}

/* By itself, of memory that it was refused. */
static bool ended_of_oom(const struct afz_guard *g)
{
        return g->root_ended && (g->root_signaled || g->root_status != 0) &&
               is_recent(g, g->agent.oom_ns);
}

/* NULL: it was not memory that ended it. */
static const char *reason(const struct afz_guard *g)
{
        return g->stop_asked                ? "stopped at its memory limit"
               : afz_guard_kernel_killed(g) ? "killed at its memory limit"
               : ended_of_oom(g)            ? "it ran out of memory"
                                            : NULL;
}

/* What it was at when it ended is in the keeper's books. */
static void look_at_steps(struct afz_guard *g)
{
        uint64_t end = afz_guard_now(g) + wait_for.look_ns;
        afz_keeper_look_now(g->keeper);
        while (!afz_keeper_looked(g->keeper) && afz_guard_now(g) < end)
                afz_guard_wait(g, afz_guard_now(g) + wait_for.poll_ns);
}

/* One that began with what an attempt before had saved may have saved nothing but that. */
static bool is_further(const struct afz_guard *g)
{
        uint64_t step, saved;
        return g->agent.base_step == 0 || !afz_keeper_looked(g->keeper) || /* nobody knows */
               !afz_keeper_steps(g->keeper, &step, &saved) || saved > 0;
}

static bool plan_next(struct afz_guard *g, struct afz_restart_plan *ret)
{
        struct afz_restart_facts facts = g->agent.now;
        if (g->order->batch > 0)
                return afz_restart_next(&g->plan, ret);
        facts.smaller &= !g->agent.refused;
        facts.saved &= is_further(g);
        /* What one job of a server told of itself is not the server's. */
        return g->order->policy == AFZ_POLICY_ADAPT && !g->server &&
               afz_restart_leaner(&g->plan, &facts, ret);
}

static void say_again(struct afz_guard *g, const char *why, const struct afz_restart_plan *next)
{
        char how[96] = "";
        const char *saved = g->agent.saved;
        if (next->batch > 0)
                snprintf(how, sizeof how, " with batch %llu and accumulation %llu",
                         (unsigned long long)next->batch, (unsigned long long)next->accum);
        else if (next->lean > g->plan.lean)
                snprintf(how, sizeof how, " with each batch in %u parts", 1U << next->lean);
        afz_guard_say(g, "restart", true, "%s; starting again%s%s%s (attempt %u of %u)", why, how,
                      saved[0] != '\0' ? " from " : "", saved, next->attempt + 1, next->most + 1);
}

/* The reason is in not_again, and so in the record. */
static void say_not_again(struct afz_guard *g, const char *way_out)
{
        afz_guard_say(g, "no-restart", false,
                      "not started again: %s. It would end in the same way%s", g->not_again,
                      way_out);
}

static void say_no_further(struct afz_guard *g)
{
        snprintf(g->not_again, sizeof g->not_again,
                 "it went on after step %llu, and nothing further is saved",
                 (unsigned long long)g->agent.base_step);
        say_not_again(g, "");
}

/* Whether the next attempt would end as this one did, which is then said. Who says how often it is
 * to be started again may know better: it goes on from files of its own, perhaps. */
static bool is_in_vain(struct afz_guard *g)
{
        struct afz_hindsight now = {0};
        char way_out[64];
        if (g->order->restarts_given || g->agent.now.saved || !afz_guard_hindsight(g, &now))
                return false;
        now.outside &= g->order->batch == 0; /* what {batch} changes, nobody knows */
        now.leaks &= g->order->checkpoint_signal == 0 && !g->order->checkpoint_cmd;
        enum afz_vain vain = afz_hindsight_vain(&g->hindsight, &now);
        g->hindsight = now;
        if (vain == AFZ_VAIN_NOT)
                return false;
        afz_vain_words(vain, &now, g->not_again, sizeof g->not_again);
        snprintf(way_out, sizeof way_out, " (--restarts %u starts it again all the same)",
                 g->order->restarts);
        say_not_again(g, way_out);
        return true;
}

/* Waits before the next attempt; false when somebody wants it to end meanwhile. */
static bool back_off(struct afz_guard *g)
{
        uint64_t begin = afz_guard_now(g);
        uint64_t end = begin + afz_restart_backoff_ns(&g->plan);
        while (afz_guard_now(g) < end) {
                afz_guard_wait(g, end);
                if (g->unwanted_ns >= begin)
                        return false;
        }
        return true;
}

bool afz_guard_again(struct afz_guard *g, bool left)
{
        struct afz_restart_plan next;
        const char *why = g->detach ? NULL : reason(g);
        if (!why)
                return false;
        /* While a part of it lives, nobody else holds that: no wait. */
        if (!left)
                look_at_steps(g);
        afz_guard_say_lost(g);
        /* Whether the checkpoint is still there is looked at by who reads it: its path is the
         * job's, and may be on a file system that answers no more. */
        if (left || is_recent(g, g->unwanted_ns))
                return false;
        if (!plan_next(g, &next)) {
                if (g->plan.attempt < g->plan.most && g->agent.now.saved && !is_further(g))
                        say_no_further(g);
                return false;
        }
        if (is_in_vain(g) || is_recent(g, g->unwanted_ns))
                return false;
        say_again(g, why, &next);
        g->plan = next;
        afz_guard_did(g, AFZ_ACTION_RESTART);
        return back_off(g);
}

void afz_guard_afresh(struct afz_guard *g)
{
        g->root_ended = g->root_signaled = g->stop_asked = g->user_stopped = false;
        g->killed = g->slowed = g->unparked = false;
        g->oom_kills_seen = 0;
        g->parts = 0;
        g->ack = AFZ_ACK_NONE;
        g->root_status = 0;
        g->asked_ns = g->stop_ns = g->gone_ns = g->picture_ns = 0;
        g->stop_cause = AFZ_CAUSE_NONE;
        g->pulse = (struct afz_pulse){0};
        g->report.shm.unmapped_bytes = 0;
        g->agent.now = (struct afz_restart_facts){0};
        g->agent.refused = false;
        g->agent.oom_ns = g->agent.base_step = g->agent.lost_ns = 0;
        g->agent.gave_up = false;
        afz_keeper_forget_steps(g->keeper);
}
