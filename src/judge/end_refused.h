#ifndef AFZ_END_REFUSED_H
#define AFZ_END_REFUSED_H
/* An end for want of memory that was refused: the machine's, or what is left of a budget where that
 * is refused in time (--policy adapt). Part of judge_end.c. */
#include "verdicts.h"

/* host-exhaustion, where it failed with an error that means "no memory", or right after we refused
 * it some. NULL: it did not. */
struct afz_verdict *afz_end_refused(const struct afz_case *c, struct afz_outcome *ret);

/* That requests were refused, where some were: it ended otherwise, but it is not kept quiet. */
void afz_end_note_denied(const struct afz_case *c, struct afz_verdict *v);

#endif
