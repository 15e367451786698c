#include "cgroup2_need.h"

#include <errno.h>
#include <stdbool.h>

#include "count_of.h"

enum key {
        ANON,
        KERNEL, /* all of it, since 5.18 */
        STACK,
        PAGE_TABLES,
        PER_CPU,
        SOCK,
        SHMEM,
        ZSWAP,
        SWAP_CACHED,
        INACTIVE_ANON,
        ACTIVE_ANON,
        SLAB_RECLAIMABLE,
        SLAB_UNRECLAIMABLE,
        KEYS
};

/* In the kernel's order. */
static const struct afz_key keys[] = {
        {"anon", ANON},
        {"kernel", KERNEL},
        {"kernel_stack", STACK},
        {"pagetables", PAGE_TABLES},
        {"percpu", PER_CPU},
        {"sock", SOCK},
        {"shmem", SHMEM},
        {"zswap", ZSWAP},
        {"swapcached", SWAP_CACHED},
        {"inactive_anon", INACTIVE_ANON},
        {"active_anon", ACTIVE_ANON},
        {"slab_reclaimable", SLAB_RECLAIMABLE},
        {"slab_unreclaimable", SLAB_UNRECLAIMABLE},
};

struct figures {
        uint64_t value[KEYS];
        uint32_t has;
};

static void take(void *ctx, int id, uint64_t value)
{
        struct figures *f = ctx;
        f->value[id] = value;
        f->has |= 1U << id;
}

static uint64_t less(uint64_t a, uint64_t b)
{
        return a > b ? a - b : 0;
}

/* zswap's pool is the same pages that swap counts, only smaller. */
static uint64_t kernel_bytes(const struct figures *f)
{
        const uint64_t *v = f->value;
        if (f->has >> KERNEL & 1)
                return less(v[KERNEL], v[SLAB_RECLAIMABLE] + v[ZSWAP]) + v[SOCK];
        return v[STACK] + v[PAGE_TABLES] + v[PER_CPU] + v[SLAB_UNRECLAIMABLE] + v[SOCK];
}

/* Pages that are counted as anon or shmem and as swap. Those in the swap cache that nobody maps are
 * on the lists of anonymous pages without being in anon or shmem. */
static uint64_t counted_twice(const struct figures *f)
{
        const uint64_t *v = f->value;
        uint64_t unmapped = less(v[INACTIVE_ANON] + v[ACTIVE_ANON], v[ANON] + v[SHMEM]);
        return less(v[SWAP_CACHED], unmapped);
}

int afz_cgroup2_need(struct afz_span stat, uint64_t swap_bytes, struct afz_cgroup2_need *ret)
{
        struct figures f = {0};
        afz_span_each_key(stat, keys, AFZ_COUNT_OF(keys), take, &f);
        if (!(f.has >> ANON & 1))
                return -EINVAL;
        *ret = (struct afz_cgroup2_need){
                .bytes = f.value[ANON] + f.value[SHMEM] + less(swap_bytes, counted_twice(&f)) +
                         kernel_bytes(&f),
                .away_bytes = less(swap_bytes, f.value[SWAP_CACHED]),
        };
        return 0;
}
