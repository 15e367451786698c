#include "gpu_shared.h"

#include <string.h>

/* A report's rows that are not in use need not be copied: its words up to the GPUs in use, then the
 * processes in use. */
struct part {
        size_t from, to; /* words */
};

static struct part gpu_part(uint32_t gpus)
{
        size_t end = offsetof(struct afz_gpu_report, snapshot.gpu) +
                     (size_t)gpus * sizeof(struct afz_gpu_row);
        return (struct part){0, (end + 7) / 8};
}

static struct part proc_part(uint32_t procs)
{
        size_t start = offsetof(struct afz_gpu_report, snapshot.proc);
        size_t end = start + (size_t)procs * sizeof(struct afz_gpu_proc_row);
        return (struct part){start / 8, (end + 7) / 8};
}

static void copy_out(struct afz_gpu_shared *shared, const struct afz_gpu_report *report,
                     struct part part)
{
        const char *bytes = (const char *)report;
        for (size_t i = part.from; i < part.to; i++) {
                uint64_t word = 0;
                size_t left = sizeof *report - i * 8;
                memcpy(&word, bytes + i * 8, left < 8 ? left : 8);
                atomic_store_explicit(&shared->word[i], word, memory_order_relaxed);
        }
}

static void copy_in(struct afz_gpu_shared *shared, struct afz_gpu_report *report, struct part part)
{
        char *bytes = (char *)report;
        for (size_t i = part.from; i < part.to; i++) {
                uint64_t word = atomic_load_explicit(&shared->word[i], memory_order_relaxed);
                size_t left = sizeof *report - i * 8;
                memcpy(bytes + i * 8, &word, left < 8 ? left : 8);
        }
}

void afz_gpu_shared_publish(struct afz_gpu_shared *shared, const struct afz_gpu_report *report)
{
        uint32_t seq = atomic_load_explicit(&shared->seq, memory_order_relaxed);
        atomic_store_explicit(&shared->seq, seq + 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
        copy_out(shared, report, gpu_part(report->snapshot.gpus));
        copy_out(shared, report, proc_part(report->snapshot.procs));
        /* Never 0 again, which would mean that nothing was written. */
        uint32_t next = seq + 2;
        atomic_store_explicit(&shared->seq, next ? next : 2, memory_order_release);
}

static bool try_take(struct afz_gpu_shared *shared, uint32_t seq, struct afz_gpu_report *ret)
{
        copy_in(shared, ret, gpu_part(0));
        /* A torn header may hold anything: no count is trusted beyond the room. */
        if (ret->snapshot.gpus > AFZ_GPU_MAX || ret->snapshot.procs > AFZ_GPU_PROC_MAX)
                return false;
        copy_in(shared, ret, gpu_part(ret->snapshot.gpus));
        if (ret->snapshot.gpus > AFZ_GPU_MAX || ret->snapshot.procs > AFZ_GPU_PROC_MAX)
                return false;
        copy_in(shared, ret, proc_part(ret->snapshot.procs));
        atomic_thread_fence(memory_order_acquire);
        return atomic_load_explicit(&shared->seq, memory_order_relaxed) == seq;
}

bool afz_gpu_shared_take(struct afz_gpu_shared *shared, uint32_t *seq, struct afz_gpu_report *ret)
{
        /* A write takes microseconds and comes twice a second: four tries are plenty. */
        for (int i = 0; i < 4; i++) {
                uint32_t now = atomic_load_explicit(&shared->seq, memory_order_acquire);
                if (now == *seq || now == 0)
                        return false;
                if ((now & 1) == 0 && try_take(shared, now, ret)) {
                        *seq = now;
                        return true;
                }
        }
        return false;
}

void afz_gpu_shared_reset(struct afz_gpu_shared *shared)
{
        atomic_store(&shared->seq, 0);
        atomic_store(&shared->call, 0);
        atomic_store(&shared->calls, 0);
        atomic_store(&shared->cpu_ns, 0);
        atomic_store(&shared->answered, 0);
}
