#ifndef AFZ_WHY_NOW_H
#define AFZ_WHY_NOW_H
/* What a run that goes on does just now, in one clause: "still running after 41 s: it needs 1.2G of
 * the 2.0G it may use, grows by 76M a second, and computes on 1.1 cores". What is not known is left
 * out. Pure. */
#include <stddef.h>

#include "flight.h"
#include "run.h"

enum { AFZ_WHY_NOW_CAP = 256 };

const char *afz_why_now(const struct afz_run_known *known, const struct afz_flight *flight,
                        char buf[AFZ_WHY_NOW_CAP]);

#endif
