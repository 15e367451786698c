#ifndef AFZ_STALL_WAIT_H
#define AFZ_STALL_WAIT_H
/* data-stall by the step clock: how much of their time steps waited for their data. Part of
 * judge_stall.c, which goes by disks and mounts. */
#include "verdicts.h"

struct afz_stall_wait {
        double share; /* of the time in which steps were made, 0 to 1 */
        int64_t steps;
        double step_s; /* a step takes so long, with its waiting */
        uint32_t from_ms, to_ms;
};

/* Of the process that trains; false: nobody told. */
bool afz_stall_wait_of(const struct afz_flight *flight, struct afz_stall_wait *ret);

/* Says it, if waiting is most of it and there is something that stands idle meanwhile. */
void afz_stall_wait_say(const struct afz_case *c, struct afz_outcome *ret);

#endif
