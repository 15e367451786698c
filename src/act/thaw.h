#ifndef AFZ_THAW_H
#define AFZ_THAW_H
/* The deadman's deed: lifts a brake that a guard left when it died. Knows only what the run's page
 * says, and touches only the job's own cgroup. (Tier none has a deadman of its own: aide.h.)
 */
#include "env.h"
#include "hold.h"

/* `place` as afz_hold_tier.place() gave it. */
int afz_hold_thaw(const struct afz_env *env, enum afz_tier tier, const char *place);

#endif
