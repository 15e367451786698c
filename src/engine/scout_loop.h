#ifndef AFZ_SCOUT_LOOP_H
#define AFZ_SCOUT_LOOP_H
/* The scout's own life, in its process. */
#include "scout_shared.h"

/* Looks until the other end of root_fd closes. Over root_fd come pids (pid_t, whole), the newest of
 * which is the job's root. */
void afz_scout_loop(const struct afz_env *env, int root_fd, struct afz_scout_shared *shared);

#endif
