#ifndef AFZ_PLAN_H
#define AFZ_PLAN_H
/* What a budget is spent on. Arithmetic alone.
 *
 * The index has what it took. A quarter is for threads' scratch and a quarter for batches, if they
 * need so much; all else is slots, each for one chunk. If all chunks fit, they have a slot each for
 * ever; else the slots are two groups, one that batches are made of and one that is being loaded.
 */
#include <stdbool.h>
#include <stdint.h>

#include "antifreeze/loader.h"

enum {
        AFZ_PREFETCH_MAX = 8, /* batches that are ready and nobody's yet */
        AFZ_BATCHES_MAX = AFZ_LEASES_MAX + AFZ_PREFETCH_MAX,
        AFZ_BATCHES_LEAST =
                3, /* a loop holds the last one while it asks for the next, and one is being made */
        AFZ_THREADS_MAX = 16,
};

/* Sizes, with all alignment in them. */
struct afz_plan_needs {
        uint64_t index_bytes, scratch_bytes, batch_bytes, slot_bytes;
        uint64_t table_bytes; /* of a slot: which chunk is where, in each of two groups */
        uint64_t chunks;
        uint32_t threads;  /* wanted */
        bool is_kept;      /* what is loaded once is good for all epochs */
        bool is_one_group; /* a global shuffle: all chunks side by side, or -ENOSPC */
};

struct afz_plan {
        uint32_t threads, batches;
        uint64_t slots, group; /* group: chunks of one */
        bool is_whole;         /* every chunk has a slot of its own for ever */
        uint64_t bytes;        /* of all but the index */
        uint64_t floor_bytes;  /* the least budget that would do, index and all */
};

/* -ENOSPC: not within that budget; ret has floor_bytes then. -EOVERFLOW: within none. */
int afz_plan_make(const struct afz_plan_needs *needs, uint64_t budget_bytes, struct afz_plan *ret);

#endif
