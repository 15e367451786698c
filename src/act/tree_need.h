#ifndef AFZ_TREE_NEED_H
#define AFZ_TREE_NEED_H
/* What a tree of processes needs, reckoned from what the kernel tells of each of them. Pure.
 *
 * The sum of RSS is no answer: eight forks of a 500 MB parent sum to 4.5 GB and are 505 MB. PSS is
 * one, but it is read seldom. So a process counts with
 *
 *  - its last PSS (anonymous, shared, swapped) and what its anonymous memory has grown since;
 *  - without PSS: all of its anonymous memory when it has run a program of its own, and only what
 *    it has grown since it was first seen while it is a mere fork (the rest is its parent's).
 *
 * Two things happen unseen by such sums. Memory that is shared (shm) grows in everyone who maps it:
 * afz_need_total() takes it once as far as that can be told. And a fork that writes to what it
 * inherited gets copies while every counter of the process stays as it was: afz_need_hidden() finds
 * that in the machine's available memory, bounded by the faults of the family.
 *
 * When a process dies, what it shared does not: afz_need_left() says how much may live on in its
 * relatives, and is added until they were read anew.
 */
#include <stdbool.h>
#include <stdint.h>

/* The kernel's mark (stat's flags) of a process that was forked and has run no program since. */
#define AFZ_PF_FORKNOEXEC 0x00000040U

/* One reading of smaps_rollup, and what status said right before it. */
struct afz_need_pss {
        uint64_t anon_bytes, shmem_bytes, swap_bytes; /* PSS */
        uint64_t private_bytes;                       /* of it, what nobody else has */
        uint64_t rss_anon_bytes, rss_shmem_bytes, rss_swap_bytes;
};

/* One process. All zero at its birth but for what afz_need_born() sets. */
struct afz_need_proc {
        uint64_t anon_bytes;              /* every look */
        uint64_t shared_bytes;            /* every look: file pages and shmem together */
        uint64_t shmem_bytes, swap_bytes; /* when they may have changed */
        bool inherits;                    /* a fork that runs its parent's program */
        bool shares;                      /* somebody inherits from it */
        uint64_t base_bytes;              /* inherits: held, at its least since it was first seen */
        bool has_pss;
        struct afz_need_pss pss;
};

/* A process that was just found, with its first figures in place. parent_bytes: what its parent
 * holds (UINT64_MAX: not known): more than that it cannot have inherited. */
void afz_need_born(struct afz_need_proc *p, bool inherits, uint64_t parent_bytes);
/* It runs another program now. (Who was forked from it since may share that one's memory.) */
void afz_need_exec(struct afz_need_proc *p);
void afz_need_take_pss(struct afz_need_proc *p, const struct afz_need_pss *pss);
/* New figures are in place. */
void afz_need_moved(struct afz_need_proc *p);

/* Its anonymous memory, in RAM and in swap, as far as it is its own to count. */
uint64_t afz_need_own(const struct afz_need_proc *p);
/* What its end may leave to its relatives. */
uint64_t afz_need_left(const struct afz_need_proc *p);

/* The tree added up; all zero to begin with. */
struct afz_need_sum {
        uint64_t own_bytes, swap_bytes;
        uint64_t shmem_bytes;      /* by PSS */
        uint64_t shmem_more_bytes; /* growth since, of all */
        uint64_t shmem_most_bytes; /* mapped by the one that maps most */
        uint64_t slack_bytes;      /* resident but not counted: as much can turn into copies */
        uint64_t inherit_bytes;    /* the largest base of a fork */
        unsigned processes, inheriting, with_shmem;
};
void afz_need_add(struct afz_need_sum *sum, const struct afz_need_proc *p);

/* machine_more_bytes: growth of the machine's shared memory since the PSS readings (UINT64_MAX: not
 * known). */
uint64_t afz_need_total(const struct afz_need_sum *sum, uint64_t machine_more_bytes);

/* Copies that no counter of a process shows. fall: of the machine's available memory since the
 * reference; grown: of the tree's reckoned need since then; faults: what the family's page faults
 * since then can have copied at most. */
uint64_t afz_need_hidden(const struct afz_need_sum *sum, int64_t fall_bytes, int64_t grown_bytes,
                         uint64_t fault_bytes);

#endif
