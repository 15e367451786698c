#include "hold_tier.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct afz_hold_tier *const afz_hold_tiers[AFZ_TIER_COUNT] = {
        &afz_hold_scope,
        &afz_hold_cgroup2,
        &afz_hold_cgroup1,
        &afz_hold_none,
};

int afz_hold_open(const struct afz_env *env, const struct afz_hold_plan *plan, pid_t pid,
                  pid_t keeper, enum afz_tier best, struct afz_hold *ret, char *why, size_t why_cap)
{
        size_t used = 0;
        int r = -ENODATA;
        if (why_cap > 0)
                why[0] = '\0';
        for (int i = 0; i < AFZ_TIER_COUNT; i++) {
                const struct afz_hold_tier *row = afz_hold_tiers[i];
                char reason[AFZ_HOLD_WHY_CAP] = "";
                void *state;
                if (row->tier > best)
                        continue;
                r = row->open(env, plan, pid, keeper, &state, reason);
                if (r >= 0) {
                        *ret = (struct afz_hold){.row = row, .state = state};
                        return 0;
                }
                if (reason[0] == '\0')
                        snprintf(reason, sizeof reason, "%s", strerror(-r));
                if (used < why_cap) {
                        int n = snprintf(why + used, why_cap - used, "%s: %s\n",
                                         afz_tier_name(row->tier), reason);
                        used += n > 0 ? (size_t)n : 0;
                }
                if (r == -ESRCH)
                        break;
        }
        return r;
}

void afz_hold_close(struct afz_hold *hold)
{
        if (hold->row)
                hold->row->close(hold->state);
        *hold = (struct afz_hold){0};
}
