#ifndef AFZ_FRONT_END_H
#define AFZ_FRONT_END_H
/* The end of a run, as the front tells it: the guard's own finding, looked into. */
#include "front_say.h"
#include "run.h"

struct afz_front_end {
        const struct afz_front_style *style;
        struct afz_run *run;
        const struct afz_word *verdict; /* the guard's own */
};

/* The guard has recorded the end, and the recording is closed: reads it, records and says why it
 * ended so. Where that cannot be done, what the guard said is said, and its record stands. Puts the
 * sentence for a notification into `ret`. */
void afz_front_explain(const struct afz_front_end *end, char *ret, size_t cap);

/* The guard is gone and nobody saw the end: recorded with what can be said. */
void afz_front_explain_lost(struct afz_run *run);

#endif
