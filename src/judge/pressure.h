#ifndef AFZ_PRESSURE_H
#define AFZ_PRESSURE_H
/* Is the machine short, and is it the job's doing? Pure, in place; part of the ladder.
 *
 * Two words, because they are two things:
 * - low: MemAvailable is below its line. A risk; nobody may feel it yet.
 * - hurting: for the last two seconds everything on the machine stood still for memory for more
 *   than a tenth of the time. What the job suffers inside its own limit does not count.
 *
 * A figure that is not there says neither yes nor no, so a machine without PSI can be low and, by
 * pages that keep coming back from swap, hurting.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lines.h"
#include "trail.h"

struct afz_pressure {
        struct afz_trail stall, job_stall, swap_ins;
        uint64_t frozen_ns, frozen_stall_ns, running_ns, running_stall_ns; /* of this episode */
        uint64_t last_t_ns, last_stall_ns;
        uint64_t peak_bytes;                    /* of need, while there was enough */
        uint64_t scarce_need, scarce_available; /* when there began to be too little */
        bool has_last, was_low, was_scarce;

        /* What the last look said. */
        bool low, hurting;
        bool critical;          /* half of what was left at the low line is gone, too */
        bool last;              /* next to nothing is left */
        bool own;               /* the job holds more than ever before, and half or more of what
                                 * the machine lost since memory became scarce went to it */
        bool blamed;            /* it stands still less while the job is frozen */
        bool largest;           /* the job holds half or more of the RAM that is in use */
        bool small;             /* it holds so little that freezing it helps nobody */
        bool thrashes;          /* the job stands still inside its own limit, the machine is fine */
        uint64_t squeeze_bytes; /* what of the job should go out to swap; 0: nothing */
};

void afz_pressure_init(struct afz_pressure *pressure);
/* `braked`: the job was frozen since the last look. */
void afz_pressure_look(struct afz_pressure *pressure, const struct afz_lines *lines,
                       const struct afz_pulse *pulse, bool braked);
/* The episode is over: what was learned about who is to blame is forgotten. */
void afz_pressure_calm(struct afz_pressure *pressure);
/* A gap in every slope. */
void afz_pressure_gap(struct afz_pressure *pressure);

#endif
