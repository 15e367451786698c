#include "flight_sink.h"

#include <errno.h>
#include <stdlib.h>

enum afz_kind afz_sink_kind(const struct afz_sink *sink, uint64_t file_kind)
{
        if (!sink->names)
                return file_kind < AFZ_KIND_COUNT ? (enum afz_kind)file_kind : AFZ_KIND_NONE;
        return file_kind < AFZ_NAMES_KINDS ? (enum afz_kind)sink->names->kind[file_kind]
                                           : AFZ_KIND_NONE;
}

bool afz_sink_metric(const struct afz_sink *sink, unsigned file_kind, unsigned index,
                     enum afz_metric *ret)
{
        enum afz_kind kind = afz_sink_kind(sink, file_kind);
        if (kind == AFZ_KIND_NONE || index >= AFZ_METRICS_PER_KIND)
                return false;
        if (sink->names) {
                if (!(sink->names->known[file_kind] >> index & 1))
                        return false;
                index = sink->names->metric[file_kind][index];
        }
        if (index >= afz_kind_table[kind].metrics)
                return false;
        enum afz_metric metric = (enum afz_metric)((unsigned)kind << 8 | index);
        if (sink->wanted && !sink->wanted(metric))
                return false;
        *ret = metric;
        return true;
}

bool afz_metric_is_last(enum afz_metric metric)
{
        const struct afz_metric_info *info = afz_metric_info(metric);
        return info->type != AFZ_GAUGE || info->unit == AFZ_UNIT_CODE ||
               info->unit == AFZ_UNIT_STATE;
}

/* While it is gathered, a point's span_ms counts what went into it and its mean is their sum (or
 * the last); afz_sink_settle() makes both what they are. Each column comes in order but for a
 * straggler now and then, which goes into the newest span. */
static bool gather_into(struct afz_column *column, const struct afz_point *point, bool last,
                        uint32_t bucket_ms)
{
        if (!column || column->count == 0)
                return false;
        struct afz_point *open = &column->point[column->count - 1];
        if (open->t_ms < bucket_ms)
                return false;
        if (point->least < open->least)
                open->least = point->least;
        if (point->most > open->most)
                open->most = point->most;
        /* Sums that do not fit are of no amount that exists; the mean is then of what fitted. */
        int64_t sum;
        if (last) {
                open->mean = point->mean;
        } else if (!__builtin_add_overflow(open->mean, point->mean, &sum)) {
                open->mean = sum;
                open->span_ms++;
        }
        return true;
}

int afz_sink_point(struct afz_sink *sink, struct afz_track *track, enum afz_metric metric,
                   const struct afz_point *point)
{
        if (sink->span_ms == 0) {
                sink->points++;
                return afz_flight_put(sink->flight, track, metric, point);
        }
        uint32_t bucket_ms = point->t_ms / sink->span_ms * sink->span_ms;
        struct afz_column *column = NULL;
        for (size_t i = 0; i < track->columns && !column; i++)
                if (track->column[i].metric == metric)
                        column = &track->column[i];
        if (gather_into(column, point, afz_metric_is_last(metric), bucket_ms))
                return 0;
        struct afz_point first = *point;
        first.t_ms = bucket_ms;
        first.span_ms = 1;
        sink->points++;
        return afz_flight_put(sink->flight, track, metric, &first);
}

/* To the nearest. */
static int64_t mean_of(int64_t sum, int64_t n)
{
        int64_t whole = sum / n, rest = sum % n;
        return 2 * rest >= n ? whole + 1 : 2 * rest <= -n ? whole - 1 : whole;
}

static void finish_point(struct afz_point *point, bool last, bool counter, uint32_t span_ms)
{
        /* A counter is told by its last value; a code too, unless all were near enough to be told
         * exactly (flight_block.c). */
        bool far = (uint64_t)point->most - (uint64_t)point->least > 255;
        if (counter || (last && far))
                point->least = point->most = point->mean;
        else if (!last)
                point->mean = mean_of(point->mean, point->span_ms);
        point->span_ms = span_ms;
}

int afz_sink_settle(struct afz_sink *sink)
{
        struct afz_flight *flight = sink->flight;
        for (size_t i = 0; sink->span_ms && i < flight->tracks; i++)
                for (size_t c = 0; c < flight->track[i].columns; c++) {
                        struct afz_column *column = &flight->track[i].column[c];
                        bool last = afz_metric_is_last(column->metric);
                        bool counter = afz_metric_info(column->metric)->type != AFZ_GAUGE;
                        for (size_t p = 0; p < column->count; p++)
                                finish_point(&column->point[p], last, counter, sink->span_ms);
                }
        return afz_flight_settle(flight);
}

void afz_sink_done(struct afz_sink *sink)
{
        free(sink->reader);
        sink->reader = NULL;
}
