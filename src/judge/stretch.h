#ifndef AFZ_STRETCH_H
#define AFZ_STRETCH_H
/* For how long something held: what judges of a whole run ask of a recording. Pure.
 *
 * Time of which nothing is known, or in which the job did not live (frozen by us, stopped by a
 * signal, the machine asleep), is nobody's: it counts neither for nor against a verdict. */
#include "flight.h"

/* The job's sums; of several attempts, the last one's. NULL: it was never seen. */
const struct afz_track *afz_flight_job(const struct afz_flight *flight);

/* How many cores the machine has; negative: not known. */
double afz_flight_cores(const struct afz_flight *flight);
/* Of these, those that nobody of the machine used, on the mean over [from, to): also while somebody
 * waited for a disk. Negative: not known. */
double afz_flight_idle_cores(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms);

/* ---- the job's life in equal slots ---- */

enum { AFZ_SLOTS_MAX = 1024 };

struct afz_slots {
        uint32_t from_ms, slot_ms;
        unsigned count; /* 0: the job was never seen */
};

/* Long enough that each slot has two readings of every sense, also where the recording was thinned.
 */
struct afz_slots afz_slots_of(const struct afz_flight *flight);

static inline uint32_t afz_slot_start(const struct afz_slots *s, unsigned i)
{
        return s->from_ms + i * s->slot_ms;
}

/* The slots that a track lives in: [first, end). Returns the first. */
unsigned afz_slots_of_track(const struct afz_slots *s, const struct afz_track *track,
                            unsigned *ret_end);

/* Whether the job could have worked in [from, to): it was seen, not braked, not frozen, and not all
 * of it was stopped. */
bool afz_job_lived(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms);

/* ---- figures over [from, to); negative: not known ---- */

/* Of a counter: units a second, times `scale`. */
double afz_rate_or(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms, double scale);
/* Of a gauge: its mean, times `scale`. */
double afz_mean_or(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms, double scale);

/* How busy the job's GPUs were, the busiest of them; 0 to 1. Where nobody knows whose processes are
 * on the GPUs (in a container), all of them count as the job's. Negative: no GPU told. */
double afz_job_gpu_util(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms);
/* Whether the job was seen on it; and whether it may have been: where no process on any GPU was
 * told of (in a container), nobody knows. */
bool afz_job_on_gpu(const struct afz_flight *flight, uint64_t gpu);
bool afz_job_may_use_gpu(const struct afz_flight *flight, uint64_t gpu);
/* Whether a process on a GPU was ever seen to be the job's. */
bool afz_gpu_proc_is_ours(const struct afz_track *gpu_proc);

/* ---- time by points ---- */

struct afz_tally {
        uint32_t held_ms, known_ms;
        uint32_t from_ms, to_ms; /* of the first and the last that held */
};

/* How long `holds` was true of the column's points. A point stands until the next one, but not for
 * more than a few seconds: a gap is a gap. NULL as column: nothing is known. */
struct afz_tally afz_column_tally(const struct afz_column *column,
                                  bool (*holds)(const struct afz_point *point, const void *ctx),
                                  const void *ctx);

/* ---- the quiet at the end ---- */

enum afz_quiet_cut {
        AFZ_QUIET_UNKNOWN, /* fewer than two points */
        AFZ_QUIET_WORK,    /* before it, the counter moved */
        AFZ_QUIET_GAP,     /* before it, nothing is known: the machine slept, or we did */
        AFZ_QUIET_ALL,     /* it never moved */
};

struct afz_quiet {
        uint32_t from_ms, to_ms;
        enum afz_quiet_cut cut;
};

/* The last stretch in which a counter grew by less than `per_s` a second, taken over some seconds
 * each. What happened in the last `tail_ms` does not end it: whoever ends a job that hangs wakes it
 * for a moment. */
struct afz_quiet afz_column_quiet(const struct afz_column *counter, double per_s, uint32_t tail_ms);

#endif
