#include "leak_stretch.h"

#include "end_clues.h"
#include "leak_kind.h"

/* Of the most: where the ladder, and the kernel's reclaim, begin to hold it. As good as there. */
#define NEAR_TOP 0.9

/* The first mark of one of these actions in the stretch; `otherwise` where there is none. */
static uint32_t first_action(const struct afz_flight *flight, const struct afz_leak_stretch *s,
                             uint32_t actions, uint32_t otherwise)
{
        for (size_t i = 0; i < flight->marks; i++) {
                const struct afz_mark *m = &flight->mark[i];
                if (m->kind == AFZ_MARK_ACTION && m->t_ms >= s->from_ms && m->t_ms < s->to_ms &&
                    m->code >= 0 && m->code < AFZ_ACTION_COUNT && actions >> m->code & 1)
                        return m->t_ms;
        }
        return otherwise;
}

#define A(name) (1U << AFZ_ACTION_##name)

static bool ended_for_memory(const struct afz_case *c)
{
        const struct afz_facts *f = &c->facts;
        if (f->end.how == AFZ_END_STOPPED)
                return !f->storm &&
                       (f->stop_cause == AFZ_CAUSE_BUDGET || f->stop_cause == AFZ_CAUSE_PRESSURE ||
                        f->stop_cause == AFZ_CAUSE_KERNEL);
        if (f->end.how == AFZ_END_SIGNAL || (f->end.how == AFZ_END_EXIT && f->end.code != 0))
                return afz_kill_clue_of(c).of != AFZ_LIMIT_NONE;
        return f->end.how == AFZ_END_OOM_KILLED;
}

struct afz_leak_stretch afz_leak_stretch_of(const struct afz_case *c)
{
        struct afz_leak_stretch s = {.from_ms = afz_end_last_start(c->flight),
                                     .to_ms = UINT32_MAX,
                                     .met_line = ended_for_memory(c)};
        /* What happens after it was told to end is no growth of its own. */
        s.to_ms = first_action(c->flight, &s, A(INTERRUPT) | A(TERMINATE) | A(KILL), UINT32_MAX);
        return s;
}

struct afz_trend afz_leak_trend_of(const struct afz_flight *flight, const struct afz_column *column,
                                   const struct afz_leak_stretch *s, enum afz_trend_when when)
{
        const struct afz_track *hold = afz_flight_one(flight, AFZ_KIND_HOLD);
        return afz_trend_judge(&(struct afz_trend_ask){
                .column = column,
                .braked = afz_track_column(hold, AFZ_HOLD_BRAKED),
                .steps = flight,
                .from_ms = s->from_ms,
                .to_ms = s->to_ms,
                .when = when,
        });
}

/* Where it came near what it had at the end of the stretch: from there on, a machine that runs out
 * of memory lets nobody grow. */
static uint32_t near_top(const struct afz_column *need, const struct afz_leak_stretch *s)
{
        int64_t most;
        size_t i = afz_column_at(need, s->from_ms);
        if (!afz_column_most(need, s->from_ms, s->to_ms, &most))
                return s->to_ms;
        for (; i < need->count && need->point[i].t_ms < s->to_ms; i++)
                if ((double)need->point[i].most >= NEAR_TOP * (double)most)
                        return need->point[i].t_ms;
        return s->to_ms;
}

/* The stretch up to its end, then (a job that is braked, squeezed or asked to save grows otherwise)
 * up to the first of these, then up to where it came near the line; each first as of any run, then
 * as one that is known to have grown. */
static struct afz_trend trend_up_to(const struct afz_case *c, const struct afz_column *need,
                                    struct afz_leak_stretch *s, bool *ret_short)
{
        struct afz_trend trend = {0};
        for (int round = 0; round < 3; round++) {
                *ret_short = false;
                trend = afz_leak_trend_of(c->flight, need, s, AFZ_TREND_ENDED);
                if (trend.growth == AFZ_GROWTH_LEAK)
                        break;
                *ret_short = true;
                trend = afz_leak_trend_of(c->flight, need, s, AFZ_TREND_STOPPED);
                if (trend.growth == AFZ_GROWTH_LEAK)
                        break;
                uint32_t held =
                        first_action(c->flight, s, A(BRAKE) | A(SQUEEZE) | A(CHECKPOINT), s->to_ms);
                s->to_ms = held == s->to_ms ? near_top(need, s) : held;
        }
        return trend;
}

/* When the line that grew most was first seen to hold something; false: none is known. */
static bool line_begins(const struct afz_flight *flight, const struct afz_leak_stretch *s,
                        uint32_t *ret_ms)
{
        uint32_t to_ms = s->to_ms < flight->end_ms ? s->to_ms : flight->end_ms;
        struct afz_site_top top;
        if (!afz_site_growth(flight, s->from_ms, to_ms, &top) ||
            top.row[0].track->first_ms <= s->from_ms)
                return false;
        *ret_ms = top.row[0].track->first_ms;
        return true;
}

/* When the last loader worker began: each epoch may have its own. */
static bool workers_begin(const struct afz_flight *flight, const struct afz_leak_stretch *s,
                          uint32_t *ret_ms)
{
        uint32_t last_ms = s->from_ms;
        const struct afz_track *track;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_PROC, &at));)
                if (afz_leak_role_of(track) == AFZ_ROLE_WORKER && track->first_ms > last_ms &&
                    track->first_ms < s->to_ms)
                        last_ms = track->first_ms;
        *ret_ms = last_ms;
        return last_ms > s->from_ms;
}

/* From where its line, or its workers, begin. */
static struct afz_trend trend_since(bool (*begins)(const struct afz_flight *flight,
                                                   const struct afz_leak_stretch *s,
                                                   uint32_t *ret_ms),
                                    const struct afz_case *c, const struct afz_column *need,
                                    const struct afz_leak_stretch *s, bool *ret_short)
{
        struct afz_leak_stretch late = *s;
        if (!begins(c->flight, s, &late.from_ms))
                return (struct afz_trend){0};
        return trend_up_to(c, need, &late, ret_short);
}

/* Workers that copy begin where the data set is there: it is no part of what they copy. */
static bool is_copying(const struct afz_flight *flight, const struct afz_trend *trend)
{
        struct afz_leak_seen seen;
        if (trend->growth != AFZ_GROWTH_LEAK)
                return false;
        afz_leak_see(flight, trend, &seen);
        return afz_leak_is_copied(&seen);
}

/* Where it met its line. Imports, the building of a model or a data set may take longer than the
 * leak itself, and hide it. */
struct afz_trend afz_leak_trend_to_line(const struct afz_case *c, const struct afz_column *need,
                                        const struct afz_leak_stretch *s, bool *ret_short)
{
        struct afz_leak_stretch whole = *s;
        struct afz_trend trend = trend_since(workers_begin, c, need, s, ret_short);
        if (is_copying(c->flight, &trend))
                return trend;
        trend = trend_up_to(c, need, &whole, ret_short);
        if (trend.growth == AFZ_GROWTH_LEAK)
                return trend;
        struct afz_trend late = trend_since(line_begins, c, need, s, ret_short);
        return late.growth == AFZ_GROWTH_LEAK ? late : trend;
}
