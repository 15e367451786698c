#ifndef AFZ_HANG_STEPS_H
#define AFZ_HANG_STEPS_H
/* The steps of a training that have come, and whether they stopped coming. Pure; part of
 * judge_hang.c. */
#include "flight.h"

struct afz_steps {
        int64_t count;
        uint32_t last_ms;    /* when the last was seen to have begun */
        uint32_t longest_ms; /* between two */
};

/* Of the last attempt. */
struct afz_steps afz_steps_of(const struct afz_flight *flight);

/* Whether so many have come that their absence means something. */
bool afz_steps_count(const struct afz_steps *steps);

/* Whether none has come for many times as long as the longest took. */
bool afz_steps_stopped(const struct afz_steps *steps, uint32_t by_ms);

#endif
