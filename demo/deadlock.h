/*
 * A real deadlock, in waiting: a loader thread and its caller share two locks, one for the queue of
 * batches and one for the statistics. All is well until afz_deadlock_cross(), where each holds one
 * and wants the other.
 *
 * What others see then: both threads asleep in futex_wait, no CPU time, no progress, for ever.
 */
#ifndef AFZ_DEADLOCK_H
#define AFZ_DEADLOCK_H

struct afz_deadlock;

int afz_deadlock_new(struct afz_deadlock **ret);

/* Only while afz_deadlock_cross() was not called. */
struct afz_deadlock *afz_deadlock_free(struct afz_deadlock *deadlock);

/* Does not return. */
void afz_deadlock_cross(struct afz_deadlock *deadlock);

#endif
