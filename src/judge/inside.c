#include "inside.h"

#include "count_of.h"
#include "step_clock.h"

/* The keeper tells what has not changed every 10 s: who was not heard of for longer is gone. */
#define GONE_MS 12000

static bool lives_at(const struct afz_track *track, uint32_t t_ms)
{
        return track->first_ms <= t_ms && (uint64_t)track->last_ms + GONE_MS >= t_ms;
}

/* Its last word at t, if that is not too old. */
static bool told_at(const struct afz_track *track, enum afz_metric metric, uint32_t t_ms,
                    uint64_t *ret)
{
        int64_t value;
        if (!lives_at(track, t_ms) ||
            !afz_column_last(afz_track_column(track, metric), t_ms < UINT32_MAX ? t_ms + 1 : t_ms,
                             &value) ||
            value < 0)
                return false;
        *ret = (uint64_t)value;
        return true;
}

bool afz_inside_at(const struct afz_flight *flight, enum afz_metric metric, uint32_t t_ms,
                   uint64_t *ret)
{
        const struct afz_track *track;
        uint64_t sum = 0, value;
        bool known = false;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_INSIDE, &at));)
                if (told_at(track, metric, t_ms, &value)) {
                        if (__builtin_add_overflow(sum, value, &sum))
                                sum = UINT64_MAX;
                        known = true;
                }
        if (known)
                *ret = sum;
        return known;
}

bool afz_inside_most(const struct afz_flight *flight, enum afz_metric metric, uint32_t from_ms,
                     uint32_t to_ms, uint64_t *ret, uint32_t *ret_ms)
{
        const struct afz_track *track;
        uint64_t best = 0, value;
        bool known = false;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_INSIDE, &at));) {
                const struct afz_column *column = afz_track_column(track, metric);
                for (size_t i = column ? afz_column_at(column, from_ms) : 0;
                     column && i < column->count && column->point[i].t_ms < to_ms; i++) {
                        /* What it rose to within a span counts; of the others the last word. */
                        const struct afz_point *p = &column->point[i];
                        if (!afz_inside_at(flight, metric, p->t_ms, &value))
                                continue;
                        if (p->mean >= 0 && p->most > p->mean)
                                value += (uint64_t)(p->most - p->mean);
                        if (known && value <= best)
                                continue;
                        best = value;
                        *ret_ms = p->t_ms;
                        known = true;
                }
        }
        if (known)
                *ret = best;
        return known;
}

bool afz_inside_model_at(const struct afz_flight *flight, bool gpu, uint32_t t_ms,
                         struct afz_inside_model *ret)
{
        struct afz_inside_model m = {0};
        const struct {
                enum afz_metric of[2]; /* [gpu] */
                uint64_t *to;
        } row[] = {
                {{AFZ_INSIDE_PARAMETERS, AFZ_INSIDE_GPU_PARAMETERS}, &m.parameters},
                {{AFZ_INSIDE_GRADIENTS, AFZ_INSIDE_GPU_GRADIENTS}, &m.gradients},
                {{AFZ_INSIDE_OPTIMIZER, AFZ_INSIDE_GPU_OPTIMIZER}, &m.optimizer},
                {{AFZ_INSIDE_BUFFERS, AFZ_INSIDE_GPU_BUFFERS}, &m.buffers},
                {{AFZ_INSIDE_ACTIVATIONS, AFZ_INSIDE_GPU_ACTIVATIONS}, &m.activations},
                {{AFZ_INSIDE_BATCH_BYTES, AFZ_INSIDE_GPU_BATCH_BYTES}, &m.batch},
        };
        bool known = false;
        for (unsigned i = 0; i < AFZ_COUNT_OF(row); i++) {
                known |= afz_inside_at(flight, row[i].of[gpu], t_ms, row[i].to) && *row[i].to > 0;
                if (i < 4 && __builtin_add_overflow(m.fixed, *row[i].to, &m.fixed))
                        m.fixed = UINT64_MAX;
        }
        if (known)
                *ret = m;
        return known;
}

const struct afz_track *afz_inside_trainer(const struct afz_flight *flight, uint32_t from_ms)
{
        const struct afz_track *track, *found = NULL;
        int64_t best = 0;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_INSIDE, &at));) {
                int64_t count = afz_step_count(afz_track_column(track, AFZ_INSIDE_STEP), from_ms,
                                               UINT32_MAX);
                if (count > best) {
                        best = count;
                        found = track;
                }
        }
        return found;
}

/* One look after another in which steps were made; what is told between two steps is of the later.
 */
static bool walk(const struct afz_column *steps, const struct afz_column *counter, double least,
                 unsigned half, struct afz_inside_pace *ret)
{
        struct afz_step_tick tick = {0};
        struct afz_inside_pace p = {0};
        int64_t before_steps = 0, before = 0, now;
        bool begun = false;
        for (size_t cursor = 0; afz_step_next(steps, &cursor, &tick);) {
                uint32_t t_ms = tick.t_ms < UINT32_MAX ? (uint32_t)tick.t_ms : UINT32_MAX - 1;
                if (!afz_column_last(counter, t_ms + 1, &now) || now < 0)
                        now = 0; /* it counts from nothing */
                if (begun) {
                        int64_t made = tick.count - before_steps, more = now - before;
                        bool holds = more > 0 && (double)more >= least * (double)made;
                        p.steps += made;
                        if (more > 0 && __builtin_add_overflow(p.counted, more, &p.counted))
                                p.counted = INT64_MAX;
                        p.holding += holds;
                        p.late_holding += holds && p.looks >= half;
                        p.looks++;
                        p.to_ms = t_ms;
                } else {
                        p.from_ms = t_ms;
                }
                begun = true;
                before_steps = tick.count;
                before = now;
        }
        *ret = p;
        return p.looks > 0;
}

bool afz_inside_pace_of(const struct afz_track *trainer, enum afz_metric metric, double least,
                        struct afz_inside_pace *ret)
{
        const struct afz_column *steps = afz_track_column(trainer, AFZ_INSIDE_STEP);
        const struct afz_column *counter = afz_track_column(trainer, metric);
        struct afz_inside_pace all;
        return counter && walk(steps, counter, least, 0, &all) &&
               walk(steps, counter, least, all.looks / 2, ret);
}
