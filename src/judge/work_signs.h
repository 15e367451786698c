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
        AFZ_WORK_HINTED,  /* it pauses or waits, as steps do; so do others */
        AFZ_WORK_SEEN,    /* steps, lines, memory that is given back */
};

/* Over [from, to). ret_sign (or NULL) is set to a clause for evidence where work was seen or
 * hinted. */
enum afz_work afz_work_in(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms,
                          const char **ret_sign);

/* A weaker sign, for a run that was over before it met a line: it computed for longer than it takes
 * to load or to parse what it kept, and read next to nothing. */
bool afz_work_computes(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms);

/* It rested most of the time, and neither a disk nor the network kept it waiting: whatever it read,
 * it did not load as fast as it could. False where that is not known. */
bool afz_work_rests(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms);

#endif
