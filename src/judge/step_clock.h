#ifndef AFZ_STEP_CLOCK_H
#define AFZ_STEP_CLOCK_H
/* The training steps of a job over time: a counter that the probe of each process tells once a
 * second (AFZ_INSIDE_STEP). Several steps may lie between two looks, or many looks between two
 * steps. Pure.
 */
#include "flight.h"

/* Of the process that began most steps in [from, to); NULL: none did. A run that was restarted has
 * one for each attempt, and the largest of all (afz_flight_steps()) may be of another. */
const struct afz_column *afz_step_column(const struct afz_flight *flight, uint32_t from_ms,
                                         uint32_t to_ms);

/* Steps that were begun in [from, to). NULL: 0. */
int64_t afz_step_count(const struct afz_column *steps, uint32_t from_ms, uint32_t to_ms);

/* A look that saw more steps than the ones before. */
struct afz_step_tick {
        uint64_t t_ms;
        int64_t count; /* begun until then */
};

/* The next tick: start with *cursor = 0 and a tick of zeros. False: there is none, and the tick
 * stays. */
bool afz_step_next(const struct afz_column *steps, size_t *cursor, struct afz_step_tick *tick);

/* When the first step was seen to have begun: up to a second later than it did. False: never. */
bool afz_step_first(const struct afz_column *steps, uint32_t *ret_ms);

/* Where steps have found their pace: from the look after the one that saw step `after`, to the last
 * that surely lay between two steps (the very last may have seen the end, when a program gives all
 * back). False: there was no such time. */
bool afz_step_steady(const struct afz_column *steps, int64_t after, uint32_t *ret_from_ms,
                     uint32_t *ret_last_ms);

#endif
