#ifndef AFZ_TIER_CGROUP1_PLACE_H
#define AFZ_TIER_CGROUP1_PLACE_H
/* What can be done about a hold of tier cgroup1 by somebody who knows only its place:
 *
 *      memory,pids:/a/antifreeze-ID;cpu,freezer:/antifreeze-ID;
 *
 * the path in each tree. It begins with a letter, which a place of v2 does not. The text
 * may have been written by anybody: a path that is not one of ours is -EINVAL.
 */
#include "env.h"

/* Removes what is empty; -EBUSY: somebody lives in it. See afz_hold_collect(). */
int afz_cgroup1_collect(const struct afz_env *env, const char *place);

/* Lifts the brake. -ENODATA: this hold has no freezer. */
int afz_cgroup1_thaw(const struct afz_env *env, const char *place);

#endif
