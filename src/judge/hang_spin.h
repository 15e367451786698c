#ifndef AFZ_HANG_SPIN_H
#define AFZ_HANG_SPIN_H
/* hang:spin: cores are busy, but the steps that had come stopped coming. Pure; part of
 * judge_hang.c, which asks only where the run's end does not speak against it. */
#include "hang_steps.h"
#include "judges.h"

void afz_judge_spin(const struct afz_case *c, const struct afz_steps *steps,
                    struct afz_outcome *ret);

#endif
