#ifndef AFZ_FLIGHT_FIXTURE_H
#define AFZ_FLIGHT_FIXTURE_H
/* Flights made by hand: for tests of what reads recordings.
 *
 * A subject is named by its kind and id (start 0) and made when it is first spoken of, so nothing
 * here hands out pointers that a later track could move. Times are ms since the run's start,
 * [from, to) in steps; a column is told forwards in time, in as many pieces as one likes, and what
 * lies between two pieces is a gap. Anything that fails ends the test program.
 *
 *   struct afz_flight f;
 *   afz_flight_init(&f);
 *   fly_line(&f, AFZ_KIND_HOLD, 0, AFZ_HOLD_NEED, fly_every(0, 60000, 100), 1 << 30, 10 << 20);
 *   fly_event(&f, 59000, AFZ_EVENT_OOM_KILL, 4711, "Memory cgroup out of memory: ...");
 *   ...
 *   afz_flight_done(&f);
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "flight.h"

#define FLY_KB(n) ((int64_t)((n)*1024.0))
#define FLY_MB(n) ((int64_t)((n)*1048576.0))
#define FLY_GB(n) ((int64_t)((n)*1073741824.0))

struct fly_times {
        uint32_t from_ms, to_ms, step_ms;
};

static inline struct fly_times fly_every(uint32_t from_ms, uint32_t to_ms, uint32_t step_ms)
{
        return (struct fly_times){from_ms, to_ms, step_ms};
}

static inline void fly_must(int r)
{
        if (r < 0)
                abort();
}

/* ---- subjects ---- */

/* The track, to be used at once: the next new one may move it. Texts may be NULL. */
static inline struct afz_track *fly_named(struct afz_flight *f, enum afz_kind kind, uint64_t id,
                                          const char *name, const char *detail, const char *note)
{
        struct afz_subject subject = {.kind = kind, .id = id};
        struct afz_track *track = afz_flight_track(f, &subject, name, detail, note);
        if (!track)
                abort();
        return track;
}

static inline struct afz_track *fly_track(struct afz_flight *f, enum afz_kind kind, uint64_t id)
{
        return fly_named(f, kind, id, NULL, NULL, NULL);
}

/* ---- columns ---- */

static inline void fly_point(struct afz_flight *f, enum afz_kind kind, uint64_t id,
                             enum afz_metric metric, uint32_t t_ms, int64_t value)
{
        struct afz_point point = {.t_ms = t_ms, .least = value, .most = value, .mean = value};
        fly_must(afz_flight_add(f, fly_track(f, kind, id), metric, &point));
}

/* One that stands for a span: what is old looks so. */
static inline void fly_span(struct afz_flight *f, enum afz_kind kind, uint64_t id,
                            enum afz_metric metric, uint32_t t_ms, uint32_t span_ms, int64_t least,
                            int64_t most, int64_t mean)
{
        struct afz_point point = {t_ms, span_ms, least, most, mean};
        fly_must(afz_flight_add(f, fly_track(f, kind, id), metric, &point));
}

/* By a formula: its value at each time. */
typedef int64_t (*fly_formula)(uint32_t t_ms, const void *ctx);

static inline void fly_column(struct afz_flight *f, enum afz_kind kind, uint64_t id,
                              enum afz_metric metric, struct fly_times times, fly_formula formula,
                              const void *ctx)
{
        for (uint64_t t = times.from_ms; t < times.to_ms; t += times.step_ms)
                fly_point(f, kind, id, metric, (uint32_t)t, formula((uint32_t)t, ctx));
}

/* A straight line: `first` at the beginning of these times, and so much more each second. Flat with
 * 0; also what a counter does that goes at an even rate. */
static inline void fly_line(struct afz_flight *f, enum afz_kind kind, uint64_t id,
                            enum afz_metric metric, struct fly_times times, int64_t first,
                            double per_s)
{
        for (uint64_t t = times.from_ms; t < times.to_ms; t += times.step_ms) {
                double seconds = (double)(t - times.from_ms) / 1000;
                fly_point(f, kind, id, metric, (uint32_t)t, first + (int64_t)(seconds * per_s));
        }
}

static inline void fly_flat(struct afz_flight *f, enum afz_kind kind, uint64_t id,
                            enum afz_metric metric, struct fly_times times, int64_t value)
{
        fly_line(f, kind, id, metric, times, value, 0);
}

/* ---- shapes: for formulas, each pure ---- */

/* The same noise each time: a number in [-1, 1) of (seed, n). */
static inline double fly_noise(uint64_t seed, uint64_t n)
{
        uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + n;
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        x ^= x >> 31;
        return (double)(x >> 11) / (double)(UINT64_C(1) << 52) - 1;
}

/* 0 at the start of each period, rising to 1 at its end. */
static inline double fly_saw(uint32_t t_ms, uint32_t period_ms)
{
        return (double)(t_ms % period_ms) / period_ms;
}

/* Rises from 0 to 1 and ever less: x / (1 + x) of its half-time. What a cache that fills does. */
static inline double fly_fill(uint32_t t_ms, uint32_t half_ms)
{
        return (double)t_ms / ((double)t_ms + half_ms);
}

/* ---- marks ---- */

static inline void fly_mark(struct afz_flight *f, uint32_t t_ms, enum afz_mark_kind kind,
                            int64_t code, const char *text)
{
        fly_must(afz_flight_mark(f, t_ms, kind, code, text, text ? strlen(text) : 0));
}

/* Something that happened to the machine: an OOM kill, an Xid, a segmentation fault. */
static inline void fly_event(struct afz_flight *f, uint32_t t_ms, enum afz_event_kind event,
                             uint32_t code, const char *text)
{
        fly_mark(f, t_ms, AFZ_MARK_EVENT, (int64_t)((uint64_t)event << 32 | code), text);
}

/* Training steps at an even pace, counted from `first`, as the keeper tells them: looks once a
 * second at how many a process (the job's 100) has begun. */
static inline void fly_steps(struct afz_flight *f, struct fly_times times, int64_t first)
{
        for (uint64_t t = times.from_ms; t < (uint64_t)times.to_ms + 1000; t += 1000) {
                uint64_t at = t < times.to_ms ? t : times.to_ms - 1;
                int64_t begun = (int64_t)((at - times.from_ms) / times.step_ms);
                fly_point(f, AFZ_KIND_INSIDE, 100, AFZ_INSIDE_STEP, (uint32_t)at, first + begun);
        }
}

#endif
