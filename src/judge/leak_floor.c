#include "leak_floor.h"

#include <string.h>

#include "step_clock.h"

/* So many steps make a better clock than time does: eight blocks with two in each; and so many
 * looks at it, or what lies between two of them goes by time after all. */
#define STEPS_MIN 16
#define TICKS_MIN 8

/* Giving back at the end: looked for in the last tenth, at most 10 s (an interpreter that frees
 * gigabytes of small objects takes seconds), and believed when a tenth is gone. What is within 3 %
 * of the top was not given back yet. */
#define END_SHARE  10
#define END_MS_MAX 10000
#define END_FELL   0.9
#define END_TOP    0.97

/* The guard's looks are so far apart: a point that stands for a span was made of many. */
#define LOOK_MS 100

/* One pass over the points, with the job's own clock beside it. */
struct walk {
        const struct afz_trend_ask *ask;
        const struct afz_column *steps; /* NULL: by time */
        size_t point, brake, step;
        double braked_ms;                /* before the interval at `brake` */
        struct afz_step_tick last, next; /* around the point */
        bool more;                       /* there is a next one */
};

struct seen {
        const struct afz_point *point;
        double lived_ms, x;
};

static bool is_braked(const struct afz_column *braked, size_t i)
{
        return braked->point[i].least > 0;
}

/* How long it was frozen before t, and whether it is at t. */
static double braked_before(struct walk *w, uint32_t t_ms, bool *ret_now)
{
        const struct afz_column *braked = w->ask->braked;
        *ret_now = false;
        if (!braked)
                return 0;
        for (; w->brake + 1 < braked->count && braked->point[w->brake + 1].t_ms <= t_ms; w->brake++)
                if (is_braked(braked, w->brake))
                        w->braked_ms +=
                                braked->point[w->brake + 1].t_ms - braked->point[w->brake].t_ms;
        if (w->brake >= braked->count || braked->point[w->brake].t_ms > t_ms ||
            !is_braked(braked, w->brake))
                return w->braked_ms;
        *ret_now = true;
        return w->braked_ms + (t_ms - braked->point[w->brake].t_ms);
}

/* Steps begun before t; between two looks at the clock, the share of the time. -1: before the
 * first, after the last. */
static double steps_before(struct walk *w, uint32_t t_ms)
{
        while (w->more && w->next.t_ms <= t_ms) {
                w->last = w->next;
                w->more = afz_step_next(w->steps, &w->step, &w->next);
        }
        if (!w->more || w->last.count <= 0)
                return -1;
        double share = (double)(t_ms - w->last.t_ms) / (double)(w->next.t_ms - w->last.t_ms);
        return (double)w->last.count + share * ((double)w->next.count - (double)w->last.count);
}

static bool walk_next(struct walk *w, struct seen *ret)
{
        const struct afz_column *column = w->ask->column;
        while (w->point < column->count && column->point[w->point].t_ms < w->ask->to_ms) {
                bool frozen;
                ret->point = &column->point[w->point++];
                double braked = braked_before(w, ret->point->t_ms, &frozen);
                ret->lived_ms = (double)(ret->point->t_ms - w->ask->from_ms) - braked;
                ret->x = w->steps ? steps_before(w, ret->point->t_ms) : ret->lived_ms;
                if (!frozen && ret->x >= 0)
                        return true;
        }
        return false;
}

static void walk_start(struct walk *w, const struct afz_trend_ask *ask,
                       const struct afz_column *steps)
{
        bool frozen;
        *w = (struct walk){.ask = ask, .steps = steps};
        w->point = afz_column_at(ask->column, ask->from_ms);
        w->more = afz_step_next(steps, &w->step, &w->next);
        /* What was before the question does not count. */
        double before = braked_before(w, ask->from_ms, &frozen);
        w->braked_ms -= before;
}

/* The clock of the steps in these times, if it is one; NULL: it is not. */
static const struct afz_column *clock_of(const struct afz_trend_ask *ask)
{
        const struct afz_column *steps =
                ask->steps ? afz_step_column(ask->steps, ask->from_ms, ask->to_ms) : NULL;
        struct afz_step_tick tick = {0};
        unsigned ticks = 0;
        if (afz_step_count(steps, ask->from_ms, ask->to_ms) < STEPS_MIN)
                return NULL;
        for (size_t cursor = 0; ticks < TICKS_MIN && afz_step_next(steps, &cursor, &tick);)
                ticks += tick.t_ms >= ask->from_ms && tick.t_ms < ask->to_ms;
        return ticks >= TICKS_MIN ? steps : NULL;
}

static void take(struct afz_floor *floor, const struct seen *seen)
{
        double at = (seen->x - floor->x_first) / floor->part;
        if (at < 0)
                return;
        size_t i = at < AFZ_FLOOR_PARTS ? (size_t)at : AFZ_FLOOR_PARTS - 1;
        struct afz_floor_part *part = &floor->at[i];
        if (!part->points || seen->point->least < part->least)
                part->least = seen->point->least;
        if (!part->points || seen->point->most > part->most)
                part->most = seen->point->most;
        if (!floor->points)
                floor->from_ms = seen->point->t_ms;
        floor->to_ms = seen->point->t_ms + seen->point->span_ms;
        part->points++;
        part->looks += 1 + seen->point->span_ms / LOOK_MS;
        floor->points++;
}

bool afz_floor_of(const struct afz_trend_ask *ask, double drop, struct afz_floor *ret)
{
        struct walk w;
        struct seen seen, first, last;

        memset(ret, 0, sizeof *ret);
        if (!ask->column || ask->from_ms >= ask->to_ms)
                return false;
        const struct afz_column *steps = clock_of(ask);
        ret->by_steps = steps != NULL;
        walk_start(&w, ask, steps);
        if (!walk_next(&w, &first))
                return false;
        for (last = first; walk_next(&w, &seen);)
                last = seen;
        if (last.x <= first.x || last.lived_ms <= first.lived_ms)
                return false;
        ret->lived_ms = last.lived_ms - first.lived_ms;
        ret->unit_ms = ret->lived_ms / (last.x - first.x);
        ret->x_first = first.x + (last.x - first.x) * drop;
        ret->part = (last.x - ret->x_first) / AFZ_FLOOR_PARTS;
        for (walk_start(&w, ask, steps); walk_next(&w, &seen);)
                take(ret, &seen);
        return true;
}

uint32_t afz_floor_end(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms)
{
        size_t end = column ? afz_column_at(column, to_ms) : 0;
        size_t begin = column ? afz_column_at(column, from_ms) : 0;
        if (end < begin + 2)
                return to_ms;
        const struct afz_point *last = &column->point[end - 1], *top = last;
        uint32_t look_ms = (last->t_ms - column->point[begin].t_ms) / END_SHARE;
        if (look_ms > END_MS_MAX)
                look_ms = END_MS_MAX;
        for (size_t i = end; i-- > begin && column->point[i].t_ms + look_ms >= last->t_ms;)
                if (column->point[i].most > top->most)
                        top = &column->point[i];
        if ((double)last->least >= END_FELL * (double)top->most)
                return to_ms;
        /* From the last that was up there (on a plateau with noise, the highest may be long ago)
         * back to where it began to fall. */
        size_t at = end - 1;
        while (&column->point[at] > top &&
               (double)column->point[at].most < END_TOP * (double)top->most)
                at--;
        while (&column->point[at] > top && column->point[at - 1].most > column->point[at].most)
                at--;
        return column->point[at].t_ms + 1;
}
