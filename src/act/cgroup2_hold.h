#ifndef AFZ_CGROUP2_HOLD_H
#define AFZ_CGROUP2_HOLD_H
/* A hold on cgroup v2, from a folder that is ours alone. Inside the tiers scope and cgroup2, which
 * differ only in how they come by that folder.
 *
 *      antifreeze-ID/          ours (or the scope's, delegated to us)
 *              keeper/         the keeper, outside of the job's limits
 *              job/            the limits
 *                      main/   the processes (v2 wants them in leaves)
 *                      part-N/ those of a sub-job
 *
 * All that the tick uses is open: a cgroup that is removed and made anew is another one, and the
 * old descriptors say -ENODEV.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cgroup_path.h"
#include "hold_tier.h"
#include "reclaimer.h"

enum afz_cgroup2_file {
        AFZ_CG2_STAT,
        AFZ_CG2_SWAP,
        AFZ_CG2_EVENTS,
        AFZ_CG2_PRESSURE,
        AFZ_CG2_PIDS,
        AFZ_CG2_POPULATED,
        AFZ_CG2_CURRENT,
        AFZ_CG2_FREEZE,
        AFZ_CG2_KILL,
        AFZ_CG2_MAX,
        AFZ_CG2_SWAP_MAX,
        AFZ_CG2_FILES
};

/* A leaf, or the job as a whole. */
struct afz_cgroup2_group {
        int dir_fd; /* -1: none */
        int fd[AFZ_CG2_FILES];
};

struct afz_cgroup2_hold {
        const struct afz_env *env;
        bool own;            /* the base is ours to remove; else the manager does it */
        bool adopted, whole; /* as in the plan */
        bool ready;          /* it was opened with success */
        int parent_fd, base_fd, origin_fd;
        int oom_fd;     /* readable when memory.events has news since the last look */
        char name[128]; /* of the base in its parent */
        char place[AFZ_HOLD_PLACE_CAP];   /* of the base: "/..." below the cgroup root */
        char inside[AFZ_CGROUP_PATH_MAX]; /* of the job, as /proc/PID/cgroup has it */
        struct afz_cgroup2_group job, main;
        struct afz_cgroup2_group part[AFZ_HOLD_PARTS];
        struct afz_reclaimer reclaimer;
        void *tree; /* of an adopted job: a hold of tier none, which only looks */
};

/* Where to build. */
struct afz_cgroup2_base {
        const struct afz_cgroup_path *path; /* of the base itself */
        /* By us just now: it is empty, ours to remove, and takes the processes last; else they are
         * in it already and must be out before it takes limits. */
        bool made;
        int origin_fd; /* where the job was before; the hold's from now on. -1: not to be had */
};

/* The cgroup of a process, opened, or -1. */
int afz_cgroup2_origin(const struct afz_env *env, pid_t pid);

/* Builds all of it, proves it, moves the processes in. On failure everything is put back that can
 * be, but for the base itself. `why` as in hold_tier.h. */
int afz_cgroup2_hold_new(const struct afz_env *env, const struct afz_hold_plan *plan,
                         const struct afz_cgroup2_base *base, pid_t pid, pid_t keeper,
                         struct afz_cgroup2_hold **ret, char *why);

/* Opens the files of a group: what the tick needs of the job, or of a leaf. */
int afz_cgroup2_group_open(int dir_fd, bool leaf, struct afz_cgroup2_group *ret);
void afz_cgroup2_group_close(struct afz_cgroup2_group *group);

/* Calls `each` for all descendants of a process, parents before their children are listed, until it
 * fails (-ESRCH aside). */
int afz_cgroup2_each_below(const struct afz_env *env, pid_t pid, int (*each)(void *ctx, pid_t pid),
                           void *ctx);

/* Moves a process and all below it, parents first: what they fork later is born inside. */
int afz_cgroup2_move_tree(const struct afz_env *env, int dir_fd, pid_t pid);

/* Turns controllers on for the folder's children, as many as are needed there: in a leaf's parent
 * memory, in a folder that is not ours memory and pids (which change nothing for others), in our
 * own cpu and io too. Memory must work, the rest may be missing. -EBUSY: processes live in it;
 * -ENODATA: it has no memory controller to pass on. */
enum afz_cgroup2_reach { AFZ_CG2_MEMORY = 1, AFZ_CG2_MEMORY_PIDS, AFZ_CG2_ALL = 4 };
int afz_cgroup2_enable(int dir_fd, enum afz_cgroup2_reach reach);

/* The rows' functions, the same for both tiers. */
int afz_cgroup2_look(void *hold, struct afz_pulse *ret);
int afz_cgroup2_oom_fd(const void *hold);
int afz_cgroup2_limit(void *hold, const struct afz_budget *budget);
int afz_cgroup2_brake(void *hold);
int afz_cgroup2_release(void *hold);
int afz_cgroup2_squeeze(void *hold, uint64_t bytes);
int afz_cgroup2_slow(void *hold, uint64_t bytes);
int afz_cgroup2_kill(void *hold);
int afz_cgroup2_split(void *hold, pid_t pid);
int afz_cgroup2_look_part(void *hold, unsigned part, uint64_t *ret_need_bytes);
int afz_cgroup2_kill_part(void *hold, unsigned part);
pid_t afz_cgroup2_other(void *hold, pid_t not );
void afz_cgroup2_place(const void *hold, char buf[AFZ_HOLD_PLACE_CAP]);
void afz_cgroup2_close(void *hold);

#define AFZ_CGROUP2_ROW                                                                            \
        .look = afz_cgroup2_look, .oom_fd = afz_cgroup2_oom_fd, .limit = afz_cgroup2_limit,        \
        .brake = afz_cgroup2_brake, .release = afz_cgroup2_release,                                \
        .squeeze = afz_cgroup2_squeeze, .slow = afz_cgroup2_slow, .kill = afz_cgroup2_kill,        \
        .split = afz_cgroup2_split, .look_part = afz_cgroup2_look_part,                            \
        .kill_part = afz_cgroup2_kill_part, .other = afz_cgroup2_other,                            \
        .place = afz_cgroup2_place, .close = afz_cgroup2_close

#endif
