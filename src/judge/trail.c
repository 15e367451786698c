#include "trail.h"

#include <string.h>

void afz_trail_init(struct afz_trail *trail, uint64_t spacing_ns)
{
        memset(trail, 0, sizeof(*trail));
        trail->spacing_ns = spacing_ns;
}

void afz_trail_clear(struct afz_trail *trail)
{
        afz_trail_init(trail, trail->spacing_ns);
}

void afz_trail_add(struct afz_trail *trail, uint64_t t_ns, uint64_t value)
{
        unsigned newest = (trail->head + AFZ_TRAIL_POINTS - 1) % AFZ_TRAIL_POINTS;
        bool keep = trail->has &&
                    (!trail->count || trail->last_t_ns - trail->t_ns[newest] >= trail->spacing_ns);
        if (keep && t_ns > trail->last_t_ns) {
                trail->t_ns[trail->head] = trail->last_t_ns;
                trail->value[trail->head] = trail->last;
                trail->head = (trail->head + 1) % AFZ_TRAIL_POINTS;
                if (trail->count < AFZ_TRAIL_POINTS)
                        trail->count++;
        }
        trail->last_t_ns = t_ns;
        trail->last = value;
        trail->has = true;
}

bool afz_trail_change(const struct afz_trail *trail, uint64_t window_ns, int64_t *ret_change,
                      uint64_t *ret_ns)
{
        if (!trail->count)
                return false;
        unsigned at = 0;
        for (unsigned back = 1; back <= trail->count; back++) {
                at = (trail->head + AFZ_TRAIL_POINTS - back) % AFZ_TRAIL_POINTS;
                if (trail->last_t_ns - trail->t_ns[at] >= window_ns)
                        break;
        }
        if (trail->last_t_ns <= trail->t_ns[at])
                return false;
        *ret_change = (int64_t)(trail->last - trail->value[at]);
        *ret_ns = trail->last_t_ns - trail->t_ns[at];
        return true;
}

int64_t afz_trail_rate(const struct afz_trail *trail, uint64_t window_ns)
{
        int64_t change;
        uint64_t ns;
        if (!afz_trail_change(trail, window_ns, &change, &ns))
                return 0;
        double rate = (double)change * 1e9 / (double)ns;
        /* Beyond what any machine does, and still an int64_t. */
        return rate > 1e18    ? INT64_C(1000000000000000000)
               : rate < -1e18 ? -INT64_C(1000000000000000000)
                              : (int64_t)rate;
}
