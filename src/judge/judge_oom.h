#ifndef AFZ_JUDGE_OOM_H
#define AFZ_JUDGE_OOM_H
/* gpu-oom by the agent's own word: part of the judge in judge_gpu.c, which goes by figures of the
 * driver where no agent told of it. */
#include "verdicts.h"

/* False: the agent told of none. */
bool afz_judge_gpu_oom_told(const struct afz_case *c, struct afz_outcome *ret);

#endif
