#ifndef AFZ_WINDOW_H
#define AFZ_WINDOW_H
/* What is known now: for each sense its newest batch and the one before (for rates), how the sense
 * fares, and the recent past of the few values that are drawn as strips. Judges and views read a
 * window and nothing else. It owns nothing: batches belong to the engine.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limit.h"
#include "sample.h"
#include "series.h"

#define AFZ_WINDOW_SOURCES 16
#define AFZ_WINDOW_EVENTS  32

/* One sense, as seen from the window. */
struct afz_source {
        const char *name;               /* of the sense */
        const struct afz_batch *now;    /* NULL: nothing read yet, or not offered */
        const struct afz_batch *before; /* NULL: no earlier reading */
        int error;                      /* 0, or why there is nothing (-ENODATA, -EACCES, ...) */
        const char *why; /* the same in words with the way out; NULL when all is well */
};

enum afz_strip {
        AFZ_STRIP_RAM_USED,   /* bytes: total - available */
        AFZ_STRIP_SWAP_USED,  /* bytes */
        AFZ_STRIP_JOB_NEED,   /* bytes */
        AFZ_STRIP_PSI_MEMORY, /* permyriad of the time, from totals: some */
        AFZ_STRIP_PSI_IO,     /* permyriad: some */
        AFZ_STRIP_CPU_BUSY,   /* permyriad of all cores */
        AFZ_STRIP_JOB_CPU,    /* permyriad of one core */
        AFZ_STRIP_GPU_MEM,    /* bytes, of all GPUs */
        AFZ_STRIP_GPU_UTIL,   /* permyriad, mean over GPUs */
        AFZ_STRIP_COUNT
};

struct afz_window {
        uint64_t t_ns;    /* of the newest tick */
        uint64_t ticks;   /* so far */
        uint64_t job_pid; /* the root of the job; 0: no job, the machine's processes instead */
        struct afz_limit limit; /* what holds the job back now; a judge's word */
        size_t sources;
        struct afz_source source[AFZ_WINDOW_SOURCES];
        struct afz_series strip[AFZ_STRIP_COUNT];
        size_t events; /* of all time; event i stands at i % AFZ_WINDOW_EVENTS */
        struct afz_event event[AFZ_WINDOW_EVENTS];
};

void afz_window_init(struct afz_window *window, uint64_t strip_step_ns);

/* The newest sample of a subject; NULL when there is none. */
const struct afz_sample *afz_window_find(const struct afz_window *window, enum afz_kind kind,
                                         uint64_t id);

/* The newest sample of a kind of which there is one (host, psi, job, self), or its first. */
const struct afz_sample *afz_window_one(const struct afz_window *window, enum afz_kind kind);

/* Walks the newest samples of a kind: start with *cursor = 0; NULL at the end. */
const struct afz_sample *afz_window_next(const struct afz_window *window, enum afz_kind kind,
                                         size_t *cursor);

/* How fast a counter grows: the metric's unit a second, from the last two readings of this very
 * subject. False when there is no earlier reading, no time went by, or the counter went backwards
 * (a device that was reset, a clock that jumped): then there is no rate, which is not a rate of 0.
 */
bool afz_window_rate(const struct afz_window *window, const struct afz_sample *sample,
                     enum afz_metric metric, double *ret);

/* Takes the newest values into the strips and the events of every source read at t_ns into the
 * window's own ring. The engine calls it once a tick. */
void afz_window_advance(struct afz_window *window, uint64_t t_ns);

#endif
