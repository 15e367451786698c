#ifndef AFZ_TREE_H
#define AFZ_TREE_H
/* Which processes are the job: everything that descends from its root.
 *
 * Membership is for life: a process that was once below the root stays in, also when its parent
 * dies and it is re-parented away (it is then an orphan). New processes are found by listing /proc,
 * but only when the machine's newest pid (in /proc/loadavg) has changed since the last look, and
 * once more after that: the kernel gives out a number a little before its folder is there. A
 * process known to be none of ours is not asked again while its /proc folder is the same inode. A
 * process is known by pid and start time together, so a pid that is used again, the root's too, is
 * a stranger.
 *
 * An orphan that was born and abandoned between two looks is still found when it is in a session
 * or group that a member founded (whoever reads the members keeps their pgrp and session current).
 *
 * With root 0 every user process of the machine is a member (kernel threads are not).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "env.h"
#include "proc_stat.h"

struct afz_member {
        uint64_t pid, start_ticks, inode;
        uint64_t ppid, pgrp, session; /* when it was last read */
        uint32_t depth;               /* generations below the root when it joined */
        bool orphan;
        bool fresh; /* joined in the last update */
        bool gone;  /* seen dead in the last update; its place is free at the next */
};

struct afz_tree;

/* max: how many members it can hold. -ESRCH when the root does not exist. */
int afz_tree_new(const struct afz_env *env, uint64_t root, size_t max, struct afz_tree **ret);
void afz_tree_free(struct afz_tree *tree);

/* Finds the new and drops the dead that afz_tree_lost() named. Cheap when nothing was started;
 * where something is started all the time, it looks only as often as 0.05 % of a core allows. */
int afz_tree_update(struct afz_tree *tree);

/* Members stand at indexes 0..slots-1, with holes (pid 0). An index is steady for a life. */
size_t afz_tree_slots(const struct afz_tree *tree);
struct afz_member *afz_tree_at(struct afz_tree *tree, size_t index);
size_t afz_tree_count(const struct afz_tree *tree);

/* The index of the living member with this pid; false when there is none. */
bool afz_tree_find(const struct afz_tree *tree, uint64_t pid, size_t *ret_index);

/* The reader met -ESRCH: this member is dead. */
void afz_tree_lost(struct afz_tree *tree, size_t index);

/* Members that did not fit, since birth. */
uint64_t afz_tree_dropped(const struct afz_tree *tree);

#endif
