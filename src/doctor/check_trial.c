/* What was proved: the tiers, tried on a child of our own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "checks.h"
#include "clock.h"
#include "hold_tier.h"

/* A manager that does not answer is not waited for a second time. */
static bool is_known_silent(const struct afz_doctor_ctx *ctx, enum afz_tier tier)
{
        return tier == AFZ_TIER_SCOPE && ctx->manager.state == AFZ_MANAGER_SILENT;
}

static void try_one(const struct afz_doctor_ctx *ctx, enum afz_tier tier, struct afz_trial *ret)
{
        *ret = (struct afz_trial){.tier = tier};
        if (is_known_silent(ctx, tier)) {
                snprintf(ret->why, sizeof ret->why, "the systemd manager gives no answer");
                return;
        }
        int r = ctx->effects->trial(ctx->effects->ctx, ctx->env, tier, ret);
        if (r < 0)
                snprintf(ret->why, sizeof ret->why, "it could not be tried: %s", strerror(-r));
}

size_t afz_try_tiers(const struct afz_doctor_ctx *ctx, struct afz_trial ret[AFZ_TIER_COUNT])
{
        size_t n = 0;
        bool proved = false;
        while (ctx->effects->trial && !proved && n < AFZ_TIER_COUNT) {
                try_one(ctx, afz_hold_tiers[n]->tier, &ret[n]);
                proved = afz_trial_proved(&ret[n++]);
        }
        return n;
}

const struct afz_trial *afz_proved_trial(const struct afz_doctor_ctx *ctx)
{
        for (size_t i = 0; i < ctx->trials; i++)
                if (afz_trial_proved(&ctx->trial[i]))
                        return &ctx->trial[i];
        return NULL;
}

static enum afz_finding_level forecast(const struct afz_doctor_ctx *ctx, struct afz_finding *ret)
{
        static const char *const text[] = {
                [AFZ_TIER_UNKNOWN] = "not known: too little of it may be seen from here",
                [AFZ_TIER_NONE] = "none: a job could be watched and stopped, not limited",
                [AFZ_TIER_CGROUP1] = "cgroup1: limits in a v1 cgroup of our own",
                [AFZ_TIER_CGROUP2] = "cgroup2: limits in a cgroup of our own",
                [AFZ_TIER_SCOPE] = "scope: limits in a systemd scope, the best there is",
        };
        if (ctx->forecast == AFZ_TIER_NONE) {
                afz_fix(ret, "see cgroup layout, delegation and systemd above");
                return afz_find(ret, AFZ_FINDING_MISSING, "%s", text[ctx->forecast]);
        }
        return afz_find(ret,
                        ctx->forecast == AFZ_TIER_UNKNOWN ? AFZ_FINDING_UNKNOWN : AFZ_FINDING_OK,
                        "%s (a forecast, not yet proved)", text[ctx->forecast]);
}

AFZ_CHECK(tier)
{
        const struct afz_trial *t = afz_proved_trial(ctx);
        if (ctx->trials == 0)
                return forecast(ctx, ret);
        if (!t) {
                afz_fix(ret, "see the lines below; run with --no-trials for a forecast");
                return afz_find(ret, AFZ_FINDING_WARN, "no tier held in a trial");
        }
        unsigned long long ms = (t->took_ns + AFZ_NS_PER_MS - 1) / AFZ_NS_PER_MS;
        if (t->tier != AFZ_TIER_NONE)
                return afz_find(ret, AFZ_FINDING_OK,
                                "%s proved: limited, braked, killed in %llu ms",
                                afz_tier_name(t->tier), ms);
        afz_fix(ret, "see cgroup layout, delegation and systemd above");
        return afz_find(ret, AFZ_FINDING_MISSING,
                        "none proved: seen, braked, killed in %llu ms; a job can be watched and "
                        "stopped, not limited",
                        ms);
}

/* A line for each tier that was tried and did not hold; the one that did is told above. */
static enum afz_finding_level one_trial(const struct afz_doctor_ctx *ctx, enum afz_tier tier,
                                        struct afz_finding *ret)
{
        const struct afz_trial *t = NULL;
        for (size_t i = 0; i < ctx->trials; i++)
                if (ctx->trial[i].tier == tier)
                        t = &ctx->trial[i];
        if (!t || afz_trial_proved(t))
                return AFZ_FINDING_SKIP;
        if (!t->opened) {
                afz_fix(ret, "see cgroup layout, delegation and systemd above");
                return afz_find(ret, AFZ_FINDING_MISSING, "not to be had here: %s", t->why);
        }
        afz_fix(ret, "jobs get the next tier; antifreeze doctor --json has what held");
        return afz_find(ret, AFZ_FINDING_WARN, "tried, and it does not hold: %s", t->why);
}

AFZ_CHECK(trial_scope)
{
        return one_trial(ctx, AFZ_TIER_SCOPE, ret);
}

AFZ_CHECK(trial_cgroup2)
{
        return one_trial(ctx, AFZ_TIER_CGROUP2, ret);
}

AFZ_CHECK(trial_cgroup1)
{
        return one_trial(ctx, AFZ_TIER_CGROUP1, ret);
}

AFZ_CHECK(trial_none)
{
        return one_trial(ctx, AFZ_TIER_NONE, ret);
}
