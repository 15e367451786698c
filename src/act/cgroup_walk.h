#ifndef AFZ_CGROUP_WALK_H
#define AFZ_CGROUP_WALK_H
/* A cgroup with all cgroups below it: a job may make some inside its own. Nothing is allocated; the
 * lists are opened anew at each walk. v1 and v2 alike.
 */
#include <sys/types.h>

/* Calls `each` for every process, until it returns anything but 0, which is then the answer.
 * Processes outside of our pid namespace have no number and are left out. */
int afz_cgroup_each_pid(int dir_fd, int (*each)(void *ctx, pid_t pid), void *ctx);

/* Removes a folder and all below it, deepest first. -EBUSY: somebody lives in it; then what is
 * empty is gone all the same. One that is not there is fine. */
int afz_cgroup_remove_tree(int parent_fd, const char *name);

#endif
