#ifndef AFZ_END_CASE_H
#define AFZ_END_CASE_H
/* A run of 8 GB that needed 3, and how it ended: for the tests of judge_end.c. */
#include "judge_fixture.h"

#define GIB (UINT64_C(1) << 30)

static inline struct afz_case ended(enum afz_end_how how, int code)
{
        struct afz_case c = {
                .flight = &flight,
                .facts = {.end = {how, code}, .hard_bytes = 9 * GIB},
                .peak_bytes = 3 * GIB,
                .budget_bytes = 8 * GIB,
                .swap_bytes = GIB,
        };
        return c;
}

static inline struct afz_outcome judge(const struct afz_case *c)
{
        return ask(afz_judge_end, c);
}

#endif
