#ifndef AFZ_TRIAL_H
#define AFZ_TRIAL_H
/* Proves a tier on a child of our own: that it is really limited, braked and killed.
 *
 * The child has a child of its own, gets a small budget and no swap, and counts in a page that is
 * shared with us; a second one, in a second hold, grows. Nobody else is touched; nothing is left.
 * At most 96 MiB are used. It takes about 0.1 s, and no stage of it more than 2 s. It forks, so it
 * is not for a program with threads.
 */
#include <stdbool.h>
#include <stdint.h>

#include "hold_tier.h"

struct afz_trial {
        enum afz_tier tier;
        bool opened;  /* the tier is offered here; false: `why` says what it lacks */
        bool braked;  /* its count stood still, and went on when released */
        bool limited; /* the kernel killed the growing one at the limit; in tier none, the look saw
                       * it cross the line and the brake stopped it */
        bool killed;  /* all gone, and their memory with them */
        bool clean;   /* nothing is left of it */
        uint64_t took_ns;
        char why[AFZ_HOLD_WHY_CAP]; /* what was not so; "" when all was */
};

static inline bool afz_trial_proved(const struct afz_trial *t)
{
        return t->opened && t->braked && t->limited && t->killed && t->clean;
}

/* Whatever comes out of it is an answer; the only errors are our own (-ENOMEM, -EAGAIN: no child).
 */
int afz_trial_run(const struct afz_env *env, const struct afz_hold_tier *row,
                  struct afz_trial *ret);

#endif
