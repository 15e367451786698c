#ifndef AFZ_SERIES_H
#define AFZ_SERIES_H
/* The recent past of one value, at a fixed step: a ring of the last AFZ_SERIES_POINTS intervals,
 * each with the highest value seen in it. An interval without a value is a gap, not a zero: that is
 * how time shows in which the job did not live.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AFZ_SERIES_POINTS 512

struct afz_series {
        uint64_t step_ns; /* 0: never used */
        uint64_t newest;  /* number of the newest interval since the clock's zero */
        size_t filled;    /* intervals known, at most AFZ_SERIES_POINTS */
        bool known[AFZ_SERIES_POINTS];
        int64_t value[AFZ_SERIES_POINTS];
};

void afz_series_init(struct afz_series *series, uint64_t step_ns);

/* Adds a value at t_ns. Time that goes backwards is taken as the newest interval; a jump forward
 * leaves gaps. */
void afz_series_add(struct afz_series *series, uint64_t t_ns, int64_t value);

/* The value `back` intervals before the newest (0 is the newest). False: a gap, or too long ago. */
bool afz_series_get(const struct afz_series *series, size_t back, int64_t *ret);

#endif
