#ifndef AFZ_SHAPE_H
#define AFZ_SHAPE_H
/* The shape of a column, for judges of things that run out: a rate over any span, and whether
 * something goes one way all the time. Pure. (Leak or warm-up is another question: leak.h.) */
#include <stdbool.h>
#include <stdint.h>

#include "flight.h"

/* Of a counter: units a second over [from, to), reckoned between the readings around both ends, so
 * it may be shorter than the readings lie apart. False: it was not read near one of the ends, or
 * was reset in between. NULL as column is fine. */
bool afz_shape_rate(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms, double *ret);

/* By how much a counter grew in all. False: fewer than two readings, or it fell. */
bool afz_shape_grown(const struct afz_column *column, int64_t *ret);

struct afz_steady {
        int64_t first, last; /* of the first and the last part */
        double per_s;        /* over its later half; below zero where it falls */
        uint32_t from_ms, to_ms;
};

enum afz_way { AFZ_WAY_UP, AFZ_WAY_DOWN };

/* Whether it goes one way all the time, and did not slow down: over what is known (but for
 * the first quarter and the very end), in parts of equal length, by the lowest reading in each (of
 * what falls: the highest). False: it does not, there is too little, or there are gaps. `least_ms`
 * is how long that must be at least. */
bool afz_shape_steady(const struct afz_column *column, enum afz_way way, uint32_t least_ms,
                      struct afz_steady *ret);

#endif
