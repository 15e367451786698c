#ifndef AFZ_END_KILLED_H
#define AFZ_END_KILLED_H
/* oom-killed in words: at whose limit, and what to change. Part of judge_end.c. */
#include "end_clues.h"

void afz_end_put_killed(const struct afz_case *c, const struct afz_kill_clue *clue,
                        struct afz_verdict *v);

#endif
