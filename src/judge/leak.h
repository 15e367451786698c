#ifndef AFZ_LEAK_H
#define AFZ_LEAK_H
/* Leak or warm-up? The shape of one figure over time (or over steps), and when it will meet a line.
 * Pure; docs/verdicts.md has the reasons and the false-alarm rate.
 *
 * What is looked at is the valley floor: block minima after the first quarter was dropped. */
#include "flight.h"

enum afz_growth {
        AFZ_GROWTH_UNKNOWN, /* can't tell yet: too short, too few blocks, gaps */
        AFZ_GROWTH_FLAT,
        AFZ_GROWTH_WARMING, /* rises, and ever less */
        AFZ_GROWTH_LEAK,
};

struct afz_trend {
        enum afz_growth growth;
        double slope_per_s;              /* of the floor, over its later half */
        double slope_low, slope_high;    /* 80 % interval */
        int64_t floor_first, floor_last; /* of the first and the last block */
        unsigned blocks;
        uint32_t from_ms, to_ms; /* what was looked at */
};

/* Over the points in [from, to). */
struct afz_trend afz_trend_of(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms);

/* When it meets `line`, in ms from the end of what was looked at; false: it does not, or nothing
 * can be said (warming: a bounded buffer still fills). */
struct afz_forecast {
        double at_ms, soonest_ms, latest_ms; /* latest may be INFINITY */
};
bool afz_forecast_of(const struct afz_trend *trend, int64_t line, struct afz_forecast *ret);

#endif
