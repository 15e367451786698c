#ifndef AFZ_TIER_SCOPE_H
#define AFZ_TIER_SCOPE_H
/* Whether a scope is the right place at all. Used by tier_scope.c and its test. */
#include <stdbool.h>

#include "cgroup_path.h"
#include "hold_tier.h"

/* Who starts in a batch job's cgroup, or in one with a limit of its own, would leave it for a
 * scope, and with it the limit, the accounting, and who ends it: then the job is held where it is.
 * What is below user.slice stays below it. Sets why, of AFZ_HOLD_WHY_CAP bytes. */
bool afz_scope_would_leave(const struct afz_env *env, const struct afz_cgroup_path *path,
                           char *why);

#endif
