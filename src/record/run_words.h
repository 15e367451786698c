#ifndef AFZ_RUN_WORDS_H
#define AFZ_RUN_WORDS_H
/* What the words and the JSON of a run have in common. */
#include "run.h"

/* What Antifreeze took, of one core. */
static inline double afz_run_cost(const struct afz_run_page *page, uint64_t duration_ns)
{
        const double most = 1e4; /* cores: beyond any machine, and what is made of it fits */
        double cost = duration_ns == 0 ? 0 : (double)page->cpu_ns / (double)duration_ns;
        return cost < most ? cost : most;
}

/* Under --policy watch there is none. */
static inline bool afz_run_has_budget(const struct afz_run_page *page)
{
        return page->budget_bytes != 0 && page->budget_bytes != UINT64_MAX;
}

/* "none", "budget", ...: in verdict.json. */
extern const char *const afz_run_cause_names[AFZ_CAUSE_COUNT];

#endif
