#ifndef AFZ_SCOUT_PARTS_H
#define AFZ_SCOUT_PARTS_H
/* Which notebook a kernel belongs to. */
#include "env.h"
#include "scout.h"

/* Fills part_name. A notebook server tells its kernels in their environment; where it does not, or
 * we may not look, the name is "". */
void afz_scout_parts_name(const struct afz_env *env, struct afz_scout_report *report);

#endif
