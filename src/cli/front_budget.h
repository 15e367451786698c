#ifndef AFZ_FRONT_BUDGET_H
#define AFZ_FRONT_BUDGET_H
/* What a new run is promised, and its record: reckoned and written while no other run can be. */
#include "front_say.h"
#include "guard.h"
#include "quantity.h"

/* What the command line asks for. */
struct afz_front_wish {
        struct afz_size_or_percent budget; /* counts when budget_given */
        uint64_t swap_bytes;               /* counts when swap_given */
        bool budget_given, swap_given;
        const char *run_dir; /* NULL: the usual place */
};

/* Fills in order->budget and ram_total_bytes and makes the run. 0, or the exit status after one
 * line was said. */
int afz_front_promise(struct afz_guard_order *order, const struct afz_front_wish *wish,
                      const struct afz_front_style *style, struct afz_run *ret);

#endif
