#ifndef AFZ_SITE_SWING_H
#define AFZ_SITE_SWING_H
/* What comes and goes: between the most and the least that each line held in a stretch. Steps are
 * shorter than the looks at lines, so the probe's own marks of high and low water are read. Pure.
 */
#include "site_top.h"

struct afz_site_swing {
        double high_bytes;       /* the most that all lines held together, as processes tell it */
        double low_bytes;        /* the sum of the least that each held: what never went */
        struct afz_site_top top; /* by line: the most less the least; largest first */
};

/* The most over [from, to), the least over [from, low_to): who ends gives all back, and that is not
 * meant. False: high and low water were not recorded. */
struct afz_site_swing_ask {
        uint32_t from_ms, to_ms, low_to_ms;
};
bool afz_site_swing_of(const struct afz_flight *flight, const struct afz_site_swing_ask *ask,
                       struct afz_site_swing *ret);

#endif
