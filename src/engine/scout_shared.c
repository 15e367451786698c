#include "scout_shared.h"

#include <string.h>

void afz_scout_publish(struct afz_scout_shared *shared, const struct afz_scout_report *report)
{
        uint64_t word[AFZ_SCOUT_WORDS] = {0};
        memcpy(word, report, sizeof *report);
        uint32_t seq = atomic_load_explicit(&shared->seq, memory_order_relaxed);
        atomic_store_explicit(&shared->seq, seq + 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
        for (size_t i = 0; i < AFZ_SCOUT_WORDS; i++)
                atomic_store_explicit(&shared->word[i], word[i], memory_order_relaxed);
        /* Never 0 again, which would mean that nothing was written. */
        uint32_t next = seq + 2;
        atomic_store_explicit(&shared->seq, next ? next : 2, memory_order_release);
}

bool afz_scout_take(struct afz_scout_shared *shared, struct afz_scout_report *ret)
{
        /* A write takes a microsecond and comes a few times a second. */
        for (int i = 0; i < 3; i++) {
                uint64_t word[AFZ_SCOUT_WORDS];
                uint32_t seq = atomic_load_explicit(&shared->seq, memory_order_acquire);
                if (seq == 0)
                        return false;
                if (seq & 1)
                        continue;
                for (size_t k = 0; k < AFZ_SCOUT_WORDS; k++)
                        word[k] = atomic_load_explicit(&shared->word[k], memory_order_relaxed);
                atomic_thread_fence(memory_order_acquire);
                if (atomic_load_explicit(&shared->seq, memory_order_relaxed) != seq)
                        continue;
                memcpy(ret, word, sizeof *ret);
                return true;
        }
        return false;
}
