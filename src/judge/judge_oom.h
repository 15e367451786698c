#ifndef AFZ_JUDGE_OOM_H
#define AFZ_JUDGE_OOM_H
/* gpu-oom by the agent's own word: part of the judge in judge_gpu.c, which goes by figures of the
 * driver where no agent told of it. */
#include "agent_tale.h"
#include "inside.h"
#include "verdicts.h"

/* False: the agent told of none. */
bool afz_judge_gpu_oom_told(const struct afz_case *c, struct afz_outcome *ret);

/* What of it is said by others, too (judge_vram.c). */

/* Bytes that were there before, and are neither of the model nor of the optimizer nor of a step:
 * they stay, however small a batch is. 0: not known, or it is not most of what there was. */
uint64_t afz_oom_kept(const struct afz_flight *flight, const struct afz_oom *oom,
                      const struct afz_inside_model *m);

/* "410M were asked for when 2.1G were in tensors, and the framework held 2.9G" */
void afz_oom_note_figures(const struct afz_oom *oom, struct afz_verdict *v);

/* The lines of the program that held the most. */
void afz_oom_note_sites(const struct afz_oom *oom, struct afz_verdict *v);

#endif
