#ifndef AFZ_LEAK_H
#define AFZ_LEAK_H
/* Leak or warm-up? The shape of one figure over time (or over steps), and when it will meet a line.
 * Pure; docs/verdicts.md has the reasons and the false-alarm rate.
 *
 * What is looked at is the valley floor: block minima after the first quarter was dropped. A leak's
 * floor rises in nearly every block, in no few jumps, as fast late as early, and still does. All
 * that saturates, comes back, or rises once and stays is something else; where that cannot be told
 * apart yet, the answer is UNKNOWN. Time in which the job was frozen does not count.
 */
#include "flight.h"

enum afz_growth {
        AFZ_GROWTH_UNKNOWN, /* can't tell yet: too short, too few blocks, gaps */
        AFZ_GROWTH_FLAT,
        AFZ_GROWTH_WARMING, /* rises, and ever less; or has risen and rests */
        AFZ_GROWTH_LEAK,
};

struct afz_trend {
        enum afz_growth growth;
        double slope_per_s;              /* of the floor, over its later half */
        double slope_low, slope_high;    /* 80 % interval */
        double per_step;                 /* the same by the step; 0: no steps are known */
        int64_t floor_first, floor_last; /* of the first and the last block */
        int64_t top_last;                /* the most in the last block: what meets a line first */
        unsigned blocks;
        uint32_t from_ms, to_ms; /* what was looked at, the dropped quarter left out */
        double lived_s;          /* from the start of the question on, frozen time left out */
        bool is_straight;        /* it rises late as it did early, and to the end */
};

/* How sure one has to be, and so how long one has to look. */
enum afz_trend_when {
        AFZ_TREND_LIVE,    /* it goes on: an early alarm helps nobody, and a cache may still fill */
        AFZ_TREND_ENDED,   /* it is over: more will not be known */
        AFZ_TREND_STOPPED, /* it is over because this figure met its line */
        AFZ_TREND_WHENS
};

struct afz_trend_ask {
        const struct afz_column *column; /* NULL: UNKNOWN */
        const struct afz_column *braked; /* AFZ_HOLD_BRAKED; NULL: it never was */
        const struct afz_flight *steps;  /* whose step clock is to be used; NULL: by time */
        uint32_t from_ms, to_ms;
        enum afz_trend_when when;
};

struct afz_trend afz_trend_judge(const struct afz_trend_ask *ask);

/* Over the points in [from, to), of a run that is over. */
struct afz_trend afz_trend_of(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms);

/* When it meets `line`, in ms from the end of what was looked at; false: it does not, or nothing
 * can be said (warming: a bounded buffer still fills). */
struct afz_forecast {
        double at_ms, soonest_ms, latest_ms; /* latest may be INFINITY */
};
bool afz_forecast_of(const struct afz_trend *trend, int64_t line, struct afz_forecast *ret);

/* The job's need in the last attempt of a run: how it stands, and, where it leaks and may use only
 * so much, when it gets there (false: no forecast). For `why` and `watch` on a live run; the
 * forecast counts from ret_trend->to_ms. judge_leak.c. */
bool afz_leak_forecast(const struct afz_flight *flight, enum afz_trend_when when,
                       struct afz_trend *ret_trend, struct afz_forecast *ret);

#endif
