#ifndef AFZ_CGROUP_PATH_H
#define AFZ_CGROUP_PATH_H
/* Where a process's cgroups are, in all three layouts:
 *
 *   v2      /sys/fs/cgroup/PATH has everything
 *   v1      /sys/fs/cgroup/CONTROLLER/PATH, one tree a controller
 *   hybrid  v1 for memory, and a v2 tree without controllers under /sys/fs/cgroup/unified
 *
 * All paths here are relative to the cgroup root of the env, without a leading slash.
 */
#include <stdbool.h>
#include <stdint.h>

#include "env.h"

enum afz_controller {
        AFZ_CG_MEMORY,
        AFZ_CG_CPU,
        AFZ_CG_CPUACCT,
        AFZ_CG_IO,
        AFZ_CG_PIDS,
        AFZ_CG_FREEZER,
        AFZ_CONTROLLERS
};

#define AFZ_CGROUP_PATH_MAX 512

/* v1 writes "no limit" as the largest whole number of pages in a signed 64-bit number; pages are
 * 64 KiB at most, so that no limit is less than this. */
#define AFZ_CGROUP_V1_NO_LIMIT ((uint64_t)INT64_MAX & ~UINT64_C(0xffff))

struct afz_cgroup_path {
        int version;                                    /* of the memory controller: 1 or 2 */
        char name[AFZ_CGROUP_PATH_MAX];                 /* as /proc/PID/cgroup has it, for people */
        char dir[AFZ_CONTROLLERS][AFZ_CGROUP_PATH_MAX]; /* "" where that controller is not */
};

/* The path of one controller in the text of /proc/PID/cgroup; "" asks for the v2 line. Pure.
 * -ENODATA when there is no such line. */
int afz_cgroup_parse(struct afz_span text, const char *controller, char *ret, size_t cap);

/* The cgroups of a process (0: our own). -ESRCH: there is no such process; -ENODATA: no cgroups, on
 * v1 no memory controller, or a cgroup that we cannot see (removed, or outside of our namespace).
 * On v2 the memory controller may still be missing: then the cgroup has no memory files. */
int afz_cgroup_path_of(const struct afz_env *env, uint64_t pid, struct afz_cgroup_path *ret);

/* Moves to the parent; false at the top. */
bool afz_cgroup_path_up(struct afz_cgroup_path *path);

#endif
