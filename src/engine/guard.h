#ifndef AFZ_GUARD_H
#define AFZ_GUARD_H
/* The guard: a small process that holds one job from its exec to its end.
 *
 *   front (`antifreeze run`)  waits, speaks, passes signals on; thaws the job if the guard dies
 *     └── guard               ticks and acts: libc alone, memory locked, nothing allocated
 *           ├── scout         looks at all that is slow or can block (scout.h)
 *           └── CMD           in the caller's process group, as it would be without us
 *
 * The guard is CMD's parent, so that no pid can be used again behind its back, and a subreaper, so
 * that what CMD abandons comes back to it. It stays in the caller's process group with every signal
 * blocked: a signal that arrives there as well was sent to the whole group, so CMD has it already
 * and it is not passed on twice.
 *
 * It never writes to a terminal (which can block): it sends words to the front, which speaks. A
 * word that does not fit the socket is dropped, never waited for.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "hold.h"
#include "run.h"

#define AFZ_GUARD_NAME "afz-guard" /* as /proc/PID/comm has it; CMD's fork until it execs, too */

/* What to do, settled by the command line. Borrowed for the guard's life. */
struct afz_guard_order {
        char **argv;  /* CMD; NULL: attach */
        pid_t attach; /* root of a job that already runs */
        enum afz_policy policy;
        enum afz_tier best_tier; /* do not try better ones (ANTIFREEZE_TIER) */
        struct afz_budget budget;
        uint64_t ram_total_bytes;
        uint64_t grace_ns;
        unsigned restarts;
        bool restarts_given;        /* somebody asked for so many: whether they help is theirs */
        uint64_t batch;             /* 0: CMD has no {batch} */
        int checkpoint_signal;      /* 0: none */
        const char *checkpoint_cmd; /* NULL: none */
        uint64_t checkpoint_wait_ns;
        uint64_t gpu_budget_bytes; /* of VRAM; 0: none was given */
        bool amp, allow_inexact;   /* what the agent may do to how the job computes */
        bool dry_run;
        const char *version;  /* of ours, for notes that count for one only */
        const char *probe;    /* path of the library; NULL: it is left out */
        const char *no_probe; /* why, if there is a reason to tell; borrowed, too */
        bool tell_no_probe;   /* at once, and not only to who asks */

        /* How we were called: CMD inherits this, not what we have become. */
        sigset_t mask;
        bool ignore_sigchld;
        struct rlimit files;
};

/* From guard to front, one packet each. */
enum afz_word_kind {
        AFZ_WORD_STARTED, /* CMD runs, or under dry_run: would run */
        AFZ_WORD_SAY,     /* a line for people */
        AFZ_WORD_STOPPED, /* CMD was stopped by `code` (Ctrl-Z): so should the front be */
        AFZ_WORD_FAILED,  /* CMD could not be started: exit with `code` */
        AFZ_WORD_ENDED,   /* the last: exit with `code`, or die of `sig` */
        AFZ_WORD_COUNT
};

struct afz_word {
        enum afz_word_kind kind;
        int code, sig;
        bool urgent;    /* something was done to the job: said under --quiet too, and notified */
        char event[24]; /* "start", "warn", "brake", "stop", "end", ...: for --json */
        enum afz_tier tier;
        uint64_t budget_bytes, swap_bytes, need_bytes;
        char text[768]; /* one sentence or two, printable; a dry run has a line for each tier */
};

/* From front to guard. */
struct afz_front_word {
        int sig;        /* somebody sent the front this signal; 0: none */
        bool timed_out; /* nobody did: its time is over */
        bool detach;    /* attach: let the job go, and end */
};

/* The guard's whole life, in a process of its own: returns its exit status. `fd` is its end of the
 * socket pair (SOCK_SEQPACKET); closing the other end does not end the guard. */
int afz_guard_main(const struct afz_guard_order *order, struct afz_run *run, int fd);

#endif
