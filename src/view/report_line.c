#include "report_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where a line may not go on over a hole: nothing of ours looks more seldom than this. */
#define JOINT_MS 5000.0
/* Or than so many times its own usual distance (a slow reading). */
#define JOINT_TIMES 8.0
/* So many distances are looked at to know the usual one. */
#define SOME 101
/* A counter is read over at least this. */
#define RATE_MS 1000

void afz_report_line_init(struct afz_report_line *line, uint32_t end_ms)
{
        memset(line, 0, sizeof *line);
        line->end_ms = end_ms ? end_ms : 1;
        line->joint = 2;
}

static unsigned bucket_of(const struct afz_report_line *line, uint64_t t_ms)
{
        uint64_t i = t_ms * AFZ_REPORT_BUCKETS / line->end_ms;
        return i < AFZ_REPORT_BUCKETS ? (unsigned)i : AFZ_REPORT_BUCKETS - 1;
}

static void put(struct afz_report_bucket *b, double lo, double mid, double hi, double weight)
{
        if (b->weight <= 0 || lo < b->lo)
                b->lo = lo;
        if (b->weight <= 0 || hi > b->hi)
                b->hi = hi;
        b->mid = (b->mid * b->weight + mid * weight) / (b->weight + weight);
        b->weight += weight;
}

void afz_report_line_span(struct afz_report_line *line, uint64_t from_ms, uint64_t to_ms, double lo,
                          double mid, double hi)
{
        lo = fmax(lo, 0), mid = fmax(mid, 0), hi = fmax(hi, 0);
        unsigned first = bucket_of(line, from_ms);
        unsigned last = to_ms > from_ms ? bucket_of(line, to_ms - 1) : first;
        double weight = to_ms > from_ms ? (double)(to_ms - from_ms) / (last - first + 1) : 1;
        for (unsigned i = first; i <= last; i++) {
                line->known += line->bucket[i].weight <= 0;
                put(&line->bucket[i], lo, mid, hi, weight);
        }
        if (hi > line->peak || line->seconds <= 0)
                line->peak = hi, line->peak_ms = (uint32_t)from_ms;
        double seconds = weight * (last - first + 1) / 1000;
        line->total += mid * seconds;
        line->seconds += seconds;
}

static int by_size(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
        return (x > y) - (x < y);
}

/* How far apart readings usually are: the middle one of some, so that a hole does not count. */
static double usual_distance(const struct afz_column *column)
{
        uint32_t distance[SOME];
        size_t gaps = column->count - 1, some = gaps < SOME ? gaps : SOME;
        for (size_t k = 0; k < some; k++) {
                const struct afz_point *p = &column->point[k * gaps / some];
                uint64_t end = (uint64_t)p[0].t_ms + p[0].span_ms;
                distance[k] = p[1].t_ms > end ? (uint32_t)(p[1].t_ms - end) : 0;
        }
        qsort(distance, some, sizeof distance[0], by_size);
        return distance[some / 2];
}

static void set_joint(struct afz_report_line *line, const struct afz_column *column)
{
        if (column->count < 2)
                return;
        double bucket_ms = (double)line->end_ms / AFZ_REPORT_BUCKETS;
        double ms = fmax(JOINT_MS, JOINT_TIMES * usual_distance(column));
        line->joint = (unsigned)fmin(fmax(ms / bucket_ms, 2), AFZ_REPORT_BUCKETS);
}

void afz_report_line_gauge(struct afz_report_line *line, const struct afz_column *column,
                           double base, double factor)
{
        for (size_t i = 0; column && i < column->count; i++) {
                const struct afz_point *p = &column->point[i];
                double a = base + factor * (double)p->least, b = base + factor * (double)p->most;
                afz_report_line_span(line, p->t_ms, (uint64_t)p->t_ms + p->span_ms, fmin(a, b),
                                     base + factor * (double)p->mean, fmax(a, b));
        }
        if (column)
                set_joint(line, column);
}

void afz_report_line_rate(struct afz_report_line *line, const struct afz_column *column,
                          double factor)
{
        uint64_t anchor_ms = 0;
        int64_t anchor = 0;
        for (size_t i = 0; column && i < column->count; i++) {
                const struct afz_point *p = &column->point[i];
                uint64_t t_ms = (uint64_t)p->t_ms + p->span_ms;
                bool last = i + 1 == column->count;
                if (i == 0 || p->mean < anchor) { /* the first, or it began anew */
                        anchor_ms = t_ms, anchor = p->mean;
                        continue;
                }
                uint64_t ms = t_ms - anchor_ms;
                if (ms == 0 || (ms < RATE_MS && !last))
                        continue;
                double rate = ((double)p->mean - (double)anchor) * factor * 1000 / (double)ms;
                afz_report_line_span(line, anchor_ms, t_ms, rate, rate, rate);
                anchor_ms = t_ms, anchor = p->mean;
        }
        if (column)
                set_joint(line, column);
}

void afz_report_line_flat(struct afz_report_line *line, double value)
{
        afz_report_line_span(line, 0, line->end_ms, value, value, value);
}

bool afz_report_line_breaks(const struct afz_report_line *line, unsigned before, unsigned i)
{
        return i - before > line->joint;
}
