#ifndef AFZ_REPORT_H
#define AFZ_REPORT_H
/* The report of a run: one HTML page that needs nothing but itself. What happened, the time line,
 * memory by kind, who lived when, the machine, and what Antifreeze itself cost.
 *
 * All of it is text and SVG drawn here, so it can be read and printed without JavaScript; a small
 * script of our own (report.js) adds the cursor, the zoom and the switches. Styles and script are
 * in the page, and its content policy allows these two and nothing else: neither a request nor a
 * script that came in with a process's name.
 *
 * Pure but for memory: the same run gives the same bytes (TZ decides how the start is told). A line
 * has at most AFZ_REPORT_BUCKETS points, each with least, mean and most, so a day is no larger than
 * a minute: well below 2 MB.
 */
#include <stdbool.h>
#include <stdint.h>

#include "flight.h"
#include "out.h"
#include "verdict.h"

enum { AFZ_REPORT_KINDS = 12, AFZ_REPORT_MOMENTS = 240 };

/* The job's memory by kind, over time. The kinds of one moment add up to the whole, but for those
 * that lie beside it (files in memory, which can be dropped; GPU memory). */
struct afz_report_ledger {
        unsigned kinds, moments;
        struct {
                const char *name; /* "its own data" */
                const char *what; /* one clause that says what that is; "" where the name does */
                bool beside;
        } kind[AFZ_REPORT_KINDS];
        struct {
                uint32_t t_ms; /* by time */
                uint64_t bytes[AFZ_REPORT_KINDS];
        } moment[AFZ_REPORT_MOMENTS];
};

/* What the memory was for, in a learner's words (purposes.h), and what was adapted. */
enum { AFZ_REPORT_USES = 16 };

struct afz_report_uses {
        struct afz_report_uses_of {
                bool has_peak, has_end;
                uint64_t peak_bytes, end_bytes; /* of all */
                unsigned rows;
                struct {
                        const char *name, *what;
                        uint64_t peak_bytes, end_bytes;
                } row[AFZ_REPORT_USES];
        } of[2];           /* the host, GPU memory */
        char adapted[400]; /* "": nothing was */
};

/* All texts are borrowed, and may hold anything. */
struct afz_report {
        const struct afz_flight *flight;   /* never NULL; one without tracks: nothing recorded */
        const struct afz_outcome *outcome; /* never NULL */
        const struct afz_report_ledger *ledger; /* NULL: not known */
        const struct afz_report_uses *uses;     /* NULL: not known */
        const char *run, *cmd, *version;
        int64_t started_s; /* wall clock; 0: not known */
        uint64_t duration_ms;
        uint32_t tier, policy;                           /* enum afz_tier, enum afz_policy */
        uint64_t budget_bytes, swap_bytes;               /* 0 or UINT64_MAX: none */
        uint64_t peak_bytes, gpu_peak_bytes, own_cpu_ns; /* 0 or UINT64_MAX: not known */
};

/* The whole page. 0, -ENOMEM, or what `out` met. */
int afz_report_put(struct afz_out *out, const struct afz_report *report);

/* For one that has only the recording: run, command, start, budget, peak, cost and duration are
 * taken from there. Texts are borrowed from the flight. */
void afz_report_from_flight(struct afz_report *ret, const struct afz_flight *flight,
                            const struct afz_outcome *outcome);

#endif
