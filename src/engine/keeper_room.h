#ifndef AFZ_KEEPER_ROOM_H
#define AFZ_KEEPER_ROOM_H
/* The room (wire.h): how much the job may still take before it stands at its line, for the probes
 * in it, which refuse what would cross it. One page a run: made and written by the guard, handed
 * out by the keeper, and nobody else can write it.
 */
#include "ladder.h"
#include "wire.h"

/* A page on which nothing is refused yet; and its descriptor, sealed. */
int afz_keeper_room_make(struct afz_room **ret, int *ret_fd);
void afz_keeper_room_unmap(struct afz_room *room); /* NULL is fine */

/* What is left at a look, by where the ladder stands: to the middle between where it begins and
 * where it stops the job (a fast climb is stopped before the stop line, which would be too late),
 * or to where the job was and came back from (or rests), if that is higher. One that cannot make
 * its steps smaller and lives above act, or that was asked to save or to end, may go on to the stop
 * line. The machine must not run short by the job's own doing, either: swap_bytes is what its
 * budget has of swap. AFZ_ROOM_ALL where need is not known. Pure. */
uint64_t afz_keeper_room_left(const struct afz_ladder *ladder, const struct afz_pulse *pulse,
                              uint64_t swap_bytes);

/* What a look that began at this time (CLOCK_BOOTTIME) says. */
void afz_keeper_room_write(struct afz_room *room, uint64_t looked_ns, uint64_t room_bytes);

#endif
