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

/* What is left at a look: to the middle between where the ladder begins and where it stops the job.
 * Below it are those that fit as they are; above it would be asked to save. One that was asked to
 * save or to end may go on to the stop line. The machine must not run short of it, either.
 * AFZ_ROOM_ALL where need is not known. Pure. */
uint64_t afz_keeper_room_left(const struct afz_lines *lines, const struct afz_pulse *pulse,
                              enum afz_stage stage);

/* What a look that began at this time (CLOCK_BOOTTIME) says. */
void afz_keeper_room_write(struct afz_room *room, uint64_t looked_ns, uint64_t room_bytes);

#endif
