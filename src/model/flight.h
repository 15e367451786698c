#ifndef AFZ_FLIGHT_H
#define AFZ_FLIGHT_H
/* A recording in memory: who was seen, what was known of them and when, and what happened. Made
 * from a file by src/record (flight_file.h), or by a test by hand; read by judges, words and
 * pictures. Plain data, no I/O.
 *
 *   flight ── track (a subject: the machine, the job, a process, a GPU)
 *                └── column (a metric of it) ── points, by time
 *          └─ mark (something that happened)
 *
 * Time is milliseconds since the run's start (negative never happens: what was earlier is at 0).
 * Absent is not zero: a subject without a column for a metric never told it, and between two points
 * that lie apart nothing is known. Old points stand for a span, with the least, the most and the
 * mean (of a counter: its last value) in it; recent ones are single readings and all three are the
 * same.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hold.h"
#include "sample.h"

struct afz_point {
        uint32_t t_ms;
        uint32_t span_ms; /* 0: one reading at t; else it stands for [t, t + span) */
        int64_t least, most, mean;
};

struct afz_column {
        enum afz_metric metric;
        size_t count, cap;
        struct afz_point *point; /* by time */
};

struct afz_track {
        struct afz_subject subject;
        char *name, *detail, *note; /* the last known; never NULL ("" instead) */
        uint32_t first_ms, last_ms; /* when it was seen */
        uint32_t next; /* of its kind, for afz_flight_next(): its number and one more */
        size_t columns, cap;
        struct afz_column *column;
};

enum afz_mark_kind {
        AFZ_MARK_EVENT,   /* code: enum afz_event_kind in the upper 32 bits, its code below */
        AFZ_MARK_ACTION,  /* code: enum afz_action */
        AFZ_MARK_SAID,    /* what the guard said; code: 0; text "warn: it needs 169M of ..." */
        AFZ_MARK_ATTEMPT, /* CMD was started; code: which attempt, from 1 */
        AFZ_MARK_UNUSED,  /* nobody writes it; its number stays taken (steps: AFZ_INSIDE_STEP) */
        AFZ_MARK_GAP,     /* the recording lacks something; code: how many records */
        AFZ_MARK_STACK,   /* where a thread stood; code: its pid << 32 | tid */
        AFZ_MARK_SITE,    /* the stack of a site, innermost first; code: its subject's id */
        AFZ_MARK_AGENT,   /* what the agent told; code: enum afz_agent_event, text: see there */
        AFZ_MARK_COUNT
};

/* How the text of a STACK begins that was taken while the guard held the job still, before it asked
 * it to save or to end: a picture of the moment, and no sign of a hang. */
#define AFZ_STACK_FROZEN "frozen: "

struct afz_mark {
        uint32_t t_ms;
        enum afz_mark_kind kind;
        int64_t code;
        char *text; /* never NULL */
};

/* What was known at the start. Texts are never NULL. */
struct afz_flight_head {
        char run[32], boot_id[40], host[65];
        char *cmd;
        char *cwd, *git;   /* of the command; "" where there is none */
        int64_t started_s; /* wall clock */
        uint64_t ram_total_bytes, swap_total_bytes, budget_bytes, swap_bytes;
        uint32_t cores, tier, policy;
};

struct afz_flight {
        struct afz_flight_head head;
        size_t tracks, tracks_cap;
        struct afz_track *track;
        uint32_t *slot; /* for afz_flight_track() alone: where each is, by a hash of its subject */
        size_t slots;
        uint32_t first[AFZ_KIND_COUNT], last[AFZ_KIND_COUNT]; /* of each kind, as afz_track.next */
        size_t marks, marks_cap;
        struct afz_mark *mark; /* by time */
        bool marks_mixed;      /* not yet: afz_flight_settle() puts them in order */
        uint32_t end_ms;       /* of the last thing known */
        bool ended;            /* the recording was closed in order */
        uint32_t holes;        /* parts that were damaged and left out */
};

void afz_flight_init(struct afz_flight *flight);
void afz_flight_done(struct afz_flight *flight);

/* The track of a subject, made when it is not there. NULL: no memory. Texts are copied; NULL or ""
 * leaves what is known. */
struct afz_track *afz_flight_track(struct afz_flight *flight, const struct afz_subject *subject,
                                   const char *name, const char *detail, const char *note);

/* Adds a point at the end of a column; -EINVAL when it is before the last one. Moves the track's
 * and the flight's ends along. */
int afz_flight_add(struct afz_flight *flight, struct afz_track *track, enum afz_metric metric,
                   const struct afz_point *point);

/* The same in any order, for who reads what several have written; afz_flight_settle() must follow
 * before anybody looks. */
int afz_flight_put(struct afz_flight *flight, struct afz_track *track, enum afz_metric metric,
                   const struct afz_point *point);
int afz_flight_settle(struct afz_flight *flight);

/* The column to write many points into by hand: made when it is not there, with room for so many
 * more. NULL: no memory. afz_flight_seen() and afz_flight_settle() must follow. */
struct afz_column *afz_flight_column(struct afz_track *track, enum afz_metric metric, size_t more);

/* It was seen over [from, to], whether or not a point of it is kept. */
void afz_flight_seen(struct afz_flight *flight, struct afz_track *track, uint32_t from_ms,
                     uint32_t to_ms);

/* In nearly any order: who tells of what is hundreds of marks back, too, must settle it. */
int afz_flight_mark(struct afz_flight *flight, uint32_t t_ms, enum afz_mark_kind kind, int64_t code,
                    const char *text, size_t text_len);

/* ---- reading ---- */

bool afz_mark_is_picture(const struct afz_mark *mark); /* a STACK that begins so */

/* The first track of a kind; by id where there can be many. NULL: none. */
const struct afz_track *afz_flight_one(const struct afz_flight *flight, enum afz_kind kind);
const struct afz_track *afz_flight_find(const struct afz_flight *flight, enum afz_kind kind,
                                        uint64_t id);
/* Whether a cgroup was made by this very run: it may sit inside another's, or have none. */
bool afz_flight_is_own_cgroup(const struct afz_flight *flight, const struct afz_track *cgroup);
/* Walks the tracks of a kind, and no others, in the order in which they were made: start with
 * *cursor = 0; NULL at the end. */
const struct afz_track *afz_flight_next(const struct afz_flight *flight, enum afz_kind kind,
                                        size_t *cursor);

/* NULL: it never told this metric. NULL as track is fine. */
const struct afz_column *afz_track_column(const struct afz_track *track, enum afz_metric metric);

/* The job's need over time: the guard's own looks where there are any, else the job's sum; NULL:
 * not known. */
const struct afz_column *afz_flight_need(const struct afz_flight *flight);

/* The training steps begun over time: of the process that made most (of ranks that step together,
 * one stands for all); NULL: no step clock was there. */
const struct afz_column *afz_flight_steps(const struct afz_flight *flight);

/* How long the disk took at worst until what was written was on it: the recorder's writer tells
 * that as the length of its tick. 0: not known. */
uint64_t afz_flight_disk_ns(const struct afz_flight *flight);

/* Over [from, to): false when nothing is known in there. The last value is that of the last point
 * which begins before `to`. */
bool afz_column_most(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms,
                     int64_t *ret);
bool afz_column_least(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms,
                      int64_t *ret);
bool afz_column_mean(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms,
                     double *ret);
bool afz_column_last(const struct afz_column *column, uint32_t to_ms, int64_t *ret);
/* Of a counter: units a second over [from, to); false: fewer than two readings, or it was reset. */
bool afz_column_rate(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms,
                     double *ret);
/* The number of the first point at or after t. */
size_t afz_column_at(const struct afz_column *column, uint32_t t_ms);

#endif
