#ifndef AFZ_SPAWN_HELD_H
#define AFZ_SPAWN_HELD_H
/* Starts CMD in two strokes: a child that waits, so that it can be put into its container first,
 * and then its exec. Until the word is given CMD has not run one instruction; if the parent dies
 * before, the child ends without having run it. Afterwards CMD outlives us like any other command
 * (no parent-death signal is left on it).
 *
 * The child is a plain fork, so it has what its parent has at that moment: a parent that is to
 * become urgent (priority, scheduling class, timer slack) starts the child first. All descriptors
 * made here are close-on-exec; so must be all others that CMD is not to see.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

/* A limit as we were called with it, where ours was raised. */
struct afz_spawn_limit {
        int resource; /* RLIMIT_NOFILE, ... */
        struct rlimit value;
};

/* What CMD is to inherit: as we were called, not as we have become. Signals that we handle are at
 * their default for CMD, those that were ignored when we were called stay so (nohup). */
struct afz_spawn_plan {
        char *const *argv;
        const sigset_t *mask;           /* signal mask for CMD; NULL: as it is now */
        bool ignore_sigchld;            /* we were started with SIGCHLD ignored */
        int oom_score_adj;              /* raised to this; never lowered */
        int nice;                       /* added; 0: none */
        const char *const *environ_add; /* "NAME=value", NULL-terminated, instead of variables of
                                         * the same name; NULL: none */
        const struct afz_spawn_limit *limit;
        unsigned limits;
        pid_t looker; /* may read its memory, and so may who descends from it, where Yama lets only
                       * ancestors; 0: nobody. Not ourselves: CMD's own children descend from us */
};

struct afz_spawn {
        pid_t pid;
        int pidfd;   /* -1 where the kernel has none (before 5.3) */
        int go_fd;   /* ours until afz_spawn_go() */
        int fail_fd; /* tells why exec failed */
};

int afz_spawn_start(const struct afz_spawn_plan *plan, struct afz_spawn *ret);

/* Lets it exec, found along the caller's PATH and, without "#!", run by /bin/sh as execvp() does. 0
 * when it did, or when a signal was first (its wait status says so); -ENOENT, -EACCES, ...: why it
 * could not (the child is gone and reaped, pid is 0). */
int afz_spawn_go(struct afz_spawn *spawn);

/* Gives up a child that was not let go (it is ended and reaped), or closes the descriptors of one
 * that was. Harmless twice. */
void afz_spawn_done(struct afz_spawn *spawn);

#endif
