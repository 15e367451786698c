#include "site_swing.h"

#include <stdlib.h>
#include <string.h>

struct water {
        double high, low;
};

/* Of a site in the stretch. What was told before it holds until it is told again; of what nobody
 * knew before, the least is what was told then. */
static struct water water_of(const struct afz_track *site, const struct afz_site_swing_ask *ask)
{
        const struct afz_column *live = afz_track_column(site, AFZ_SITE_LIVE);
        const struct afz_column *highs = afz_track_column(site, AFZ_SITE_HIGH);
        const struct afz_column *lows = afz_track_column(site, AFZ_SITE_LOW);
        int64_t before = 0, high, low;
        bool known = afz_column_last(live, ask->from_ms, &before);
        if (!afz_column_most(highs ? highs : live, ask->from_ms, ask->to_ms, &high) ||
            high < before)
                high = before;
        if (!afz_column_least(lows ? lows : live, ask->from_ms, ask->low_to_ms, &low))
                low = known ? before : 0;
        if (low > high)
                low = high;
        return (struct water){high > 0 ? (double)high : 0, low > 0 ? (double)low : 0};
}

/* The most that processes held, each by itself. */
static bool high_of(const struct afz_flight *flight, const struct afz_site_swing_ask *ask,
                    double *ret)
{
        const struct afz_track *inside;
        bool any = false;
        int64_t high;
        *ret = 0;
        for (size_t at = 0; (inside = afz_flight_next(flight, AFZ_KIND_INSIDE, &at));)
                if (afz_column_most(afz_track_column(inside, AFZ_INSIDE_HIGH), ask->from_ms,
                                    ask->to_ms, &high)) {
                        any = true;
                        *ret += high > 0 ? (double)high : 0;
                }
        return any;
}

/* Adds to the row of its line; the track of a row is the one that swings most. */
static size_t add(struct afz_site_row *row, double *top, size_t rows, const struct afz_track *site,
                  double bytes)
{
        size_t i = 0;
        while (i < rows && !afz_site_same_line(row[i].track, site))
                i++;
        if (i == rows || bytes > top[i]) {
                row[i].track = site;
                top[i] = bytes;
        }
        row[i].bytes += bytes;
        return i == rows ? rows + 1 : rows;
}

static int larger_first(const void *a, const void *b)
{
        const struct afz_site_row *x = a, *y = b;
        return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void gather(const struct afz_flight *flight, const struct afz_site_swing_ask *ask,
                   struct afz_site_row *row, double *top, struct afz_site_swing *ret)
{
        const struct afz_track *site;
        size_t rows = 0;
        for (size_t at = 0; (site = afz_flight_next(flight, AFZ_KIND_SITE, &at));) {
                struct water w = water_of(site, ask);
                ret->low_bytes += w.low;
                if (w.high <= w.low)
                        continue;
                ret->top.seen_bytes += w.high - w.low;
                if (site->subject.id != 0) /* all the others: no line */
                        rows = add(row, top, rows, site, w.high - w.low);
        }
        qsort(row, rows, sizeof *row, larger_first);
        ret->top.rows = rows < AFZ_SITE_ROWS ? (unsigned)rows : AFZ_SITE_ROWS;
        memcpy(ret->top.row, row, ret->top.rows * sizeof *row);
}

bool afz_site_swing_of(const struct afz_flight *flight, const struct afz_site_swing_ask *ask,
                       struct afz_site_swing *ret)
{
        size_t n = 0, at = 0;
        while (afz_flight_next(flight, AFZ_KIND_SITE, &at))
                n++;
        *ret = (struct afz_site_swing){.top.t_ms = ask->to_ms};
        if (n == 0 || ask->from_ms >= ask->to_ms || !high_of(flight, ask, &ret->high_bytes))
                return false;
        struct afz_site_row *row = calloc(n, sizeof *row);
        double *top = calloc(n, sizeof *top);
        if (row && top)
                gather(flight, ask, row, top, ret);
        bool known = row && top && ret->top.rows > 0;
        free(row);
        free(top);
        return known;
}
