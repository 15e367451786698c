#ifndef AFZ_WATCH_LIVE_H
#define AFZ_WATCH_LIVE_H
/* The loop of the live view: ticks, draws, takes keys. */
#include "engine.h"
#include "term.h"
#include "watch_lines.h"

/* Runs until the user quits or `count` ticks were shown (0: no end). 0, or -errno when the terminal
 * could not be had (nothing was shown then: the caller may fall back to plain lines). */
int afz_watch_live(struct afz_engine *engine, struct afz_watch_lines *lines,
                   const struct afz_term_caps *caps, uint64_t interval_ns, uint64_t count);

#endif
