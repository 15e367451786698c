#include "ladder.h"

#include <string.h>

#include "ladder_rules.h"

void afz_ladder_init(struct afz_ladder *ladder, const struct afz_ladder_setup *setup)
{
        memset(ladder, 0, sizeof(*ladder));
        afz_ladder_change(ladder, setup);
        afz_trail_init(&ladder->fine, 0);
        afz_trail_init(&ladder->coarse, afz_rule.grown_ns / AFZ_TRAIL_POINTS);
        afz_pressure_init(&ladder->pressure);
}

void afz_ladder_change(struct afz_ladder *ladder, const struct afz_ladder_setup *setup)
{
        ladder->setup = *setup;
        if (setup->policy == AFZ_POLICY_WATCH)
                ladder->setup.can_brake = false;
}

void afz_ladder_space(struct afz_ladder *ladder, const struct afz_space_word *word)
{
        ladder->space = *word;
        if (word->cause != AFZ_CAUSE_NONE)
                ladder->space_cause = word->cause;
}

void afz_ladder_gap(struct afz_ladder *ladder)
{
        ladder->gap = true;
}

void afz_ladder_again(struct afz_ladder *ladder)
{
        struct afz_ladder_setup setup = ladder->setup;
        uint64_t oom_kills = ladder->oom_kills;
        afz_ladder_init(ladder, &setup);
        ladder->oom_kills = oom_kills;
}

static void go(struct afz_ladder *l, enum afz_stage stage, uint64_t t_ns)
{
        l->stage = stage;
        l->stage_ns = t_ns;
        l->still_ns = 0;
}

static bool ask(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret)
{
        if (!l->setup.can_checkpoint ||
            (l->asked_ns && look->t_ns - l->asked_ns < afz_rule.ask_again_ns))
                return false;
        l->asked_ns = look->t_ns;
        afz_do(ret, AFZ_ACTION_CHECKPOINT);
        return true;
}

/* What is refused may end it, long before the rungs: who comes so near, so fast, is to have
 * something saved. Its stage stays. Not by a signal: many who get one save, and end. */
static void ask_early(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret)
{
        if (!l->setup.can_ask_early || l->braked || afz_does(ret, AFZ_ACTION_BRAKE) ||
            (l->asked_ns && look->t_ns - l->asked_ns < afz_rule.ask_early_ns))
                return;
        if (ask(l, look, ret))
                l->cause = l->setup.lowered ? AFZ_CAUSE_PRESSURE : AFZ_CAUSE_BUDGET;
}

/* Even where there is no time to wait for it, the job is asked to save first: a handler that only
 * closes a file may be quick enough. One that was asked before and is frozen stays so. */
static void kill_it(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret)
{
        ret->actions &= ~(1U << AFZ_ACTION_SQUEEZE);
        afz_picture_last(l, look, ret);
        if (afz_does(ret, AFZ_ACTION_BRAKE))
                afz_brake_lift(l, look->t_ns, ret);
        bool words = l->stage < AFZ_STAGE_ASKED && l->cause != AFZ_CAUSE_KERNEL && !l->storm;
        if (words && ask(l, look, ret))
                afz_brake_lift(l, look->t_ns, ret);
        else
                ret->actions &= ~(1U << AFZ_ACTION_RELEASE);
        go(l, AFZ_STAGE_KILLED, look->t_ns);
        afz_do(ret, AFZ_ACTION_KILL);
}

/* Whether a smaller step may still be on its way. */
static bool waits_for_less(const struct afz_ladder *l, const struct afz_look *look)
{
        return l->shrink_ns && look->t_ns - l->shrink_ns < afz_rule.shrink_ns;
}

static bool shrink(struct afz_ladder *l, const struct afz_look *look, uint64_t most,
                   struct afz_decision *ret)
{
        if (l->setup.policy != AFZ_POLICY_ADAPT || !l->setup.can_shrink || l->braked ||
            l->shrinks >= most || waits_for_less(l, look))
                return false;
        l->shrinks++;
        l->shrink_ns = look->t_ns;
        afz_do(ret, AFZ_ACTION_SHRINK);
        return true;
}

/* Asks, and from here on the job runs freely. */
static void begin_asking(struct afz_ladder *l, const struct afz_look *look,
                         struct afz_decision *ret)
{
        if (afz_picture_first(l, look, ret))
                return;
        afz_brake_lift(l, look->t_ns, ret);
        (void)shrink(l, look, afz_rule.shrinks, ret);
        (void)ask(l, look, ret);
        go(l, AFZ_STAGE_ASKED, look->t_ns);
}

static void come_down(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret)
{
        if (l->braked && (l->reason == AFZ_BRAKE_BUDGET || l->reason == AFZ_BRAKE_PICTURE))
                afz_brake_lift(l, look->t_ns, ret);
        l->proved_bytes =
                afz_most(l->proved_bytes, afz_least(l->peak_bytes, l->setup.lines.stop_bytes));
        l->peak_bytes = 0;
        l->shrinks = 0;
        l->shrink_ns = 0;
        l->cause = AFZ_CAUSE_NONE;
        go(l, AFZ_STAGE_CALM, look->t_ns);
}

static uint64_t below_act(const struct afz_ladder *l)
{
        uint64_t act = l->setup.lines.act_bytes;
        return act - act / 100 * afz_rule.again_percent;
}

/* It does not grow, for a second of its own time. */
static bool rests(struct afz_ladder *l, const struct afz_look *look)
{
        if (look->growing || !l->still_ns)
                l->still_ns = look->growing ? 0 : l->run_ns + 1;
        return l->still_ns && l->run_ns + 1 - l->still_ns >= afz_rule.still_ns;
}

/* The reasons to stop it, as they stand in this look. */
struct reason {
        bool stop; /* it must be stopped */
        bool now;  /* and there is no time for words */
        enum afz_cause cause;
};

static struct reason reasons(const struct afz_ladder *l, const struct afz_look *look,
                             bool press_stop, bool press_now)
{
        struct reason r = {.stop = press_stop, .now = press_now, .cause = AFZ_CAUSE_PRESSURE};
        if (!look->has_need)
                return r;
        bool budget = (look->need >= look->stop && (look->growing || look->near)) ||
                      look->need >= look->guard;
        if (!budget)
                return r;
        return (struct reason){
                .stop = true,
                .now = look->near || look->last || press_now,
                .cause = l->setup.lowered ? AFZ_CAUSE_PRESSURE : AFZ_CAUSE_BUDGET,
        };
}

static bool hurts_unheld(const struct afz_ladder *l)
{
        return l->setup.tier == AFZ_TIER_NONE && (l->pressure.low || l->pressure.hurting);
}

static uint64_t grace(const struct afz_ladder *l)
{
        return hurts_unheld(l) ? afz_least(l->setup.grace_ns, afz_rule.hurt_grace_ns)
                               : l->setup.grace_ns;
}

static void begin_stop(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret)
{
        if (afz_picture_first(l, look, ret))
                return;
        afz_picture_last(l, look, ret);
        l->stop_ns = look->t_ns;
        afz_brake_lift(l, look->t_ns, ret);
        if (!grace(l)) {
                kill_it(l, look, ret);
                return;
        }
        bool gently = !hurts_unheld(l);
        afz_do(ret, gently ? AFZ_ACTION_INTERRUPT : AFZ_ACTION_TERMINATE);
        go(l, gently ? AFZ_STAGE_INTERRUPTED : AFZ_STAGE_TERMINATED, look->t_ns);
}

static bool waits_for_answer(const struct afz_ladder *l, const struct afz_look *look,
                             enum afz_ack ack)
{
        if (!l->asked_ns || ack == AFZ_ACK_SAVED || ack == AFZ_ACK_CANNOT)
                return false;
        uint64_t most = grace(l);
        if (ack == AFZ_ACK_NONE)
                most = afz_least(most, afz_rule.asking_ns);
        else if (ack == AFZ_ACK_ASKED)
                most = afz_least(most, afz_rule.answer_ns);
        return look->t_ns - l->asked_ns < most;
}

/* A climb that is so fast is made by large things, which will be refused; what comes further was
 * not. */
static bool is_refused(const struct afz_ladder *l, const struct afz_look *look)
{
        const struct afz_lines *lines = &l->setup.lines;
        return l->setup.refuses && look->need < (lines->act_bytes + lines->stop_bytes) / 2 &&
               look->need + afz_reach(look->slope, afz_rule.sudden_ns) >= look->stop;
}

/* Whether the stop waits for a smaller step: only as long as there is room left for words after it,
 * and what is saved (or never will be) is better stopped in time. */
static bool holds_for_less(const struct afz_ladder *l, const struct afz_look *look,
                           enum afz_ack ack)
{
        const struct afz_lines *lines = &l->setup.lines;
        uint64_t margin = afz_less(lines->hard_bytes, lines->stop_bytes);
        if (look->need + afz_reach(look->slope, afz_rule.words_ns) >= lines->hard_bytes)
                return false;
        return waits_for_less(l, look) && l->setup.can_shrink && ack != AFZ_ACK_SAVED &&
               ack != AFZ_ACK_CANNOT && look->need < look->stop + margin / afz_rule.shrink_part;
}

/* The rungs: what a stage does in a look. */

static void rung_calm(struct afz_ladder *l, const struct afz_look *look, enum afz_ack ack,
                      const struct reason *why, struct afz_decision *ret)
{
        (void)ack;
        const struct afz_lines *lines = &l->setup.lines;
        if (why->stop) {
                l->cause = why->cause;
                l->peak_bytes = look->need;
                begin_asking(l, look, ret);
                return;
        }
        if (!look->has_need)
                return;
        uint64_t from =
                afz_most(lines->act_bytes, l->proved_bytes ? l->proved_bytes + look->noise : 0);
        if (look->need < from || !look->growing)
                return;
        if (is_refused(l, look)) {
                ask_early(l, look, ret);
                return;
        }
        l->cause = l->setup.lowered ? AFZ_CAUSE_PRESSURE : AFZ_CAUSE_BUDGET;
        l->climb_ns = look->t_ns;
        l->base_bytes = from;
        l->released_bytes = 0;
        l->peak_bytes = look->need;
        go(l, AFZ_STAGE_OVER, look->t_ns);
        if (!shrink(l, look, 1, ret)) /* no words to a frozen job: the dose comes a look later */
                afz_brake_dose(l, look, ret);
}

/* A smaller step is waited for, unless too little is left of the way. */
static bool may_wait_for_less(const struct afz_ladder *l, const struct afz_look *look)
{
        uint64_t way = afz_less(look->stop, l->base_bytes);
        return waits_for_less(l, look) &&
               look->need < l->base_bytes + way - way / afz_rule.shrink_part;
}

static void rung_over(struct afz_ladder *l, const struct afz_look *look, enum afz_ack ack,
                      const struct reason *why, struct afz_decision *ret)
{
        (void)ack;
        if (!look->has_need) {
                if (why->stop)
                        begin_asking(l, look, ret);
                return;
        }
        l->peak_bytes = afz_most(l->peak_bytes, look->need);
        uint64_t half = l->base_bytes + afz_less(look->stop, l->base_bytes) / 2;
        bool used = l->used_ns[AFZ_BRAKE_BUDGET] >= afz_tier_brake[l->setup.tier].climb_ns;
        if (why->stop) {
                l->cause = why->cause;
                begin_asking(l, look, ret);
        } else if (look->need < below_act(l) || rests(l, look)) {
                come_down(l, look, ret);
        } else if (l->braked || is_refused(l, look)) {
                return; /* its pulse ends first */
        } else if (look->growing && look->need >= l->base_bytes && (used || look->need >= half) &&
                   !may_wait_for_less(l, look)) {
                begin_asking(l, look, ret);
        } else if (!shrink(l, look, 1, ret)) {
                afz_brake_dose(l, look, ret);
        }
}

static void rung_asked(struct afz_ladder *l, const struct afz_look *look, enum afz_ack ack,
                       const struct reason *why, struct afz_decision *ret)
{
        l->peak_bytes = afz_most(l->peak_bytes, look->need);
        if (why->stop) {
                l->cause = why->cause;
                if (!waits_for_answer(l, look, ack) && !holds_for_less(l, look, ack) &&
                    look->t_ns > l->stage_ns)
                        begin_stop(l, look, ret);
        } else if (look->has_need && (look->need < below_act(l) || rests(l, look)) &&
                   !waits_for_answer(l, look, ack)) {
                come_down(l, look, ret);
        }
}

static void rung_interrupted(struct afz_ladder *l, const struct afz_look *look, enum afz_ack ack,
                             const struct reason *why, struct afz_decision *ret)
{
        (void)ack;
        uint64_t share = afz_least(grace(l) / afz_rule.int_part, afz_rule.int_most_ns);
        /* A notebook's kernel drops what it computed and lives on: all is well again. */
        if (look->has_need && look->need < below_act(l) && !why->stop) {
                come_down(l, look, ret);
        } else if (look->t_ns - l->stop_ns >= share) {
                afz_do(ret, AFZ_ACTION_TERMINATE);
                go(l, AFZ_STAGE_TERMINATED, look->t_ns);
        }
}

static void rung_terminated(struct afz_ladder *l, const struct afz_look *look, enum afz_ack ack,
                            const struct reason *why, struct afz_decision *ret)
{
        (void)ack;
        (void)why;
        if (look->t_ns - l->stop_ns >= grace(l))
                kill_it(l, look, ret);
}

static void rung_killed(struct afz_ladder *l, const struct afz_look *look, enum afz_ack ack,
                        const struct reason *why, struct afz_decision *ret)
{
        (void)ack;
        (void)why;
        if (look->t_ns - l->stage_ns >= afz_rule.rekill_ns) {
                l->stage_ns = look->t_ns;
                afz_do(ret, AFZ_ACTION_KILL);
        }
}

/* The ladder. Any rung is left for KILL when there is no time (reason.now, or a brake that does
 * not hold); look_ns: one looks again so soon, or sooner near the stop line. */
static const struct {
        void (*take)(struct afz_ladder *l, const struct afz_look *look, enum afz_ack ack,
                     const struct reason *why, struct afz_decision *ret);
        uint64_t look_ns;
} rungs[AFZ_STAGE_COUNT] = {
        [AFZ_STAGE_CALM] = {rung_calm, 100 * AFZ_MS},
        [AFZ_STAGE_OVER] = {rung_over, 5 * AFZ_MS},
        [AFZ_STAGE_ASKED] = {rung_asked, 5 * AFZ_MS},
        [AFZ_STAGE_INTERRUPTED] = {rung_interrupted, 5 * AFZ_MS},
        [AFZ_STAGE_TERMINATED] = {rung_terminated, 5 * AFZ_MS},
        [AFZ_STAGE_KILLED] = {rung_killed, 5 * AFZ_MS},
};

/* Once when act is crossed; again only after it was well below. */
static void tell_budget(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret)
{
        if (!look->has_need)
                return;
        if (look->need < below_act(l))
                l->told = false;
        else if (look->need >= l->setup.lines.act_bytes && !l->told)
                l->told = afz_ladder_tell(ret,
                                          l->setup.lowered ? AFZ_CAUSE_PRESSURE : AFZ_CAUSE_BUDGET);
}

static bool kernel_was_first(struct afz_ladder *l, const struct afz_pulse *pulse)
{
        uint64_t kills;
        if (!afz_pulse_get(pulse, AFZ_PULSE_OOM_KILLS, &kills) || kills <= l->oom_kills)
                return false;
        l->oom_kills = kills;
        return true;
}

static void decide(struct afz_ladder *l, const struct afz_pulse *pulse, const struct afz_look *look,
                   enum afz_ack ack, struct afz_decision *ret)
{
        if (kernel_was_first(l, pulse) && l->stage != AFZ_STAGE_KILLED) {
                (void)afz_ladder_tell(ret, AFZ_CAUSE_KERNEL);
                if (!l->setup.parts_alone) {
                        l->cause = AFZ_CAUSE_KERNEL;
                        kill_it(l, look, ret);
                        return;
                }
        }
        if (l->stage == AFZ_STAGE_KILLED) {
                rung_killed(l, look, ack, NULL, ret);
                return;
        }
        tell_budget(l, look, ret);
        afz_brake_turn(l, look, ret);
        bool press_now, fails = afz_brake_fails(l, look);
        if (afz_ladder_storm(l, pulse, look, ret)) {
                l->cause = AFZ_CAUSE_BUDGET;
                l->storm = true;
                kill_it(l, look, ret);
                return;
        }
        bool press = afz_ladder_press(l, pulse, look, ret, &press_now);
        struct reason why = reasons(l, look, press, press_now);
        /* A frozen job gains nothing from its slope: it is judged when it is to run again. */
        bool still = l->braked && !afz_does(ret, AFZ_ACTION_BRAKE) && look->has_need &&
                     look->need < look->guard;
        if (fails || (why.now && !still)) {
                l->cause = why.stop           ? why.cause
                           : l->setup.lowered ? AFZ_CAUSE_PRESSURE
                                              : AFZ_CAUSE_BUDGET;
                if (fails || !afz_picture_unthawed(l, look, ret))
                        kill_it(l, look, ret);
                return;
        }
        if (still)
                why.stop = false;
        rungs[l->stage].take(l, look, ack, &why, ret);
        afz_ladder_fill(l, look, ret);
        afz_picture_in_dose(l, look, ret);
}

/* Only what it sees. */
static void watch(struct afz_ladder *l, const struct afz_pulse *pulse, const struct afz_look *look,
                  struct afz_decision *ret)
{
        bool now;
        if (kernel_was_first(l, pulse))
                (void)afz_ladder_tell(ret, AFZ_CAUSE_KERNEL);
        tell_budget(l, look, ret);
        (void)afz_ladder_press(l, pulse, look, ret, &now);
        afz_ladder_fill(l, look, ret);
        ret->actions &= 1U << AFZ_ACTION_TELL;
}

/* When to look again: as often as can be where hard could be reached in a few looks. */
static uint64_t wake(const struct afz_ladder *l, const struct afz_look *look)
{
        uint64_t ns = rungs[l->stage].look_ns, left = afz_less(look->stop, look->need);
        if (l->setup.policy == AFZ_POLICY_WATCH)
                return look->t_ns + afz_rule.look_calm_ns;
        if (l->stage == AFZ_STAGE_CALM && (l->pressed_ns || l->storms))
                ns = afz_rule.look_watch_ns;
        if (l->stage != AFZ_STAGE_CALM && look->has_need &&
            (left < afz_rule.close_bytes || afz_reach(look->slope, 100 * AFZ_MS) >= left))
                ns = afz_rule.look_fast_ns;
        if (!l->braked)
                return look->t_ns + ns;
        bool proving = look->t_ns - l->brake_ns < 40 * AFZ_MS;
        uint64_t t = look->t_ns + (proving ? afz_rule.look_near_ns : afz_rule.look_watch_ns);
        return afz_least(t, afz_most(l->brake_until_ns, look->t_ns + afz_rule.look_fast_ns));
}

/* The cause of the strongest thing that is done. */
static void name_cause(const struct afz_ladder *l, struct afz_decision *ret)
{
        static const enum afz_cause of_brake[AFZ_BRAKE_COUNT] = {
                [AFZ_BRAKE_BUDGET] = AFZ_CAUSE_BUDGET,
                [AFZ_BRAKE_PRESSURE] = AFZ_CAUSE_PRESSURE,
                [AFZ_BRAKE_STORM] = AFZ_CAUSE_BUDGET,
        };
        const uint32_t brake = 1U << AFZ_ACTION_BRAKE | 1U << AFZ_ACTION_RELEASE;
        const uint32_t small = brake | 1U << AFZ_ACTION_TELL | 1U << AFZ_ACTION_SQUEEZE;
        if (ret->actions & ~small || (!ret->actions && l->stage != AFZ_STAGE_CALM)) {
                ret->cause = l->cause;
                ret->storm = l->storm;
        } else if (ret->actions && !afz_does(ret, AFZ_ACTION_TELL)) {
                ret->cause = !(ret->actions & brake)          ? AFZ_CAUSE_PRESSURE
                             : l->reason == AFZ_BRAKE_SPACE   ? l->space_cause
                             : l->reason == AFZ_BRAKE_PICTURE ? l->picture_cause
                                                              : of_brake[l->reason];
                ret->storm = ret->actions & brake && l->reason == AFZ_BRAKE_STORM;
        }
}

void afz_ladder_step(struct afz_ladder *ladder, const struct afz_pulse *pulse, enum afz_ack ack,
                     struct afz_decision *ret)
{
        struct afz_look look;
        memset(ret, 0, sizeof(*ret));
        afz_ladder_look(ladder, pulse, &look);
        if (ladder->setup.policy == AFZ_POLICY_WATCH)
                watch(ladder, pulse, &look, ret);
        else
                decide(ladder, pulse, &look, ack, ret);
        if (look.has_need)
                ladder->last_need_bytes = look.need;
        name_cause(ladder, ret);
        ret->slope_bytes_per_s = afz_trail_rate(&ladder->coarse, afz_rule.coarse_ns);
        ret->over = ladder->stage == AFZ_STAGE_KILLED;
        ret->wake_ns = ladder->last_wake_ns = wake(ladder, &look);
}
