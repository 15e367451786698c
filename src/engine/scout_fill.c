#include "scout_fill.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"

/* Memory that a virtual machine's host must first give comes ten times slower than what was in use
 * before. So a small piece is taken again and again: from the second time on it is the latter. */
static const struct {
        size_t map_bytes, step_bytes;
        uint64_t spare_bytes, total_ns, least_bytes_per_s;
        unsigned rounds, cores;
} how = {
        .map_bytes = 8U << 20,           /* four huge pages: more than a core's own cache */
        .step_bytes = 2U << 20,          /* between two looks at the clock: 1 ms of small pages */
        .spare_bytes = 256U << 20,       /* a machine that has less is not to be filled by us */
        .total_ns = 40000000,            /* 40 ms: what the start of a job can bear beside it */
        .least_bytes_per_s = 2000000000, /* who measures less has found cold memory or a busy
                                          * machine, and neither stays so */
        .rounds = 3,                     /* of each kind of page, the faster kind first */
        .cores = 4,                      /* more at once are held back by the kernel's zone locks */
};

struct run {
        uint64_t end_ns;
        bool (*go_on)(void *ctx);
        void *ctx;
};

static bool is_over(const struct run *run)
{
        return afz_clock_ns(CLOCK_MONOTONIC) >= run->end_ns || !run->go_on(run->ctx);
}

/* Bytes a second of one core; 0 where it could not be had. The map is a step larger, so that it can
 * be used from where a huge page begins. */
static uint64_t fill_once(const struct run *run, int advice)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = how.map_bytes + how.step_bytes;
        size_t done = 0;
        char *map = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED)
                return 0;
        char *start = map + (how.step_bytes - (uintptr_t)map % how.step_bytes);
        if (madvise(map, whole, advice) < 0) {
                munmap(map, whole);
                return 0;
        }
        /* Our own time on the core: a busy machine takes it away, and is no slower for that. */
        uint64_t start_ns = afz_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        while (done < how.map_bytes && !(done > 0 && is_over(run)))
                for (size_t end = done + how.step_bytes; done < end; done += page)
                        *(volatile char *)(start + done) = 1;
        uint64_t ns = afz_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
        munmap(map, whole);
        return ns > 0 ? (uint64_t)((double)done * (double)AFZ_NS_PER_S / (double)ns) : 0;
}

uint64_t afz_scout_fill_measure(uint64_t available_bytes, unsigned cores, bool (*go_on)(void *ctx),
                                void *ctx)
{
        static const int advice[] = {MADV_HUGEPAGE, MADV_NOHUGEPAGE};
        struct run run = {afz_clock_ns(CLOCK_MONOTONIC) + how.total_ns, go_on, ctx};
        uint64_t best = 0;
        if (available_bytes < how.spare_bytes)
                return 0;
        for (unsigned i = 0; i < how.rounds * 2 && !is_over(&run); i++) {
                uint64_t rate = fill_once(&run, advice[i / how.rounds]);
                best = rate > best ? rate : best;
        }
        if (!go_on(ctx))
                return 0;
        best *= cores < 1 ? 1 : cores < how.cores ? cores : how.cores;
        return best > how.least_bytes_per_s ? best : how.least_bytes_per_s;
}
