#ifndef AFZ_END_CLUES_H
#define AFZ_END_CLUES_H
/* What a recording tells about an end: whose limit a kill for memory was, what the kernel said of a
 * crash, what a machine that went down was like before. Pure; part of judge_end.c. */
#include "verdicts.h"

enum afz_limit_of {
        AFZ_LIMIT_NONE,    /* it was not killed for memory, as far as we know */
        AFZ_LIMIT_OURS,    /* the limit that Antifreeze set */
        AFZ_LIMIT_ABOVE,   /* of a container, a session, a batch system: a cgroup around it */
        AFZ_LIMIT_MACHINE, /* none: the machine itself had nothing left */
};

struct afz_kill_clue {
        enum afz_limit_of of;
        double confidence;
        uint64_t pid;         /* of the victim; 0: not known */
        const char *name;     /* its name; NULL: not known */
        const char *line;     /* the kernel's; NULL: its log was not seen */
        const char *place;    /* the cgroup whose limit it was; NULL: not known */
        uint64_t limit_bytes; /* 0: not known */
        uint32_t t_ms;        /* when; the end where it is not known */
};

/* When CMD was last started: what ended an attempt before that is over. */
uint32_t afz_end_last_start(const struct afz_flight *flight);

/* Who killed for memory. Texts belong to the flight. */
struct afz_kill_clue afz_kill_clue_of(const struct afz_case *c);

/* What the kernel said of a fault in one of its processes, shortly before the end; NULL: nothing.
 */
const struct afz_mark *afz_fault_clue_of(const struct afz_case *c);

/* Whether the machine was short of memory just before the end; false also where it is not known. */
bool afz_end_was_short(const struct afz_case *c, uint64_t *ret_available_bytes);

/* Whether the job was near what it may use just before the end. */
bool afz_end_was_full(const struct afz_case *c);

/* What a machine that went down looked like before; each a line of evidence. The strongest is also
 * said as a clause ("it was very hot"): NULL where there is no sign. */
const char *afz_end_signs(const struct afz_case *c, struct afz_verdict *v);

#endif
