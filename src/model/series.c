#include "series.h"

#include <string.h>

void afz_series_init(struct afz_series *series, uint64_t step_ns)
{
        memset(series, 0, sizeof *series);
        series->step_ns = step_ns;
}

static size_t slot(uint64_t interval)
{
        return (size_t)(interval % AFZ_SERIES_POINTS);
}

/* Moves on to a later interval; those passed over on the way are gaps. */
static void advance(struct afz_series *series, uint64_t interval)
{
        uint64_t steps = interval - series->newest;
        if (steps > AFZ_SERIES_POINTS)
                steps = AFZ_SERIES_POINTS;
        for (uint64_t i = 0; i < steps; i++)
                series->known[slot(interval - i)] = false;
        series->newest = interval;
        series->filled += (size_t)steps;
        if (series->filled > AFZ_SERIES_POINTS)
                series->filled = AFZ_SERIES_POINTS;
}

void afz_series_add(struct afz_series *series, uint64_t t_ns, int64_t value)
{
        if (series->step_ns == 0)
                return;
        uint64_t interval = t_ns / series->step_ns;
        if (series->filled == 0) {
                series->newest = interval;
                series->filled = 1;
        } else if (interval > series->newest) {
                advance(series, interval);
        }
        size_t at = slot(series->newest);
        if (!series->known[at] || value > series->value[at])
                series->value[at] = value;
        series->known[at] = true;
}

bool afz_series_get(const struct afz_series *series, size_t back, int64_t *ret)
{
        if (back >= series->filled)
                return false;
        size_t at = slot(series->newest - back);
        if (!series->known[at])
                return false;
        *ret = series->value[at];
        return true;
}
