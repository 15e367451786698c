#ifndef AFZ_HOLD_H
#define AFZ_HOLD_H
/* The plain data of holding a job: what it may use, how it stands, what was decided, how it ended.
 *
 * Everything between the guard's look and its deed is one of these; judges take and give them, act
 * carries them out, the record keeps them. No I/O.
 */
#include <stdbool.h>
#include <stdint.h>

/* What holds the job, from nothing to best. The names are the contract of `why --json`. */
enum afz_tier {
        AFZ_TIER_NONE,    /* fast looking, signals */
        AFZ_TIER_CGROUP1, /* a cgroup v1 of our own */
        AFZ_TIER_CGROUP2, /* a cgroup v2 of our own */
        AFZ_TIER_SCOPE,   /* a cgroup v2 delegated by systemd */
        AFZ_TIER_COUNT
};

/* "none", "cgroup1", "cgroup2", "scope" */
const char *afz_tier_name(enum afz_tier tier);

enum afz_policy { AFZ_POLICY_WATCH, AFZ_POLICY_PROTECT, AFZ_POLICY_ADAPT, AFZ_POLICY_COUNT };

/* What the job may use. */
struct afz_budget {
        uint64_t ram_bytes;  /* the kernel's limit where there is one */
        uint64_t swap_bytes; /* beyond that */
        bool given;          /* by --budget: never reckoned anew */
};

/* One fast look at the job and the machine: what the ladder decides on. Absent is not zero: a
 * figure counts only when its bit is set in `has`. */
enum afz_pulse_figure {
        AFZ_PULSE_NEED,      /* anon + shmem + swap + unreclaimable kernel memory */
        AFZ_PULSE_SWAP,      /* the part of need that is in swap alone */
        AFZ_PULSE_AVAILABLE, /* MemAvailable of the machine */
        AFZ_PULSE_SWAP_FREE, /* of the machine */
        AFZ_PULSE_STALL,     /* ns, total: "full" memory pressure of the machine */
        AFZ_PULSE_JOB_STALL, /* ns, total: of the job's cgroup */
        AFZ_PULSE_SWAP_INS,  /* pages, total: read back from swap, the whole machine */
        AFZ_PULSE_OOM_KILLS, /* total, in the job's cgroup */
        AFZ_PULSE_PROCESSES, /* of the job, living */
        AFZ_PULSE_COUNT
};

struct afz_pulse {
        uint64_t t_ns;
        uint32_t has; /* bit per figure */
        uint64_t figure[AFZ_PULSE_COUNT];
};

static inline void afz_pulse_set(struct afz_pulse *p, enum afz_pulse_figure f, uint64_t value)
{
        p->figure[f] = value;
        p->has |= 1U << f;
}

static inline bool afz_pulse_get(const struct afz_pulse *p, enum afz_pulse_figure f, uint64_t *ret)
{
        if (!(p->has >> f & 1))
                return false;
        *ret = p->figure[f];
        return true;
}

/* How a run ended. The names are the contract of `why --json`. */
enum afz_end_how {
        AFZ_END_RUNNING,    /* not yet: `end` is null */
        AFZ_END_EXIT,       /* code: the exit status */
        AFZ_END_SIGNAL,     /* code: the signal */
        AFZ_END_STOPPED,    /* by the ladder */
        AFZ_END_OOM_KILLED, /* by the kernel at our limit */
        AFZ_END_LOST,       /* the guard died first */
        AFZ_END_UNKNOWN,    /* an attached job: nobody tells us its status */
        AFZ_END_COUNT
};

/* "exit", "signal", "stopped", "oom-killed", "lost", "unknown"; NULL while it runs */
const char *afz_end_name(enum afz_end_how how);

struct afz_end {
        enum afz_end_how how;
        int code; /* -1: none */
};

/* What the guard did, or under --dry-run and policy watch would have done. */
enum afz_action {
        AFZ_ACTION_TELL,       /* one line */
        AFZ_ACTION_BRAKE,      /* freeze the job */
        AFZ_ACTION_RELEASE,    /* let it go on */
        AFZ_ACTION_SQUEEZE,    /* push its cold pages out */
        AFZ_ACTION_SHRINK,     /* ask the agent to use less: a smaller batch */
        AFZ_ACTION_CHECKPOINT, /* ask it to save */
        AFZ_ACTION_INTERRUPT,  /* SIGINT to CMD: `finally` blocks run */
        AFZ_ACTION_TERMINATE,  /* SIGTERM to CMD */
        AFZ_ACTION_KILL,       /* SIGKILL to everything */
        AFZ_ACTION_RESTART,    /* a smaller plan */
        AFZ_ACTION_COUNT
};

/* "tell", "brake", ... */
const char *afz_action_name(enum afz_action action);

/* Why the ladder was climbed. */
enum afz_cause {
        AFZ_CAUSE_NONE,
        AFZ_CAUSE_BUDGET,   /* the job's need met its budget */
        AFZ_CAUSE_PRESSURE, /* the machine ran short, and braking the job did not end it */
        AFZ_CAUSE_KERNEL,   /* the kernel's limit was first */
        AFZ_CAUSE_SHM,      /* /dev/shm is nearly full, by the job */
        AFZ_CAUSE_DISK,     /* a disk is nearly full, by the job */
        AFZ_CAUSE_COUNT
};

#endif
