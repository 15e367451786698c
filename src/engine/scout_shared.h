#ifndef AFZ_SCOUT_SHARED_H
#define AFZ_SCOUT_SHARED_H
/* The memory that the scout and the guard share: a report under a sequence lock. The number is odd
 * while the scout writes, and a reader that sees it odd or changed throws its copy away; so neither
 * side ever waits for the other, and a scout that dies in mid-write leaves no half report.
 *
 * The words are atomics, copied one by one: that makes the race harmless in C's own terms.
 */
#include <stdatomic.h>

#include "scout.h"

enum { AFZ_SCOUT_WORDS = (sizeof(struct afz_scout_report) + 7) / 8 };

struct afz_scout_shared {
        _Atomic uint32_t seq;      /* 0: nothing written yet */
        _Atomic uint32_t pictured; /* the number of the last picture that is taken; 0: none */
        _Atomic uint64_t step;     /* that the job is in, as the guard says; 0: not known */
        _Atomic uint64_t word[AFZ_SCOUT_WORDS];
};

/* The scout's side; there is one writer. */
void afz_scout_publish(struct afz_scout_shared *shared, const struct afz_scout_report *report);

/* The guard's side. *ret is set only when a whole report was copied. */
bool afz_scout_take(struct afz_scout_shared *shared, struct afz_scout_report *ret);

#endif
