#ifndef AFZ_LADDER_H
#define AFZ_LADDER_H
/* The ladder: from looks at the job to deeds, one rung at a time, each with a deadline.
 *
 * Pure: time and figures come in, actions go out. The rungs and every threshold are in the table
 * ladder_rules.h (and lines.c, pressure.c); docs/ladder.md tells it with reasons. What must hold,
 * whatever comes in:
 *
 * - A job whose need stays below the act line, on a machine that is not short, is never touched.
 * - A brake is always lifted before checkpoint, interrupt and terminate; it lasts seconds at most,
 *   over all pulses of one climb together.
 * - Between act and hard the job is dosed (short freezes), told of and asked to save; it is stopped
 *   only when its need comes so near to hard that the next look could be too late, or when the
 *   kernel was first. A job that peaks there and comes back goes on, and the ladder is climbed down
 *   again; a peak that it came back from (or rests at) does not begin a climb a second time.
 * - Memory that still grows 20 ms after a brake is being filled by the kernel: straight to kill, if
 *   it would reach hard within 300 ms; else it stays frozen and is looked at.
 * - Every wait ends at once when the present slope would reach hard within 300 ms.
 * - Before it is asked to save or to end, a picture of the moment is taken (the caller's business)
 *   while it stands still: a quarter of a second at most, and not at all where hard is so near that
 *   every wait ends. A job that is frozen anyway is not frozen a second time for it.
 * - A machine that is short by another's growth brakes and squeezes the job; it is stopped only
 *   when that outlasts the brake, and the cause says so (AFZ_CAUSE_PRESSURE).
 * - A job that stands still inside its own limit, on a machine that is fine, is only told of.
 * - Missing figures never climb the ladder (UNKNOWN is not danger), and never hide one that is
 *   there.
 * - A job that can use less is asked to at the start of a climb, and has 5 s for it (a step) before
 *   it is asked to save; a second time with that, and before it is stopped where there is time.
 * - A job whose large allocations are refused half way to the stop line is not stopped or braked
 *   for the slope that leads there: it is taken at its need. It is asked to save, for a step that
 *   is refused may be its last, but seldom. What is not refused (a slow leak, many small things)
 *   takes the rungs as ever.
 * - Policy watch: TELL and nothing else. Shrink is for adapt alone. RESTART is never said here:
 *   the engine decides it after the end (restart_plan.h).
 */
#include <stdbool.h>
#include <stdint.h>

#include "hold.h"
#include "lines.h"
#include "pressure.h"
#include "space.h"
#include "trail.h"

/* What the job answered to a checkpoint request. */
enum afz_ack { AFZ_ACK_NONE, AFZ_ACK_ASKED, AFZ_ACK_SAVING, AFZ_ACK_SAVED, AFZ_ACK_CANNOT };

struct afz_ladder_setup {
        enum afz_policy policy;
        struct afz_lines lines;
        enum afz_tier tier;
        uint64_t grace_ns;      /* from the request to stop until SIGKILL; --grace */
        uint64_t processes_max; /* more than so many is a fork storm; 0: no limit */
        bool can_checkpoint;    /* somebody listens, or a signal or command was given */
        bool can_ask_early;     /* somebody listens: a signal may be taken for the end */
        bool can_shrink;        /* somebody listens who can use less; counts under adapt */
        bool refuses;           /* and large allocations fail half way between act and stop, which
                                 * it gets over: a fast climb ends there by itself */
        bool can_brake;
        bool can_picture; /* there is somebody to take one, and something to put it into */
        bool lowered;     /* the lines were lowered because others grew: a stop says PRESSURE */
        bool parts_alone; /* a server: a part that the kernel killed does not end the rest */
};

/* Where it stands before it is stopped, to be taken down now; or there was no time for that. */
enum afz_picture { AFZ_PICTURE_NONE, AFZ_PICTURE_TAKE, AFZ_PICTURE_MISSED };

/* Why and what, for the line that is said and the verdict. */
struct afz_decision {
        uint32_t actions; /* bits of enum afz_action, to be done now, in the order of the enum but
                           * RELEASE first when it is there with a later one */
        enum afz_cause cause;
        bool storm;                /* it is about the number of processes, not about memory */
        int64_t slope_bytes_per_s; /* of need, over the last look-back of the job's own time */
        uint64_t squeeze_bytes;    /* with SQUEEZE */
        enum afz_picture picture;  /* TAKE: after the actions, and afz_ladder_pictured() is told */
        uint64_t wake_ns;          /* look again no later than this (monotonic) */
        bool over;                 /* the ladder has reached kill: keep killing until it is gone */
};

enum afz_stage {
        AFZ_STAGE_CALM,        /* nothing is done, or all that could be was, and it rests */
        AFZ_STAGE_OVER,        /* above act and growing: dosed */
        AFZ_STAGE_ASKED,       /* asked to save; runs freely */
        AFZ_STAGE_INTERRUPTED, /* SIGINT sent */
        AFZ_STAGE_TERMINATED,  /* SIGTERM sent: no way back */
        AFZ_STAGE_KILLED,
        AFZ_STAGE_COUNT
};

enum afz_brake_reason {
        AFZ_BRAKE_BUDGET,
        AFZ_BRAKE_PRESSURE,
        AFZ_BRAKE_STORM,
        AFZ_BRAKE_SPACE,
        AFZ_BRAKE_PICTURE,
        AFZ_BRAKE_COUNT
};

/* In place, nothing allocated. The fields are for the ladder's own files (and a debugger). */
struct afz_ladder {
        struct afz_ladder_setup setup;

        enum afz_stage stage;
        enum afz_cause cause;  /* of the stage */
        bool storm;            /* likewise */
        uint64_t stage_ns;     /* when it began */
        uint64_t climb_ns;     /* when this climb began ... */
        uint64_t base_bytes;   /* ... and where */
        uint64_t peak_bytes;   /* of this climb */
        uint64_t proved_bytes; /* a peak that it came back from, or a level that it rests at */
        uint64_t still_ns;     /* since when it does not grow; 0: it does */
        uint64_t asked_ns;     /* the last checkpoint request; 0: none */
        uint64_t stop_ns;      /* the first request to stop */
        uint64_t shrink_ns;    /* the last request to use less in this climb; 0: none */
        unsigned shrinks;      /* how many there were */
        bool told, told_thrash;

        bool braked;
        enum afz_brake_reason reason;
        uint64_t brake_ns, brake_until_ns, released_ns, released_bytes;
        uint64_t used_ns[AFZ_BRAKE_COUNT];   /* of the brake, per reason and climb */
        uint64_t rested_ns[AFZ_BRAKE_COUNT]; /* since when the reason has been gone; 0: not */
        uint64_t frozen_t_ns, frozen_bytes;  /* first look at the frozen job; t 0: none yet */

        uint64_t picture_ns;          /* when the last picture was begun; 0: none */
        bool picturing;               /* the brake waits for it, ... */
        uint64_t unpictured_until_ns; /* ... without it would end then, ... */
        enum afz_cause picture_cause; /* ... and began for this */

        struct afz_trail fine, coarse; /* need, over the job's own running time */
        uint64_t run_ns, last_t_ns, last_wake_ns, late_ns;
        uint64_t last_need_bytes;
        bool has_last, spill, gap;

        struct afz_pressure pressure;
        uint64_t pressed_ns, unpressed_ns; /* episode: since; gone since. 0: not */
        uint64_t pressure_told_ns, squeezed_ns;

        uint64_t oom_kills;
        uint64_t storm_count;
        unsigned storms;
        bool storm_told;
        uint64_t storm_ns; /* since when it stands at the kernel's limit of processes; 0: not */

        struct afz_space_word space;
        enum afz_cause space_cause; /* the last that was one */
        enum afz_space_level space_told;
};

void afz_ladder_init(struct afz_ladder *ladder, const struct afz_ladder_setup *setup);

/* New lines (antifreeze set, a re-reckoned budget) or a new listener; where it stands on the ladder
 * is kept. */
void afz_ladder_change(struct afz_ladder *ladder, const struct afz_ladder_setup *setup);

/* One look. `ack` is the state of the checkpoint request, if any was made. */
void afz_ladder_step(struct afz_ladder *ladder, const struct afz_pulse *pulse, enum afz_ack ack,
                     struct afz_decision *ret);

/* The picture is taken: the brake need not wait for it any more. */
void afz_ladder_pictured(struct afz_ladder *ladder);

/* What space.h said last of disk and /dev/shm; holds until the next word. */
void afz_ladder_space(struct afz_ladder *ladder, const struct afz_space_word *word);

/* The job stood still from t_ns on by somebody else's doing, or goes on again (Ctrl-Z, a debugger):
 * a gap in every slope. */
void afz_ladder_gap(struct afz_ladder *ladder);

/* KILL was carried out on one part of a server alone: back to the ground, for the rest. What the
 * kernel has killed so far stays known. */
void afz_ladder_again(struct afz_ladder *ladder);

#endif
