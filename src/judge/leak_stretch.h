#ifndef AFZ_LEAK_STRETCH_H
#define AFZ_LEAK_STRETCH_H
/* Which stretch of a run is looked at for a leak: its last attempt, up to where it was told to end;
 * and, of one that met its line, the part of it that shows why. For judge_leak.c. Pure.
 */
#include "leak.h"
#include "verdicts.h"

struct afz_leak_stretch {
        uint32_t from_ms, to_ms;
        bool met_line; /* it ended because of memory */
};

struct afz_leak_stretch afz_leak_stretch_of(const struct afz_case *c);

/* How a figure moved there; time in which the job was held does not count. */
struct afz_trend afz_leak_trend_of(const struct afz_flight *flight, const struct afz_column *column,
                                   const struct afz_leak_stretch *s, enum afz_trend_when when);

/* Of the need of one that met its line. ret_short: it is known to have grown, but was seen for too
 * short a time to be told a leak like any other. */
struct afz_trend afz_leak_trend_to_line(const struct afz_case *c, const struct afz_column *need,
                                        const struct afz_leak_stretch *s, bool *ret_short);

#endif
