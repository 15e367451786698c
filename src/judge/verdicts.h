#ifndef AFZ_VERDICTS_H
#define AFZ_VERDICTS_H
/* The judges of a run: a recording and how it ended in, verdicts out. Pure: no clock, no I/O, no
 * state between two calls; asked while the run goes on (end.how RUNNING), they say what can be said
 * so far.
 *
 * One file and one row each (verdicts.c). A judge adds at most one verdict, only where it can
 * support it: a column that is missing makes it silent, never sure. verdicts.c then puts causes
 * before symptoms (a leak that ended in swap-thrash and a kill is told as the leak), sorts by
 * level, and falls back to how it ended (clean, exception, crash, ...).
 */
#include "flight.h"
#include "verdict.h"

struct afz_case {
        const struct afz_flight
                *flight; /* never NULL; one without tracks when nothing was recorded */
        struct afz_facts facts;
        bool rebooted; /* nobody saw the end, and the boot id is another one now */
        uint32_t did[AFZ_ACTION_COUNT];
        uint64_t peak_bytes, budget_bytes, swap_bytes;
};

struct afz_judge {
        const char *id; /* of what it says; "hang" for hang:* */
        /* Adds its verdict, if it has one; those of the rows above it are there already. */
        void (*judge)(const struct afz_case *c, struct afz_outcome *ret);
        const char *explains[6]; /* ids that are symptoms when this one is said; NULL ends */
};

extern const struct afz_judge afz_judges[];
extern const unsigned afz_judges_count;

/* All of it. There is always at least one verdict when the run has ended. */
void afz_verdicts_of(const struct afz_case *c, struct afz_outcome *ret);

/* Puts a list that was added to in order: one of each family, causes found (caused_by), the
 * strongest first. A cause weighs as much as what it led to, and stands before it. */
void afz_verdicts_settle(struct afz_outcome *outcome);

#endif
