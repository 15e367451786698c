#ifndef AFZ_TIER_CGROUP1_H
#define AFZ_TIER_CGROUP1_H
/* Inside the tier cgroup1: its state, and what is done once, at the start and at the end.
 *
 * A cgroup "antifreeze-ID" is made below the job's own in the memory tree, and likewise in freezer,
 * pids, cpu and blkio where they are mounted and let us. Sub-jobs get cgroups "part-N" below it.
 */
#include "cgroup_path.h"
#include "hold_tier.h"
#include "tier_cgroup1_group.h"

enum { AFZ_CGROUP1_NAME_CAP = 96 };

struct afz_hold_cgroup1 {
        const struct afz_env *env;
        char name[AFZ_CGROUP1_NAME_CAP];                       /* antifreeze-ID */
        char full[AFZ_CGROUP_PATH_MAX + AFZ_CGROUP1_NAME_CAP]; /* as /proc/PID/cgroup has it */
        struct afz_cgroup_path path;                           /* where the job was before */
        int parent[AFZ_CONTROLLERS];
        struct afz_cgroup1 top;
        struct afz_cgroup1 part[AFZ_HOLD_PARTS];
        unsigned parts;
        int limit_fd, swap_limit_fd; /* limit_in_bytes; memsw.limit_in_bytes or -1 */
        int peak_fd, swap_peak_fd;   /* the most that counted against them; -1: not told */
        bool met_limit;              /* one that was set before */
        int pids_fd, pids_max_fd;    /* -1: there are none */
        int event_fd;                /* -1: the kernel does not tell of OOM */
        uint64_t processes_max;      /* UINT64_MAX: no limit */
        bool adopted;
        void *tree; /* adopted, and charged elsewhere before: tier none's look at it; or NULL */
        bool braked;
        bool ending;        /* killed: from now on all are counted at each look */
        uint64_t processes; /* as counted last */
        unsigned uncounted; /* looks since */
};

/* See afz_hold_tier.open. */
int afz_cgroup1_open(const struct afz_env *env, const struct afz_hold_plan *plan, pid_t pid,
                     struct afz_hold_cgroup1 **ret, char *why);
void afz_cgroup1_free(struct afz_hold_cgroup1 *hold);

int afz_cgroup1_limit(struct afz_hold_cgroup1 *hold, const struct afz_budget *budget);

/* Whether the job came as far as a limit of ours. One that it never met has killed nobody: that was
 * one above ours, or the whole machine's want. True where the kernel does not tell. */
bool afz_cgroup1_met_limit(const struct afz_hold_cgroup1 *hold);

/* Moves the process and all below it into the group, again and again until nobody new is found. */
int afz_cgroup1_take_in(struct afz_hold_cgroup1 *hold, const struct afz_cgroup1 *group,
                        const char *full, pid_t root);

/* "part-7" */
void afz_cgroup1_part_name(unsigned part, char buf[16]);

/* anon + shmem + swap in a text of memory.stat; the kernel memory that cannot shrink is not told
 * apart on v1 and is left out: a little too low rather than far too high. -ENODATA: not told. */
int afz_cgroup1_need(struct afz_span stat, uint64_t *ret_need_bytes, uint64_t *ret_swap_bytes);

/* See tier_cgroup1_place.h. */
void afz_cgroup1_place(const struct afz_hold_cgroup1 *hold, char buf[AFZ_HOLD_PLACE_CAP]);

#endif
