#ifndef AFZ_MEMORY_LINE_H
#define AFZ_MEMORY_LINE_H
/* How near a run came to what it may use: what says whether its memory is worth a word. Pure. */
#include "verdicts.h"

struct afz_memory_line {
        double bytes;      /* what it may use, swap included; without a budget the machine's RAM;
                              0: not known */
        double peak_bytes; /* of its need */
        bool met;          /* it ended for memory */
        bool near;         /* it did, or came so close that the next run may */
};

struct afz_memory_line afz_memory_line_of(const struct afz_case *c);

/* Whether a leak of any kind was said of it already. */
bool afz_leak_said(const struct afz_outcome *outcome);

/* Part of the line that a plan may fill: what is advised has to stay below. */
#define AFZ_MEMORY_FITS 0.9

#endif
