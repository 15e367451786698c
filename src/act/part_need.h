#ifndef AFZ_PART_NEED_H
#define AFZ_PART_NEED_H
/* What a sub-job in a cgroup of its own holds, by its processes.
 *
 * Memory stays charged where it was first touched: what a sub-job took before it was split off (or
 * before the whole job was attached to) is missing in its own cgroup's figures. It is asked for
 * only when a sub-job has to be chosen: two files a process are read.
 */
#include <stdint.h>

#include "env.h"

/* Anonymous memory, in RAM and in swap, of all in the cgroup; what a fork has from a parent in the
 * same cgroup counts once. -ESRCH: nobody lives there. */
int afz_part_need(const struct afz_env *env, int dir_fd, uint64_t *ret_need_bytes);

#endif
