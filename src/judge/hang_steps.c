#include "hang_steps.h"

#include "step_clock.h"

static const struct {
        int64_t steps;  /* that have come, before their absence means something */
        double longest; /* of them, that pass without one */
} at = {
        .steps = 5,    /* fewer are a warm-up */
        .longest = 20, /* an evaluation between two steps takes less */
};

/* Of several steps between two looks, one may have taken twice as long as the others. */
static uint32_t longest_of(uint64_t gap_ms, int64_t steps)
{
        uint64_t ms = steps > 2 ? 2 * gap_ms / (uint64_t)steps : gap_ms;
        return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

static uint32_t last_start(const struct afz_flight *flight)
{
        uint32_t t_ms = 0;
        for (size_t i = 0; i < flight->marks; i++)
                if (flight->mark[i].kind == AFZ_MARK_ATTEMPT)
                        t_ms = flight->mark[i].t_ms;
        return t_ms;
}

struct afz_steps afz_steps_of(const struct afz_flight *flight)
{
        uint32_t start_ms = last_start(flight);
        const struct afz_column *column = afz_step_column(flight, start_ms, UINT32_MAX);
        struct afz_steps st = {0};
        struct afz_step_tick tick = {0}, before = {0};
        for (size_t cursor = 0; afz_step_next(column, &cursor, &tick); before = tick) {
                if (tick.t_ms < start_ms || tick.t_ms >= UINT32_MAX)
                        continue;
                uint32_t took_ms = before.count > 0 ? longest_of(tick.t_ms - before.t_ms,
                                                                 tick.count - before.count)
                                                    : 0;
                st.longest_ms = took_ms > st.longest_ms ? took_ms : st.longest_ms;
                st.last_ms = (uint32_t)tick.t_ms;
                st.count = tick.count;
        }
        return st;
}

bool afz_steps_count(const struct afz_steps *st)
{
        return st->count >= at.steps;
}

bool afz_steps_stopped(const struct afz_steps *st, uint32_t by_ms)
{
        return afz_steps_count(st) && st->last_ms <= by_ms &&
               (double)(by_ms - st->last_ms) >= at.longest * st->longest_ms;
}
