#include "hang_steps.h"

static const struct {
        unsigned steps; /* that have come, before their absence means something */
        double longest; /* of them, that pass without one */
} at = {
        .steps = 5,    /* fewer are a warm-up */
        .longest = 20, /* an evaluation between two steps takes less */
};

struct afz_steps afz_steps_of(const struct afz_flight *flight)
{
        struct afz_steps st = {0};
        for (size_t i = 0; i < flight->marks; i++) {
                const struct afz_mark *m = &flight->mark[i];
                if (m->kind == AFZ_MARK_ATTEMPT)
                        st = (struct afz_steps){0};
                if (m->kind != AFZ_MARK_STEP)
                        continue;
                uint32_t took_ms = st.count++ > 0 ? m->t_ms - st.last_ms : 0;
                st.longest_ms = took_ms > st.longest_ms ? took_ms : st.longest_ms;
                st.last_ms = m->t_ms;
                st.number = m->code;
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
