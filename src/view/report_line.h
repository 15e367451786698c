#ifndef AFZ_REPORT_LINE_H
#define AFZ_REPORT_LINE_H
/* A metric over the whole run in a fixed number of buckets, each with least, mean and most: what a
 * line of the report is drawn from. Peaks survive, however long the run was. Pure. */
#include <stdbool.h>
#include <stdint.h>

#include "flight.h"

/* About one for each pixel of a wide screen; 86 s each in a run of 24 hours. */
enum { AFZ_REPORT_BUCKETS = 1000 };

struct afz_report_bucket {
        double lo, mid, hi;
        double weight; /* 0: nothing is known here */
};

struct afz_report_line {
        uint32_t end_ms; /* of the run: the last bucket ends there */
        unsigned known;  /* buckets with something in them */
        unsigned joint;  /* known buckets that lie at most so far apart belong together */
        double peak, total, seconds; /* total / seconds is the mean over what is known */
        uint32_t peak_ms;
        struct afz_report_bucket bucket[AFZ_REPORT_BUCKETS];
};

void afz_report_line_init(struct afz_report_line *line, uint32_t end_ms);

/* Values become base + factor * value (less than zero is zero). A column that is NULL adds
 * nothing, here and below. */
void afz_report_line_gauge(struct afz_report_line *line, const struct afz_column *column,
                           double base, double factor);

/* A counter as what it grew by in a second, times factor; over at least a second each, because a
 * counter that is looked at 500 times a second is all steps. */
void afz_report_line_rate(struct afz_report_line *line, const struct afz_column *column,
                          double factor);

/* One value for the whole time. */
void afz_report_line_flat(struct afz_report_line *line, double value);

/* One value that stood over [from, to). */
void afz_report_line_span(struct afz_report_line *line, uint64_t from_ms, uint64_t to_ms, double lo,
                          double mid, double hi);

/* Whether the line breaks between bucket i and the known one before it (`before`). */
bool afz_report_line_breaks(const struct afz_report_line *line, unsigned before, unsigned i);

#endif
