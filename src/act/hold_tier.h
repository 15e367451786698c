#ifndef AFZ_HOLD_TIER_H
#define AFZ_HOLD_TIER_H
/* What holds a job: a container of the kernel where one can be had, else looking and signals.
 *
 * A hold is made before the job runs, proved by reading back what was written, and from then on
 * works on descriptors that are open already: looking, braking, releasing, limiting and killing
 * allocate nothing and open nothing (tier none opens the files of processes that are new). It
 * touches the job's processes and cgroups and nothing else, ever: processes are known by pidfd or
 * by membership in our own cgroup, never by a bare pid.
 *
 * A tier is a row of this table; the best that works is taken. All functions return 0 or -errno;
 * -EOPNOTSUPP where a tier cannot do a thing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "env.h"
#include "hold.h"

enum { AFZ_HOLD_PARTS = 32 }; /* sub-jobs with a leaf of their own */

/* What to make. Texts are borrowed for as long as the hold lives. */
struct afz_hold_plan {
        const char *id;   /* of the run; names the cgroup or scope "antifreeze-ID" */
        const char *what; /* CMD, for people: the scope's description */
        struct afz_budget budget;
        uint64_t processes; /* at most so many; 0: no limit */
        uint32_t weight;    /* of CPU and I/O: 1 to 10000, where 100 is everybody else's */
        bool adopted;       /* attach: the job's memory was charged elsewhere before, so that its
                             * need is reckoned from its processes and not from the cgroup */
        bool whole;         /* the kernel's OOM kill ends all of it (not for servers) */
        char *place; /* NULL, or room for AFZ_HOLD_PLACE_CAP: where it is going to stand, said
                      * before anything is made, so that who dies half-way is collected */
};

/* Where it stands, for the run's page and the next run's collector; "" in tier none. */
#define AFZ_HOLD_PLACE_CAP 512

struct afz_hold_tier {
        enum afz_tier tier;

        /* Makes the container, sets the limits, reads them back (-EIO when the kernel says
         * something else than was written), and moves the processes in: `pid` and, for adopted
         * jobs, all below it. The process is waiting to exec, or it is the root of a job that
         * already runs. `keeper` (0: none) is a helper of ours that may be put beside the job
         * (outside its limits) so that the container outlives the job until it was read for the
         * last time. -ENODATA, -EACCES, -EROFS...: this tier is not to be had here; `why` (cap
         * AFZ_HOLD_WHY_CAP) says it in a few words. Leaves nothing behind on failure. */
        int (*open)(const struct afz_env *env, const struct afz_hold_plan *plan, pid_t pid,
                    pid_t keeper, void **ret, char *why);

        /* Fills the job's figures (NEED, SWAP, JOB_STALL, OOM_KILLS, PROCESSES). -ENODEV: gone. */
        int (*look)(void *hold, struct afz_pulse *ret);

        /* A descriptor that becomes readable (POLLIN or POLLPRI) when the kernel has killed at our
         * limit; -1: none. */
        int (*oom_fd)(const void *hold);

        int (*limit)(void *hold, const struct afz_budget *budget); /* proved by reading back */
        int (*brake)(void *hold); /* returns at once; frozen soon after */
        int (*release)(void *hold);
        int (*squeeze)(void *hold, uint64_t bytes); /* may be done by the kernel little by little;
                                                       must not block */
        int (*slow)(void *hold, uint64_t bytes); /* throttle growth beyond so much; UINT64_MAX: no
                                                    more */
        int (*kill)(void *hold); /* SIGKILL to all, also to what is being forked meanwhile */

        /* Sub-jobs: gives the process and all below it a leaf of its own. Returns its number. */
        int (*split)(void *hold, pid_t pid);
        int (*look_part)(void *hold, unsigned part, uint64_t *ret_need_bytes);
        int (*kill_part)(void *hold, unsigned part);

        /* Names a living process of the job beside `not` (the survivors of CMD); its pid, or 0. */
        pid_t (*other)(void *hold, pid_t not );

        void (*place)(const void *hold, char buf[AFZ_HOLD_PLACE_CAP]);

        /* Removes what is empty, and puts an adopted job that lives on back where it was. A job
         * that still lives in it keeps it (its limits stay in force). NULL is fine. */
        void (*close)(void *hold);
};

#define AFZ_HOLD_WHY_CAP 160

/* Rows from best to none. */
extern const struct afz_hold_tier *const afz_hold_tiers[AFZ_TIER_COUNT];
extern const struct afz_hold_tier afz_hold_scope, afz_hold_cgroup2, afz_hold_cgroup1, afz_hold_none;

/* A hold and its row. */
struct afz_hold {
        const struct afz_hold_tier *row;
        void *state;
};

/* The best tier that works, from `best` downwards (AFZ_TIER_SCOPE: all are tried). Always succeeds
 * with tier none unless the process is gone. `why` gets what the better ones lacked, one line a
 * tier, cut to fit. */
int afz_hold_open(const struct afz_env *env, const struct afz_hold_plan *plan, pid_t pid,
                  pid_t keeper, enum afz_tier best, struct afz_hold *ret, char *why,
                  size_t why_cap);
void afz_hold_close(struct afz_hold *hold);

/* Removes the cgroup at `place` if it is one of ours, empty and nobody's: the run it belonged to is
 * over. -EBUSY: processes still live in it. */
int afz_hold_collect(const struct afz_env *env, const char *place);

#endif
