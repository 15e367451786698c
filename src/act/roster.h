#ifndef AFZ_ROSTER_H
#define AFZ_ROSTER_H
/* Who belongs to the job, for the guard: found fast, known for certain, signalled through pidfds.
 *
 * The same question as tree.h of the senses, asked by somebody else: it must find a child within
 * milliseconds (a tick may be 2 ms), fit into memory that is locked (about 2 MB for 4096
 * processes), and never take a stranger for one of ours. A process is known by pid and start time,
 * and by a descriptor of it that was opened in between two readings of that time.
 *
 * Members: the root; whoever has a member for parent when first seen; who is in a session or group
 * that a member below the root founded; and the guard's own children, for the guard is a subreaper
 * and gets the job's orphans. The guard's helpers are children of it too: those that live when the
 * roster is made are left out, and later ones must be named with afz_roster_spare() before the
 * next update. Membership is for life.
 *
 * Nothing is allocated after afz_roster_new(). Where descriptors run out, files are opened for each
 * reading, and a pidfd for each signal.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "env.h"
#include "proc_stat.h"
#include "pss_gate.h"
#include "tree_need.h"

enum { AFZ_ROSTER_MAX = 4096, AFZ_ROSTER_SPARES = 64 };

struct afz_roster_row {
        uint64_t pid; /* 0: empty */
        uint64_t start_ticks, inode;
        uint64_t ppid, pgrp, session; /* when last read */
        int pidfd, statm_fd;          /* -1: not kept open */
        uint16_t depth;               /* below the root when it joined */
        uint8_t part;                 /* the sub-job it is in, from 1; 0: none */
        bool braked;                  /* stopped by us */
        bool zombie;                  /* ended, and not reaped */

        /* For the look (none_look.c). */
        uint64_t text_pages;
        uint64_t stat_next_ns, status_next_ns;
        uint64_t status_anon_bytes, status_shared_bytes; /* when status was read */
        uint64_t faults;                                 /* minor, at the reference */
        struct afz_pss_record pss;
        struct afz_need_proc need;
};

struct afz_roster;

/* -ESRCH: the root does not exist. guard: whose children are the job's orphans; 0: nobody's. */
int afz_roster_new(const struct afz_env *env, pid_t root, pid_t guard, struct afz_roster **ret);
void afz_roster_free(struct afz_roster *roster);

/* This child of the guard is no member. */
void afz_roster_spare(struct afz_roster *roster, pid_t pid);

/* Looks for new members when something was started, or in any case with `hurry`; where something is
 * started all the time, only as often as 2 % of a core allow. Each new member goes to `joined`.
 * Returns how many joined, or -errno. */
int afz_roster_update(struct afz_roster *roster, bool hurry,
                      void (*joined)(void *ctx, struct afz_roster_row *row), void *ctx);

/* Rows stand at 0..slots-1, with holes (pid 0); the place is steady for a life. */
size_t afz_roster_slots(const struct afz_roster *roster);
struct afz_roster_row *afz_roster_at(struct afz_roster *roster, size_t index);
struct afz_roster_row *afz_roster_find(const struct afz_roster *roster, uint64_t pid);

/* The rows' places from the root downwards; returns how many. The list is the roster's own, good
 * until the next call. */
size_t afz_roster_top_down(struct afz_roster *roster, const uint16_t **ret);

/* It is dead and reaped: its place is free. */
void afz_roster_lost(struct afz_roster *roster, struct afz_roster_row *row);

/* Its stat file, checked to be of the same process; refreshes what the row has of it. */
int afz_roster_stat(struct afz_roster *roster, struct afz_roster_row *row,
                    struct afz_proc_stat *ret);

/* To that process and no other. -ESRCH: it is gone. */
int afz_roster_signal(struct afz_roster *roster, struct afz_roster_row *row, int signal);

#endif
