#ifndef AFZ_TIER_SCOPE_H
#define AFZ_TIER_SCOPE_H
/* Whether a scope is the right place at all. Used by tier_scope.c, by tier_cgroup2.c for who is
 * attached to, and by the test. */
#include <stdbool.h>
#include <sys/types.h>

#include "hold_tier.h"

/* Of a process, which need not be where we are. Who is in a batch job's cgroup, or in one with a
 * limit of its own, would leave it for a scope, and with it the limit, the accounting, and who ends
 * it: then the job is held where it is. What is below user.slice stays below it. Sets why, of
 * AFZ_HOLD_WHY_CAP bytes. */
bool afz_scope_takes_out(const struct afz_env *env, pid_t pid, char *why);

#endif
