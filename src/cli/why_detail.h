#ifndef AFZ_WHY_DETAIL_H
#define AFZ_WHY_DETAIL_H
/* `why --verbose`: everything that led to the verdict, and what the recording shows beside it. */
#include "flight.h"
#include "out.h"
#include "run.h"

/* A run in words, as run.h has them; one that goes on begins with what it does just now. */
void afz_why_put(struct afz_out *out, const struct afz_run_known *known,
                 const struct afz_flight *flight, bool full);

/* lacking: what is wrong with the recording; "" when nothing is. */
void afz_why_detail(struct afz_out *out, const struct afz_run_known *known,
                    const struct afz_flight *flight, const char *lacking);

#endif
