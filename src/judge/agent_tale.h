#ifndef AFZ_AGENT_TALE_H
#define AFZ_AGENT_TALE_H
/* What the agent told of a run (AFZ_MARK_AGENT), put together: how often memory ran out and where,
 * what the program or Antifreeze made of it, and how large the parts of a batch were that fit.
 * Pure; texts are the flight's.
 */
#include "agent_event.h"
#include "flight.h"
#include "inside.h"
#include "verdict.h"

struct afz_oom {
        uint32_t t_ms;
        bool gpu;             /* else the host's memory */
        bool swallowed;       /* the program caught the error, and said nothing of it */
        bool trains;          /* there was an optimizer, though no step had been made yet */
        bool gone_on;         /* steps were made after it by the same program, or it ended well */
        bool stepped_on;      /* steps were made */
        uint64_t step, batch; /* 0: not known; batch: samples */
        uint64_t micro;       /* of them, those that were put through at once; 0: not known */
        uint64_t asked_bytes, allocated_bytes, reserved_bytes; /* 0: not known */
        struct afz_span at;                                    /* "FILE:LINE:FUNCTION"; or empty */
        struct afz_span sites; /* of a GPU: the last AFZ_AGENT_SITES, of this one or of one shortly
                                  before; or empty */
        uint32_t sites_ms;
};

struct afz_tale {
        unsigned ooms[2];         /* [gpu] */
        unsigned swallowed[2];    /* of these, caught by the program itself */
        unsigned swallowed_steps; /* the swallowed ones on a GPU came at so many different steps,
                                     with the batch of the one before */
        unsigned gone_on;         /* of all: it went on after them */
        struct afz_oom last[2];   /* [gpu]; of none where ooms[gpu] is 0 */
        unsigned splits, grows;   /* how often parts were made smaller, and larger again */
        uint64_t batch, micro; /* after the last of these: samples, and how many at once; 0: none */
        uint32_t split_ms;     /* when parts were first made smaller */
        uint64_t split_step;   /* and in which step; 0: not known */
        uint64_t split_steps;  /* steps that were made in parts; 0: none, or not known */
        unsigned resumes;      /* it went on from a checkpoint so often */
        uint64_t resume_step;  /* from this step on, the last time */
        uint64_t counted_ooms; /* by its count, which is told where an event is not */
        unsigned refused;      /* large requests that were answered with "no memory" (probe) */
        uint64_t refused_bytes;
        bool refused_last;   /* one was in the last seconds of it, and no step came after it */
        const char *refusal; /* the last sentence of what was not done; NULL: none */
        size_t refusal_len;
        struct afz_span error;     /* the text of the one that nobody caught; or empty */
        struct afz_span zeroed_at; /* the line that throws gradients away; or empty */
};

/* Of what happened since then; `end` says whether what came last was gotten over. */
void afz_tale_of(const struct afz_flight *flight, const struct afz_end *end, uint32_t from_ms,
                 struct afz_tale *ret);

/* Whether it ended with that error, as far as is known. */
bool afz_oom_is_fatal(const struct afz_oom *oom, const struct afz_end *end);

/* Whether there was room for what was asked, but in pieces that were each too small. */
bool afz_oom_in_pieces(const struct afz_oom *oom);

/* What the model took then; false: nothing was told of it. */
bool afz_oom_model(const struct afz_flight *flight, const struct afz_oom *oom,
                   struct afz_inside_model *ret);

/* In how many parts a step was made in the end: 1 where it was not cut. */
uint64_t afz_tale_parts(const struct afz_tale *tale);

/* "memory ran out 3 times (GPU), and it went on each time; from step 12 on steps were made in 4
 * parts of 16 of their 64 samples, 188 of them". False: nothing was adapted or refused, and nothing
 * survived. */
bool afz_tale_words(const struct afz_tale *tale, char *buf, size_t cap);

/* The line where it ran out; nothing is set where that is not known. */
void afz_oom_where(const struct afz_oom *oom, struct afz_where *ret);

/* The same of gradients that are thrown away. */
void afz_tale_zeroed_where(const struct afz_tale *tale, struct afz_where *ret);

/* The same of the error that nobody caught, and what that says. False: there was none. */
bool afz_tale_error(const struct afz_tale *tale, struct afz_where *ret, struct afz_span *ret_words);

/* One of the lines that held the GPU's memory then, the largest first. False: there are no more. */
bool afz_oom_site(const struct afz_oom *oom, unsigned nth, struct afz_where *ret,
                  uint64_t *ret_bytes);

#endif
