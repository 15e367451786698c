#ifndef AFZ_TIER_CGROUP1_GROUP_H
#define AFZ_TIER_CGROUP1_GROUP_H
/* One cgroup of v1, which is a folder of the same name in several trees: memory, and what else is
 * there of freezer, pids, cpu and blkio. Inside the tier cgroup1.
 *
 * Processes are listed in the memory tree, which is the one that must be there. A list is opened
 * anew each time: the kernel gives an open cgroup.procs the same old list for up to a second.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cgroup_path.h"
#include "env.h"

struct afz_cgroup1 {
        int dir[AFZ_CONTROLLERS]; /* -1: not used */
        uint32_t made;            /* bit a controller: trees mounted together have one folder */
        int stat_fd, oom_fd;      /* memory.stat, memory.oom_control */
        int freezer_fd;           /* freezer.state, for writing; -1: there is none */
};

/* The folders of a process in each tree, to make a group below. -1 where a tree is not there. */
int afz_cgroup1_parents(const struct afz_env *env, const struct afz_cgroup_path *path,
                        int ret[AFZ_CONTROLLERS]);

/* Makes the folder in each tree of `wanted` (bits) that is there and lets us, and opens the files;
 * memory must work. */
int afz_cgroup1_make(const int parent[AFZ_CONTROLLERS], const char *name, uint32_t wanted,
                     struct afz_cgroup1 *ret);

/* Gives one tree up again. */
void afz_cgroup1_drop(struct afz_cgroup1 *group, const int parent[AFZ_CONTROLLERS],
                      const char *name, enum afz_controller controller);

/* Removes the folders with all empty cgroups below them, and closes the descriptors in any case.
 * -EBUSY: somebody lives in it. */
int afz_cgroup1_remove(struct afz_cgroup1 *group, const int parent[AFZ_CONTROLLERS],
                       const char *name);
void afz_cgroup1_close(struct afz_cgroup1 *group);

/* Moves a process. In a tree other than memory that refuses it, the bit stays out of `ret_in`. */
int afz_cgroup1_move(const int dir[AFZ_CONTROLLERS], pid_t pid, uint32_t *ret_in);

/* How many live in this folder alone, or -errno. For the tick: a walk over all below it looks at
 * every file. */
int afz_cgroup1_count(int dir_fd);

/* Whether there are cgroups below the folder, beside those that we know of. */
bool afz_cgroup1_has_below(int dir_fd, unsigned known);

/* Whether a process is in the cgroup `name` (as /proc/PID/cgroup has it) of the memory tree, or
 * below it. */
bool afz_cgroup1_is_in(const struct afz_env *env, const char *name, pid_t pid);

/* Sends a signal to all processes of a folder and below it that are in `name`, each by a descriptor
 * that was checked after it was opened. Returns a figure that is the same for the same processes,
 * so that a caller can tell whether new ones came; 0 when there are none. */
uint64_t afz_cgroup1_signal(const struct afz_env *env, int dir_fd, const char *name, int signal);

#endif
