#include "leak.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "leak_floor.h"
#include "metric.h"

/* What a leak has to show. Tried on some four hundred made series (tests/test_leak.c) and on real
 * runs (docs/verdicts.md). */
static const struct rules {
        double lived_s;       /* it must have lived so long: below that, a start looks the same */
        unsigned per_block;   /* points in each block, so that a minimum is one */
        double share;         /* growth, of the level: less is an allocator at work */
        double tau;           /* Kendall's: 1 when every block is above every block before it */
        double fell;          /* the deepest fall of the floor, of its growth: a tooth of a saw */
        double late_to_early; /* the later half's growth to the earlier's: 1 for a leak */
        double still;        /* the last eighth's growth by its part: 0 for a buffer that is full */
        bool fading_is_less; /* a slope that falls in every quarter is a warm-up's, not a leak's */
} rules[AFZ_TREND_WHENS] = {
        /* Three minutes: most caches and queues are full by then. An early alarm helps nobody: the
         * ladder holds the line all the while. */
        [AFZ_TREND_LIVE] = {180, 3, 0.01, 0.8, 0.15, 0.8, 0.5, true},
        /* 20 s: 2 s a block, so that a collector's or an evaluation's teeth lie within one. */
        [AFZ_TREND_ENDED] = {20, 3, 0.01, 0.8, 0.15, 0.67, 0.5, true},
        /* 2.5 s at ten looks a second: eight blocks of two after the first quarter. That it grew to
         * the line is known; asked is only whether it did so steadily, and by a good part. A
         * machine that runs short slows it down on the way. */
        [AFZ_TREND_STOPPED] = {2.5, 2, 0.2, 0.9, 0.1, 0.4, 0.25, false},
};

/* The first quarter: imports, building the model, the first batches, filling queues. */
#define DROP 0.25

/* A straight line, neither bent down (a cache that fills ever more slowly) nor up (an index, a copy
 * at the end): asked by who has little else to go by. */
#define STRAIGHT_LEAST 0.8 /* the later half's growth to the earlier's */
#define STRAIGHT_MOST  1.6
#define STRAIGHT_STILL 0.75 /* the last eighth's by its part */

/* Less than this is nothing, however small the level. Bytes: an allocator's arenas, an
 * interpreter's pools and huge pages (2 MiB) come and go within it. Others: files, threads. */
#define LEAST_BYTES (4 << 20)
#define LEAST_COUNT 16

/* Numbers of blocks, finest first; the finest whose floor is steady is taken. Fine blocks see at
 * once when growth has stopped; coarse ones see through teeth that are long. */
static const unsigned block_counts[] = {24, 16, 12, 8};
enum { BLOCKS_MAX = 24, BLOCKS_MIN = 8 };

/* Few jumps are no leak: a data set loaded in parts, a model that is built, an evaluation. The
 * largest quarter of the rises may make at most so much of the growth (all being equal, a quarter;
 * of up to seven jumps in 24 blocks, more). */
#define JUMPS_SHARE 0.25
#define JUMPS_MOST  0.55
/* And so many rises there are at least, each a good part of the mean one. */
#define RISES_LEAST 7
#define RISE_LEAST  0.2

/* The floor under teeth is known no better than one look finds it: growth is at least this many
 * times a block's height through its looks. (Regular teeth, looked at regularly, make slow waves of
 * their own.) */
#define LOOKS_APART 6

/* Whether it still grows is seen by the last eighth. */
#define STILL_SHARE 0.125

/* A warm-up's slope falls from quarter to quarter by at least this much; one that falls to less
 * than WARM of the early one is called so, others are waited for. */
#define FADES 0.97
#define WARM  0.8

/* A leak that begins late: where the whole shows nothing, its later half is looked at, and the
 * later half of that, while they are this long: a phase of ten minutes is no load and no save. */
#define LATER_S 600

/* 80 %: one in ten is sooner, one in ten later. And for a forecast no slope is known better than to
 * a fifth: the next hour's steps are not the last one's. */
#define Z_80         1.2816
#define SLOPE_SPREAD 0.2

/* libm stays out of what the guard links. */
static double larger(double a, double b)
{
        return a > b ? a : b;
}

static double smaller(double a, double b)
{
        return a < b ? a : b;
}

static double root_of(double x) /* 1 or more */
{
        double root = x;
        for (int i = 0; i < 16; i++)
                root = (root + x / root) / 2;
        return root;
}

struct blocks {
        unsigned n;
        double x[BLOCKS_MAX]; /* the middle of each */
        double least[BLOCKS_MAX];
        double height; /* of the highest block; its most less its least, through its looks */
        int64_t first, last, top;
};

/* Joins the parts to `wanted` blocks; false where too little is known for that many. */
static bool blocks_of(const struct afz_floor *floor, unsigned wanted, unsigned per_block,
                      struct blocks *ret)
{
        unsigned each = AFZ_FLOOR_PARTS / wanted;
        ret->n = 0;
        ret->height = 0;
        if (floor->points < wanted * per_block)
                return false;
        for (unsigned b = 0; b < wanted; b++) {
                struct afz_floor_part sum = {0};
                for (unsigned i = b * each; i < (b + 1) * each; i++) {
                        const struct afz_floor_part *part = &floor->at[i];
                        if (!part->points)
                                continue;
                        if (!sum.points || part->least < sum.least)
                                sum.least = part->least;
                        if (!sum.points || part->most > sum.most)
                                sum.most = part->most;
                        sum.points += part->points;
                        sum.looks += part->looks;
                }
                if (!sum.points)
                        continue;
                if (ret->n == 0)
                        ret->first = sum.least;
                ret->last = sum.least;
                ret->top = sum.most;
                ret->height =
                        larger(ret->height, ((double)sum.most - (double)sum.least) / sum.looks);
                ret->x[ret->n] = floor->x_first + floor->part * each * (b + 0.5);
                ret->least[ret->n++] = (double)sum.least;
        }
        return ret->n >= BLOCKS_MIN && 4 * ret->n >= 3 * wanted;
}

/* Kendall's tau of the floor with time. */
static double tau_of(const struct blocks *b)
{
        int s = 0;
        for (unsigned i = 0; i < b->n; i++)
                for (unsigned j = i + 1; j < b->n; j++)
                        s += (b->least[j] > b->least[i]) - (b->least[j] < b->least[i]);
        return (double)s / ((double)b->n * (b->n - 1) / 2);
}

static double deepest_fall(const struct blocks *b)
{
        double top = b->least[0], fall = 0;
        for (unsigned i = 1; i < b->n; i++) {
                top = larger(top, b->least[i]);
                fall = larger(fall, top - b->least[i]);
        }
        return fall;
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;
        return (x > y) - (x < y);
}

/* The share of the growth that the largest quarter of the rises makes; 1 where there are few. */
static double jumps_of(const struct blocks *b, double growth)
{
        double rise[BLOCKS_MAX], sum = 0;
        unsigned n = b->n - 1;
        for (unsigned i = 0; i < n; i++)
                rise[i] = b->least[i + 1] - b->least[i];
        qsort(rise, n, sizeof *rise, compare);
        if (rise[n - RISES_LEAST] < RISE_LEAST * growth / n)
                return 1;
        unsigned top = (unsigned)(n * JUMPS_SHARE + 0.5);
        for (unsigned i = 0; i < top; i++)
                sum += rise[n - 1 - i];
        /* Seven rises: two of them are 2/7, not a quarter. */
        return sum / growth * JUMPS_SHARE * n / top;
}

/* The floor at a share of the way, between the blocks. */
static double floor_at(const struct blocks *b, double share)
{
        double at = share * (b->n - 1);
        unsigned i = (unsigned)at;
        return i + 1 >= b->n ? b->least[b->n - 1]
                             : b->least[i] + (at - i) * (b->least[i + 1] - b->least[i]);
}

static double rise_between(const struct blocks *b, double from, double to)
{
        return floor_at(b, to) - floor_at(b, from);
}

/* Each quarter rises less than the one before it. */
static bool fades(const struct blocks *b)
{
        double before = rise_between(b, 0, 0.25);
        for (int q = 1; q < 4; q++) {
                double now = rise_between(b, 0.25 * q, 0.25 * (q + 1));
                if (now > FADES * before)
                        return false;
                before = now;
        }
        return true;
}

static bool enough(const struct blocks *b, const struct rules *rule, enum afz_unit unit)
{
        double least = unit == AFZ_UNIT_BYTES ? LEAST_BYTES : LEAST_COUNT;
        double growth = b->least[b->n - 1] - b->least[0];
        return growth >= least && growth >= rule->share * b->least[b->n - 1] &&
               growth >= LOOKS_APART * b->height;
}

/* The floor rises all the way, in no few jumps. */
static bool steady(const struct blocks *b, const struct rules *rule)
{
        double growth = b->least[b->n - 1] - b->least[0];
        return tau_of(b) >= rule->tau && deepest_fall(b) <= rule->fell * growth &&
               jumps_of(b, growth) <= JUMPS_MOST;
}

/* Of a floor that rises steadily: for ever, or ever less? */
static enum afz_growth leak_or_warming(const struct blocks *b, const struct rules *rule)
{
        double early = rise_between(b, 0, 0.5), late = rise_between(b, 0.5, 1);
        if (late < rule->late_to_early * early)
                return AFZ_GROWTH_WARMING;
        double last = rise_between(b, 1 - STILL_SHARE, 1);
        if (last < rule->still * STILL_SHARE * (early + late))
                return AFZ_GROWTH_WARMING;
        if (rule->fading_is_less && fades(b))
                return late < WARM * early ? AFZ_GROWTH_WARMING : AFZ_GROWTH_UNKNOWN;
        return AFZ_GROWTH_LEAK;
}

static bool straight(const struct blocks *b)
{
        double early = rise_between(b, 0, 0.5), late = rise_between(b, 0.5, 1);
        double last = rise_between(b, 1 - STILL_SHARE, 1);
        return late >= STRAIGHT_LEAST * early && late <= STRAIGHT_MOST * early &&
               last >= STRAIGHT_STILL * STILL_SHARE * (early + late);
}

/* Theil and Sen: the median of all slopes between two blocks, and the interval in which it lies
 * (by the spread of Kendall's S); over the later half where that has blocks enough. */
static void set_slope(const struct blocks *b, double unit_ms, struct afz_trend *ret)
{
        double slope[BLOCKS_MAX * (BLOCKS_MAX - 1) / 2];
        unsigned from = b->n >= 2 * BLOCKS_MIN ? b->n / 2 : 0, m = 0;
        for (unsigned i = from; i < b->n; i++)
                for (unsigned j = i + 1; j < b->n; j++)
                        slope[m++] = (b->least[j] - b->least[i]) / (b->x[j] - b->x[i]);
        qsort(slope, m, sizeof *slope, compare);
        double n = b->n - from, per_s = 1000 / unit_ms;
        double spread = Z_80 * root_of(n * (n - 1) * (2 * n + 5) / 18);
        double low = (m - spread) / 2, high = (m + spread) / 2;
        double mid = m % 2 ? slope[m / 2] : (slope[m / 2 - 1] + slope[m / 2]) / 2;
        ret->slope_per_s = mid * per_s;
        ret->slope_low = slope[low > 0 ? (unsigned)low : 0] * per_s;
        ret->slope_high = slope[high < m - 1 ? (unsigned)high + 1 : m - 1] * per_s;
}

static void set_blocks(const struct blocks *b, const struct afz_floor *floor, struct afz_trend *ret)
{
        ret->blocks = b->n;
        ret->floor_first = b->first;
        ret->floor_last = b->last;
        ret->top_last = b->top;
        set_slope(b, floor->unit_ms, ret);
        ret->per_step = floor->by_steps ? ret->slope_per_s * floor->unit_ms / 1000 : 0;
}

static struct afz_trend judge_floor(const struct afz_trend_ask *ask)
{
        const struct rules *rule = &rules[ask->when];
        struct afz_trend trend = {.from_ms = ask->from_ms, .to_ms = ask->to_ms};
        struct afz_floor floor;
        struct blocks b;

        if (!afz_floor_of(ask, DROP, &floor))
                return trend;
        trend.from_ms = floor.from_ms;
        trend.to_ms = floor.to_ms;
        trend.lived_s = floor.lived_ms / 1000;
        if (trend.lived_s < rule->lived_s)
                return trend;
        enum afz_unit unit = afz_metric_info(ask->column->metric)->unit;
        for (size_t i = 0; i < sizeof block_counts / sizeof *block_counts; i++) {
                if (!blocks_of(&floor, block_counts[i], rule->per_block, &b))
                        continue;
                set_blocks(&b, &floor, &trend);
                bool much = enough(&b, rule, unit);
                trend.growth = much ? AFZ_GROWTH_UNKNOWN : AFZ_GROWTH_FLAT;
                if (much && steady(&b, rule)) {
                        trend.growth = leak_or_warming(&b, rule);
                        trend.is_straight = straight(&b);
                        break;
                }
        }
        return trend;
}

struct afz_trend afz_trend_judge(const struct afz_trend_ask *ask)
{
        struct afz_trend_ask part = *ask;
        size_t end = ask->column ? afz_column_at(ask->column, ask->to_ms) : 0;
        if (end > 0)
                part.to_ms = ask->column->point[end - 1].t_ms + 1;
        if (ask->when != AFZ_TREND_LIVE)
                part.to_ms = afz_floor_end(ask->column, part.from_ms, part.to_ms);
        struct afz_trend whole = judge_floor(&part);
        double length_s = whole.lived_s;
        while (whole.growth != AFZ_GROWTH_LEAK && (length_s /= 2) >= LATER_S) {
                part.from_ms = part.to_ms - (uint32_t)(length_s * 1000);
                struct afz_trend later = judge_floor(&part);
                if (later.growth == AFZ_GROWTH_LEAK)
                        return later;
        }
        return whole;
}

struct afz_trend afz_trend_of(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms)
{
        return afz_trend_judge(&(struct afz_trend_ask){
                .column = column, .from_ms = from_ms, .to_ms = to_ms, .when = AFZ_TREND_ENDED});
}

bool afz_forecast_of(const struct afz_trend *trend, int64_t line, struct afz_forecast *ret)
{
        if (trend->growth != AFZ_GROWTH_LEAK || trend->slope_per_s <= 0)
                return false;
        double room = larger(0, (double)line - (double)trend->top_last);
        double fast = larger(trend->slope_high, trend->slope_per_s * (1 + SLOPE_SPREAD));
        double slow = smaller(trend->slope_low, trend->slope_per_s * (1 - SLOPE_SPREAD));
        ret->at_ms = room * 1000 / trend->slope_per_s;
        ret->soonest_ms = room * 1000 / fast;
        ret->latest_ms = slow > 0 ? room * 1000 / slow : INFINITY;
        return true;
}
