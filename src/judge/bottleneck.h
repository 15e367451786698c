#ifndef AFZ_BOTTLENECK_H
#define AFZ_BOTTLENECK_H
/* What holds the job back right now: the newest window in, one word and one sentence out. Pure. */
#include "window.h"

void afz_bottleneck_judge(const struct afz_window *window, struct afz_limit *ret);

#endif
