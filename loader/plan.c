#include "plan.h"

#include <errno.h>

enum {
        /* Of the budget, one part in so many. Large chunks that are packed want several at work. */
        SCRATCH_PART = 4,
        BATCH_PART = 4,
};

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/* The slots that must be there. */
static uint64_t slots_least(const struct afz_plan_needs *needs)
{
        return needs->is_one_group ? needs->chunks : least(2, needs->chunks);
}

static int floor_of(const struct afz_plan_needs *needs, uint64_t *ret)
{
        uint64_t slots, batches, bytes;
        if (__builtin_mul_overflow(slots_least(needs), needs->slot_bytes + needs->table_bytes,
                                   &slots) ||
            __builtin_mul_overflow(AFZ_BATCHES_LEAST, needs->batch_bytes, &batches) ||
            __builtin_add_overflow(slots, batches, &bytes) ||
            __builtin_add_overflow(bytes, needs->scratch_bytes, &bytes) ||
            __builtin_add_overflow(bytes, needs->index_bytes, &bytes) || bytes > INT64_MAX)
                return -EOVERFLOW;
        *ret = bytes;
        return 0;
}

/* Groups of about the same size: a small last one would be shuffled less than the others. */
static uint64_t even(uint64_t chunks, uint64_t most)
{
        uint64_t groups = (chunks + most - 1) / most;
        return (chunks + groups - 1) / groups;
}

static void spend_slots(const struct afz_plan_needs *needs, uint64_t fit, struct afz_plan *plan)
{
        plan->is_whole = needs->is_kept && fit >= needs->chunks;
        if (plan->is_whole || (needs->is_one_group && fit < 2 * needs->chunks)) {
                plan->slots = plan->group = needs->chunks;
        } else {
                plan->group = even(needs->chunks, least(fit / 2 ? fit / 2 : 1, UINT32_MAX / 2));
                if (needs->is_one_group)
                        plan->group = needs->chunks;
                plan->slots = least(fit, 2 * plan->group);
        }
}

int afz_plan_make(const struct afz_plan_needs *needs, uint64_t budget_bytes, struct afz_plan *ret)
{
        struct afz_plan plan = {0};
        int r = floor_of(needs, &plan.floor_bytes);
        if (r < 0)
                return r;
        *ret = plan;
        if (budget_bytes < plan.floor_bytes)
                return -ENOSPC;
        uint64_t slot = needs->slot_bytes + needs->table_bytes;
        uint64_t room = budget_bytes - needs->index_bytes;
        uint64_t spare = budget_bytes -
                         plan.floor_bytes; /* beyond one thread, the fewest batches and slots */
        /* Set aside for as many threads as there may be: groups, and so the order, are the same for
         * any number. */
        uint64_t more = needs->scratch_bytes
                                ? least(room / SCRATCH_PART, spare) / needs->scratch_bytes
                                : AFZ_THREADS_MAX;
        more = least(more, AFZ_THREADS_MAX - 1);
        plan.threads = 1 + (uint32_t)least(more, needs->threads ? needs->threads - 1 : 0);
        spare -= more * needs->scratch_bytes;
        uint64_t batches = room / BATCH_PART / needs->batch_bytes;
        more = batches > AFZ_BATCHES_LEAST ? batches - AFZ_BATCHES_LEAST : 0;
        more = least(least(more, AFZ_BATCHES_MAX - AFZ_BATCHES_LEAST), spare / needs->batch_bytes);
        plan.batches = AFZ_BATCHES_LEAST + (uint32_t)more;
        spare -= more * needs->batch_bytes;
        spend_slots(needs, slots_least(needs) + spare / slot, &plan);
        if (plan.group > UINT32_MAX / 2)
                return -EOVERFLOW;
        plan.bytes = plan.threads * needs->scratch_bytes + plan.batches * needs->batch_bytes +
                     plan.slots * slot;
        *ret = plan;
        return 0;
}
