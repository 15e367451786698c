#ifndef AFZ_WHY_STACKS_H
#define AFZ_WHY_STACKS_H
/* Where a job stood just before it was stopped, for people. */
#include <stdbool.h>

#include "flight.h"
#include "out.h"

/* The line that it was at; with `full`, all threads that were looked at. Nothing where it was not
 * stopped, or nobody looked. */
void afz_why_stacks(struct afz_out *out, const struct afz_flight *flight, bool full);

#endif
