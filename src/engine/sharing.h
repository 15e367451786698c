#ifndef AFZ_SHARING_H
#define AFZ_SHARING_H
/* Runs without --budget share the machine (judge/share.h says how much each gets): who comes asks
 * the others to make room, who goes gives it back.
 *
 * A guard is asked by the cap in its run's page, and follows at its next look, never below what its
 * job needs. What was not given up in time still counts as promised: a guard that hangs, or is of
 * another version, costs the newcomer memory but not its start. */
#include "env.h"
#include "stake.h"

/* The machine's memory now, and the container's. */
struct afz_machine_room {
        uint64_t total_bytes, available_bytes;
        uint64_t limit_bytes; /* the container's, less what is used there; UINT64_MAX: none */
        uint64_t swap_free_bytes;
};
int afz_machine_room(const struct afz_env *env, struct afz_machine_room *ret);

struct afz_sharing {
        struct afz_machine_room room;
        uint64_t promised_bytes;  /* what is not the newcomer's: for afz_budget_default() */
        struct afz_stake largest; /* who was promised most; id "": nobody */
};

/* For a run that joins, from within afz_run_ledger(): `wants` is its --budget, 0: it shares.
 * `ask` false: only reckons what it would get (--dry-run). Waits for others a moment. */
int afz_sharing_join(const struct afz_env *env, uint64_t wants, bool ask, struct afz_sharing *ret);

/* After a run has ended: what it had goes to those who share. Takes the ledger's lock. */
void afz_sharing_again(const struct afz_env *env);

#endif
