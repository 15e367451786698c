#ifndef AFZ_SCOUT_WITNESS_H
#define AFZ_SCOUT_WITNESS_H
/* When the job stands still, the scout sends the witness and records what it tells. */
#include "window.h"
#include "witness.h"

struct afz_recorder;

/* Zeroed at the start. */
struct afz_scout_witness {
        struct afz_witness_due due;
        struct afz_witness *now; /* NULL: none is out */
        uint64_t looked_ns;      /* when it was sent */
};

/* After each tick. Never waits; without a recorder there is nothing to do. */
void afz_scout_witness_take(struct afz_scout_witness *w, const struct afz_env *env,
                            struct afz_recorder *recorder, const struct afz_window *window);
/* Another job, or none: calls the witness back. */
void afz_scout_witness_done(struct afz_scout_witness *w);

#endif
