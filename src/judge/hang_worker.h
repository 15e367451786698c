#ifndef AFZ_HANG_WORKER_H
#define AFZ_HANG_WORKER_H
/* How and when a process of the job came to its end. Pure; part of judge_hang.c. */
#include "flight.h"

/* How its end shows: "crashed"; "vanished" where nobody knows. */
const char *afz_worker_end(const struct afz_flight *flight, const struct afz_track *proc);

/* When it stopped living: for a zombie, when it became one. */
uint32_t afz_worker_died_ms(const struct afz_track *proc);

#endif
