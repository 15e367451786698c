#ifndef AFZ_TIER_NONE_H
#define AFZ_TIER_NONE_H
/* Tier none: no container of the kernel, only looking and signals.
 *
 * hold_tier.h is the contract; here is what tier none has beyond it, and the state that its files
 * share: tier_none.c (brake, kill, parts), none_look.c (figures).
 *
 * It has two children of the guard in its care that must not be reaped or signalled by others: the
 * aide (aide.h), and nobody else. The guard should be a subreaper before the job runs. Its own
 * helpers that are forked later than the hold was opened must be named with afz_none_spare().
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "aide.h"
#include "hold_tier.h"
#include "pss_gate.h"
#include "roster.h"

/* This child of the guard is a helper of ours and no orphan of the job. To be called right after
 * its fork, before the next look. A hold of another tier ignores it. */
void afz_none_spare(const struct afz_hold *hold, pid_t pid);

/* The aide's pid, for a guard that reaps all its children; 0 where it is another tier. */
pid_t afz_none_aide(const struct afz_hold *hold);

struct afz_none {
        const struct afz_env *env;
        struct afz_roster *roster;
        struct afz_aide *aide;
        int meminfo_fd;
        uint64_t page_bytes;
        bool braked;
        bool has_swap;
        uint64_t swap_next_ns;

        struct afz_pss_gate gate;
        struct {
                bool asked;         /* a round of PSS readings is under way */
                size_t rows;        /* in it */
                unsigned tries;     /* rounds thrown away in a row */
                bool moved;         /* somebody joined or left since it was asked for */
                bool changed;       /* ... or since the last that was taken */
                bool refused;       /* the last could not be had */
                uint64_t taken_ns;  /* the last */
                uint64_t next_ns;   /* not before */
                uint64_t credit_ns; /* when urgency last bought time */
        } round;
        /* Against which hidden copies are measured: where a family first showed, and each round. */
        struct {
                bool known;
                uint64_t t_ns, available_bytes, need_bytes;
        } mark;
        uint64_t shmem_bytes; /* of the machine, at the last round or when we began */
        uint64_t left_bytes;  /* by the dead, to their relatives, as long as those were not read */
        unsigned budget;      /* of slow readings in this look */
};

/* In none_look.c. */
void afz_none_begin(struct afz_none *none); /* how the machine is, before the job runs */
int afz_none_look(void *hold, struct afz_pulse *ret);
int afz_none_look_part(void *hold, unsigned part, uint64_t *ret_need_bytes);
/* A member was found: its first figures. */
void afz_none_joined(void *hold, struct afz_roster_row *row);

/* In tier_none.c: stops one that is not stopped yet. */
void afz_none_stop_row(struct afz_none *none, struct afz_roster_row *row);

#endif
