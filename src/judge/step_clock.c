#include "step_clock.h"

static int64_t at_or_before(const struct afz_column *steps, uint32_t to_ms)
{
        int64_t count;
        return afz_column_last(steps, to_ms, &count) && count > 0 ? count : 0;
}

int64_t afz_step_count(const struct afz_column *steps, uint32_t from_ms, uint32_t to_ms)
{
        if (!steps || from_ms >= to_ms)
                return 0;
        int64_t before = at_or_before(steps, from_ms), after = at_or_before(steps, to_ms);
        return after > before ? after - before : 0;
}

const struct afz_column *afz_step_column(const struct afz_flight *flight, uint32_t from_ms,
                                         uint32_t to_ms)
{
        const struct afz_column *most = NULL;
        const struct afz_track *track;
        int64_t best = 0;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_INSIDE, &at));) {
                const struct afz_column *column = afz_track_column(track, AFZ_INSIDE_STEP);
                int64_t count = afz_step_count(column, from_ms, to_ms);
                if (count > best) {
                        best = count;
                        most = column;
                }
        }
        return most;
}

bool afz_step_next(const struct afz_column *steps, size_t *cursor, struct afz_step_tick *tick)
{
        while (steps && *cursor < steps->count) {
                const struct afz_point *p = &steps->point[(*cursor)++];
                if (p->mean <= tick->count)
                        continue;
                /* Of a counter, a point that stands for a span tells its end. */
                *tick = (struct afz_step_tick){(uint64_t)p->t_ms + p->span_ms, p->mean};
                return true;
        }
        return false;
}

bool afz_step_first(const struct afz_column *steps, uint32_t *ret_ms)
{
        struct afz_step_tick tick = {0};
        size_t cursor = 0;
        if (!afz_step_next(steps, &cursor, &tick))
                return false;
        *ret_ms = tick.t_ms < UINT32_MAX ? (uint32_t)tick.t_ms : UINT32_MAX;
        return true;
}

bool afz_step_steady(const struct afz_column *steps, int64_t after, uint32_t *ret_from_ms,
                     uint32_t *ret_last_ms)
{
        struct afz_step_tick tick = {0};
        uint32_t from_ms = 0, last_ms = 0, before_ms = 0;
        for (size_t cursor = 0; afz_step_next(steps, &cursor, &tick);) {
                if (tick.t_ms >= UINT32_MAX)
                        return false;
                before_ms = last_ms;
                last_ms = (uint32_t)tick.t_ms;
                if (from_ms == 0 && tick.count >= after)
                        from_ms = last_ms;
        }
        if (from_ms == 0 || before_ms <= from_ms)
                return false;
        *ret_from_ms = from_ms + 1;
        *ret_last_ms = before_ms;
        return true;
}
