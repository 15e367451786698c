#include "shape.h"

static const struct {
        uint32_t apart_ms;     /* readings that lie further apart know nothing in between */
        uint32_t parts;        /* that it is cut into */
        double slowed_down;    /* the later half's slope by the earlier half's */
        uint32_t tail_ms;      /* that is left out at the end */
        uint32_t warm_divisor; /* of its time that is left out at the start */
} rule = {
        .apart_ms = 30000,  /* old data is kept by ten seconds, twice thinned by twenty */
        .parts = 8,         /* eight in a row the same way by chance: 1 in 128 */
        .slowed_down = 0.5, /* what slows down more is filling up, and will end */
        .tail_ms = 1500,    /* who ends closes its files and joins its threads first */
        .warm_divisor = 4,  /* a start opens files, starts threads, writes headers */
};

/* When the value of a point was read: a span has its last. */
static double time_of(const struct afz_point *p)
{
        return (double)p->t_ms + (double)p->span_ms;
}

/* The counter's value at t, between the readings around it. */
static bool value_at(const struct afz_column *column, uint32_t t_ms, double *ret)
{
        size_t after = afz_column_at(column, t_ms);
        /* A span that began before t may end behind it. */
        while (after > 0 && time_of(&column->point[after - 1]) >= t_ms)
                after--;
        while (after < column->count && time_of(&column->point[after]) < t_ms)
                after++;
        if (after < column->count && time_of(&column->point[after]) == (double)t_ms) {
                *ret = (double)column->point[after].mean;
                return true;
        }
        if (after == 0 || after == column->count)
                return false;
        const struct afz_point *a = &column->point[after - 1], *b = &column->point[after];
        double ms = time_of(b) - time_of(a);
        if (ms <= 0 || ms > rule.apart_ms || b->mean < a->mean)
                return false;
        double share = ((double)t_ms - time_of(a)) / ms;
        *ret = (double)a->mean + ((double)b->mean - (double)a->mean) * share;
        return true;
}

bool afz_shape_rate(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms, double *ret)
{
        double a, b;
        if (!column || to_ms <= from_ms || !value_at(column, from_ms, &a) ||
            !value_at(column, to_ms, &b) || b < a)
                return false;
        *ret = (b - a) * 1000 / (double)(to_ms - from_ms);
        return true;
}

bool afz_shape_grown(const struct afz_column *column, int64_t *ret)
{
        int64_t grown;
        if (!column || column->count < 2 ||
            __builtin_sub_overflow(column->point[column->count - 1].mean, column->point[0].mean,
                                   &grown) ||
            grown < 0)
                return false;
        *ret = grown;
        return true;
}

/* The floor (of what falls: the ceiling) of each part; false: one of them is empty. */
static bool parts_of(const struct afz_column *column, enum afz_way way, uint32_t from_ms,
                     uint32_t to_ms, int64_t *ret)
{
        for (uint32_t i = 0; i < rule.parts; i++) {
                uint64_t length = to_ms - from_ms;
                uint32_t a = from_ms + (uint32_t)(length * i / rule.parts);
                uint32_t b = from_ms + (uint32_t)(length * (i + 1) / rule.parts);
                if (way == AFZ_WAY_UP ? !afz_column_least(column, a, b, &ret[i])
                                      : !afz_column_most(column, a, b, &ret[i]))
                        return false;
        }
        return true;
}

bool afz_shape_steady(const struct afz_column *column, enum afz_way way, uint32_t least_ms,
                      struct afz_steady *ret)
{
        int64_t part[8];
        _Static_assert(sizeof part / sizeof *part == 8, "as many as the table says");
        if (!column || column->count < 2 * rule.parts)
                return false;
        uint32_t first = column->point[0].t_ms, end = column->point[column->count - 1].t_ms;
        if (end - first < rule.tail_ms)
                return false;
        end -= rule.tail_ms;
        uint32_t from = first + (end - first) / rule.warm_divisor;
        if (end - from < least_ms || end - from < rule.parts ||
            !parts_of(column, way, from, end, part))
                return false;
        double sign = way == AFZ_WAY_UP ? 1 : -1, half[2] = {0};
        for (uint32_t i = 1; i < rule.parts; i++) {
                double step = sign * ((double)part[i] - (double)part[i - 1]);
                if (!(step > 0))
                        return false;
                half[i >= rule.parts / 2] += step;
        }
        /* Three steps in the earlier half, four in the later. */
        double earlier = half[0] / 3, later = half[1] / 4;
        if (later < earlier * rule.slowed_down)
                return false;
        *ret = (struct afz_steady){.first = part[0],
                                   .last = part[rule.parts - 1],
                                   .per_s = sign * later * rule.parts * 1000 / (double)(end - from),
                                   .from_ms = from,
                                   .to_ms = end};
        return true;
}
