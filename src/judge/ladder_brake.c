#include "ladder_rules.h"

bool afz_brake_start(struct afz_ladder *l, enum afz_brake_reason reason, uint64_t t_ns, uint64_t ns,
                     uint64_t total_ns, struct afz_decision *ret)
{
        uint64_t used = l->used_ns[reason];
        l->rested_ns[reason] = 0;
        if (!l->setup.can_brake || l->stage >= AFZ_STAGE_ASKED || l->braked || used >= total_ns)
                return false;
        if (afz_does(ret, AFZ_ACTION_RELEASE))
                return false; /* it runs a moment at least */
        if (l->released_ns && t_ns - l->released_ns < afz_brake_pulse[reason].run_ns)
                return false;
        ns = afz_most(afz_least(ns, afz_brake_pulse[reason].most_ns),
                      afz_brake_pulse[reason].least_ns);
        l->braked = true;
        l->spill = true;
        l->reason = reason;
        l->brake_ns = t_ns;
        /* Its last pulse may be short: a climb never has more than its total. */
        l->brake_until_ns = t_ns + afz_least(ns, total_ns - used);
        l->frozen_t_ns = 0;
        afz_do(ret, AFZ_ACTION_BRAKE);
        return true;
}

void afz_brake_lift(struct afz_ladder *l, uint64_t t_ns, struct afz_decision *ret)
{
        if (!l->braked)
                return;
        l->braked = l->picturing = false;
        if (afz_does(ret, AFZ_ACTION_BRAKE)) { /* meant in this look, and not yet done */
                ret->actions &= ~(1U << AFZ_ACTION_BRAKE);
                return;
        }
        l->released_ns = t_ns;
        l->released_bytes = l->last_need_bytes;
        afz_do(ret, AFZ_ACTION_RELEASE);
}

void afz_brake_turn(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret)
{
        for (unsigned r = 0; r < AFZ_BRAKE_COUNT; r++) {
                if (l->braked && l->reason == r) {
                        l->rested_ns[r] = 0;
                        continue;
                }
                if (!l->rested_ns[r])
                        l->rested_ns[r] = look->t_ns;
                if (look->t_ns - l->rested_ns[r] >= afz_brake_pulse[r].rest_ns)
                        l->used_ns[r] = 0;
        }
        if (l->braked && look->t_ns >= l->brake_until_ns)
                afz_brake_lift(l, look->t_ns, ret);
}

bool afz_brake_fails(struct afz_ladder *l, const struct afz_look *look)
{
        uint64_t before = l->last_need_bytes;
        if (!l->braked || !look->has_need || look->t_ns - l->brake_ns < afz_rule.settle_ns)
                return false;
        if (!l->frozen_t_ns) {
                l->frozen_t_ns = look->t_ns;
                l->frozen_bytes = look->need;
                return false;
        }
        if (look->t_ns - l->brake_ns < 20 * AFZ_MS)
                return false;
        uint64_t grown = afz_less(look->need, l->frozen_bytes);
        uint64_t ns = look->t_ns - l->frozen_t_ns;
        if (grown <= afz_rule.noise_bytes || look->need <= before || !ns)
                return false;
        uint64_t rate = (uint64_t)((double)grown * 1e9 / (double)ns);
        return afz_reach(rate, afz_rule.near_ns) >= afz_less(l->setup.lines.hard_bytes, look->need);
}

/* A line that rises from where the climb began to half way to stop, in the brake's total time: a
 * job below it is never frozen, one that is faster is frozen until the line has caught up. */
void afz_brake_dose(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret)
{
        uint64_t total = afz_tier_brake[l->setup.tier].climb_ns;
        uint64_t half = afz_less(look->stop, l->base_bytes) / 2;
        if (!half || look->need <= l->base_bytes)
                return;
        uint64_t rate = afz_most((uint64_t)((double)half * 1e9 / (double)total), 1);
        uint64_t allowed = l->base_bytes + afz_reach(rate, look->t_ns - l->climb_ns);
        uint64_t dose = afz_most(half / afz_rule.dose_part, afz_rule.noise_bytes / 2);
        uint64_t next =
                afz_reach(look->slope, afz_rule.look_fast_ns + l->late_ns + afz_rule.freeze_ns);
        bool at_once = !l->released_bytes && look->slope / 2 > rate;
        if (!at_once && look->need + next <= allowed + dose)
                return;
        /* It has had its dose only when it took it: a burst that is over runs on. */
        if (look->slope <= rate ||
            (l->released_bytes && look->need < l->released_bytes + afz_rule.noise_bytes / 4))
                return;
        uint64_t ahead = afz_less(look->need, allowed);
        uint64_t ns = ahead / rate >= 10 ? 10 * AFZ_SECOND
                                         : (uint64_t)((double)ahead * 1e9 / (double)rate);
        (void)afz_brake_start(l, AFZ_BRAKE_BUDGET, look->t_ns, ns, total, ret);
}
