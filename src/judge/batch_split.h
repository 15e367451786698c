#ifndef AFZ_BATCH_SPLIT_H
#define AFZ_BATCH_SPLIT_H
/* batch-too-large by what was tried: steps that were made in parts, and how large a part fit. Part
 * of judge_batch.c. */
#include "verdicts.h"

/* False: no step was made smaller. */
bool afz_batch_split_say(const struct afz_case *c, struct afz_outcome *ret);

#endif
