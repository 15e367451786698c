#ifndef AFZ_WHY_USE_H
#define AFZ_WHY_USE_H
/* What a run's memory was for (purposes.h), and what was adapted on the way (agent_tale.h), for
 * `why`. Nothing where its frameworks told nothing. */
#include "flight.h"
#include "out.h"
#include "verdict.h"

/* Full: each purpose in a row of its own, at the peak and at the end. */
void afz_why_use(struct afz_out *out, const struct afz_flight *flight, bool running, bool full);

/* "adapted": how often memory ran out and it went on, and in how many parts its steps were made. */
void afz_why_adapted(struct afz_out *out, const struct afz_flight *flight,
                     const struct afz_end *end);

/* What must be read of a recording for the two. */
bool afz_why_use_wanted(enum afz_metric metric);

#endif
