#ifndef AFZ_STALL_FEED_H
#define AFZ_STALL_FEED_H
/* What a data loader says of itself (AFZ_AGENT_FEED): what held it up and what helps, for
 * data-stall; what is held of it, for leak. Pure; texts are the flight's. */
#include "agent_event.h"
#include "flight.h"
#include "verdict.h"

enum afz_feed_limit {
        AFZ_FEED_DISK,
        AFZ_FEED_CACHE, /* read from memory */
        AFZ_FEED_DECODE,
        AFZ_FEED_GATHER,    /* copied into batches */
        AFZ_FEED_TRANSFORM, /* the program's own function, for each batch */
        AFZ_FEED_LIMITS
};

struct afz_feed {
        enum afz_feed_limit limit;
        struct afz_span rate;  /* "the disk: 212M/s" */
        uint64_t waited_ms;    /* that the program waited for its data, in that epoch */
        uint64_t held, copies; /* batches: at once, and those that had to be copied for it */
};

/* What the program waited for the longest, in all epochs in which that was at least so much of
 * their time; as it was told last. False: there are none. */
bool afz_feed_of(const struct afz_flight *flight, uint32_t from_ms, double least_share,
                 struct afz_feed *ret);

/* Batches that the program holds, where so many are held that they had to be copied; else 0. */
uint64_t afz_feed_held(const struct afz_flight *flight, uint32_t from_ms);

/* What helps, and that too many batches are held. free_cores: negative where that is not known. */
void afz_feed_say(const struct afz_feed *feed, double free_cores, struct afz_verdict *verdict);

#endif
