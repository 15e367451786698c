#ifndef AFZ_FRONT_H
#define AFZ_FRONT_H
/* The front of `run` and `attach`: the process that the caller started. It starts the guard
 * (guard.h), and from then on is a stand-in for CMD:
 *
 * - signals that were sent to it alone are passed on; those that the terminal or somebody sent to
 *   the whole process group have reached CMD already;
 * - when CMD is stopped (Ctrl-Z), it stops itself, so that the shell sees what it would see;
 * - it ends as CMD ended: with its exit status, or by its signal;
 * - it says on stderr what the guard has to say, and at the end why it ended so (front_end.c);
 * - if the guard dies it lifts a brake that the guard may have left, waits for CMD, and records the
 *   end as lost.
 */
#include "front_budget.h"
#include "front_say.h"
#include "guard.h"

/* Runs all of it; returns the exit status (it may also end by CMD's signal and not return). Of the
 * order, what follows from the machine, the wish and our caller is filled in here. */
int afz_front_run(struct afz_guard_order *order, const struct afz_front_wish *wish,
                  const struct afz_front_style *style);

#endif
