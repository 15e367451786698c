#ifndef AFZ_WHY_SITES_H
#define AFZ_WHY_SITES_H
/* Which lines of the program held its memory, for people. */
#include <stdbool.h>

#include "flight.h"
#include "out.h"

/* At the peak, and with `full` at the end, the stack behind the first, and of the probe itself.
 * Nothing where nothing is known, unless full. */
void afz_why_sites(struct afz_out *out, const struct afz_flight *flight, bool full);

#endif
