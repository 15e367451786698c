#ifndef AFZ_WORK_SIGNS_H
#define AFZ_WORK_SIGNS_H
/* Does the job go on from step to step, or does it build up one large thing? A leak and a data set
 * that is put together in memory grow alike for a minute or so; but who trains says so now and
 * then, gives back what a step needed, pauses between steps, or waits. Who loads does none of it.
 * Pure.
 */
#include "flight.h"

enum afz_work {
        AFZ_WORK_UNKNOWN, /* what would tell was not recorded */
        AFZ_WORK_NONE,    /* it was, and nothing does */
        AFZ_WORK_SEEN,
};

/* Over [from, to). ret_sign (or NULL) is set to a clause for evidence where work was seen. */
enum afz_work afz_work_in(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms,
                          const char **ret_sign);

#endif
