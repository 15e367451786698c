/* The picture before a stop: a short freeze in which somebody looks where it stands. */
#include "ladder_rules.h"

void afz_ladder_pictured(struct afz_ladder *ladder)
{
        if (!ladder->picturing)
                return;
        ladder->picturing = false;
        ladder->brake_until_ns = ladder->unpictured_until_ns;
}

static bool has_one(const struct afz_ladder *l, uint64_t t_ns, uint64_t age_ns)
{
        return l->picture_ns && t_ns - l->picture_ns < age_ns;
}

static void begin(struct afz_ladder *l, uint64_t t_ns, struct afz_decision *ret)
{
        l->picture_ns = t_ns;
        ret->picture = AFZ_PICTURE_TAKE;
}

/* The brake waits for it, a quarter of a second at most. */
static void hold(struct afz_ladder *l, uint64_t t_ns, uint64_t until_ns)
{
        l->picturing = true;
        l->unpictured_until_ns = until_ns;
        l->brake_until_ns = afz_most(until_ns, t_ns + afz_brake_pulse[AFZ_BRAKE_PICTURE].most_ns);
}

static void freeze(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret)
{
        if (afz_does(ret, AFZ_ACTION_RELEASE)) {
                /* Lifted in this look, and not yet done: it just goes on. */
                ret->actions &= ~(1U << AFZ_ACTION_RELEASE);
        } else if (!l->braked) {
                l->spill = true;
                l->brake_ns = look->t_ns;
                l->frozen_t_ns = 0;
                afz_do(ret, AFZ_ACTION_BRAKE);
        }
        l->braked = true;
        l->reason = AFZ_BRAKE_PICTURE;
        l->picture_cause = l->cause;
        hold(l, look->t_ns, look->t_ns);
}

/* A brake that is lifted in this look, and can as well stay: as it stands, the job gains nothing.
 */
static bool stands(const struct afz_look *look, const struct afz_decision *ret)
{
        return afz_does(ret, AFZ_ACTION_RELEASE) && look->need < look->guard;
}

bool afz_picture_first(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret)
{
        if (l->picturing)
                return l->braked;
        if (!l->setup.can_picture || has_one(l, look->t_ns, afz_rule.picture_old_ns) ||
            ((look->near || look->last) && !stands(look, ret)))
                return false;
        begin(l, look->t_ns, ret);
        if (!l->setup.can_brake)
                return false; /* as well as it can be while it runs */
        freeze(l, look, ret);
        return true;
}

/* When half of the brake's time is used up, it may well be stopped before the next one. */
void afz_picture_in_dose(struct afz_ladder *l, const struct afz_look *look,
                         struct afz_decision *ret)
{
        bool late = l->used_ns[AFZ_BRAKE_BUDGET] >= afz_tier_brake[l->setup.tier].climb_ns / 2;
        uint64_t age_ns = late ? afz_rule.picture_old_ns : afz_rule.picture_again_ns;
        if (!l->setup.can_picture || !afz_does(ret, AFZ_ACTION_BRAKE) ||
            l->reason != AFZ_BRAKE_BUDGET || has_one(l, look->t_ns, age_ns))
                return;
        begin(l, look->t_ns, ret);
        hold(l, look->t_ns, l->brake_until_ns);
}

bool afz_picture_unthawed(struct afz_ladder *l, const struct afz_look *look,
                          struct afz_decision *ret)
{
        return stands(look, ret) && afz_picture_first(l, look, ret);
}

void afz_picture_last(const struct afz_ladder *l, const struct afz_look *look,
                      struct afz_decision *ret)
{
        if (l->setup.can_picture && l->stage < AFZ_STAGE_INTERRUPTED && !l->storm &&
            !has_one(l, look->t_ns, afz_rule.picture_again_ns))
                ret->picture = AFZ_PICTURE_MISSED;
}
