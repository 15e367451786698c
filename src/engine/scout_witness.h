#ifndef AFZ_SCOUT_WITNESS_H
#define AFZ_SCOUT_WITNESS_H
/* When the job stands still or makes no more steps, or the guard holds it still before it stops it,
 * the scout sends the witness and records what it tells. */
#include "window.h"
#include "witness.h"

struct afz_recorder;

/* Zeroed at the start. */
struct afz_scout_witness {
        struct afz_witness_due due;
        struct afz_witness *now; /* NULL: none is out */
        uint64_t looked_ns;      /* when it was sent */
        uint32_t picture;        /* for the guard's picture of this number; 0: for itself */
};

/* After each tick, with the step that the job is in. Never waits; without a recorder there is
 * nothing to do. */
void afz_scout_witness_take(struct afz_scout_witness *w, const struct afz_env *env,
                            struct afz_recorder *recorder, const struct afz_window *window,
                            uint64_t step);
/* Sends it for a picture, in place of the one that is out. False: there is nobody to look at. */
bool afz_scout_witness_picture(struct afz_scout_witness *w, const struct afz_env *env,
                               const struct afz_window *window, uint64_t t_ns, uint32_t number);
/* Soon and often, while one is out for a picture: true as soon as it is taken, which it is by the
 * time that the guard waits no longer. `last`: there will be no other call. */
bool afz_scout_witness_pictured(struct afz_scout_witness *w, struct afz_recorder *recorder,
                                uint64_t now_ns, bool last);
/* Another job, or none: calls the witness back. */
void afz_scout_witness_done(struct afz_scout_witness *w);

#endif
