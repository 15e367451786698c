#include "tree_need.h"

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

static uint64_t above(uint64_t a, uint64_t b)
{
        return a > b ? a - b : 0;
}

static uint64_t held(const struct afz_need_proc *p)
{
        return p->anon_bytes + p->swap_bytes;
}

void afz_need_born(struct afz_need_proc *p, bool inherits, uint64_t parent_bytes)
{
        p->inherits = inherits;
        p->base_bytes = inherits ? least(held(p), parent_bytes) : 0;
        p->has_pss = false;
}

void afz_need_exec(struct afz_need_proc *p)
{
        p->inherits = p->has_pss = false;
        p->base_bytes = 0;
}

void afz_need_take_pss(struct afz_need_proc *p, const struct afz_need_pss *pss)
{
        p->pss = *pss;
        p->has_pss = true;
}

void afz_need_moved(struct afz_need_proc *p)
{
        p->base_bytes = least(p->base_bytes, held(p));
}

/* What it has got since is its own; what it has given back was shared to the same degree as the
 * rest. Pages that only moved to swap are neither. */
static uint64_t scaled(uint64_t share, uint64_t then, uint64_t now)
{
        if (now >= then)
                return share + (now - then);
        return (uint64_t)((double)share * (double)now / (double)then);
}

uint64_t afz_need_own(const struct afz_need_proc *p)
{
        if (!p->has_pss)
                return above(held(p), p->base_bytes);
        return scaled(p->pss.anon_bytes + p->pss.swap_bytes,
                      p->pss.rss_anon_bytes + p->pss.rss_swap_bytes, held(p));
}

uint64_t afz_need_left(const struct afz_need_proc *p)
{
        if (!p->has_pss)
                return p->shares ? afz_need_own(p) : 0;
        return above(p->pss.anon_bytes, p->pss.private_bytes);
}

static uint64_t swap_of(const struct afz_need_proc *p)
{
        if (!p->has_pss)
                return p->inherits ? 0 : p->swap_bytes;
        return scaled(p->pss.swap_bytes, p->pss.rss_swap_bytes, p->swap_bytes);
}

void afz_need_add(struct afz_need_sum *sum, const struct afz_need_proc *p)
{
        uint64_t then = p->has_pss ? p->pss.rss_shmem_bytes : 0, own = afz_need_own(p);
        uint64_t more = above(p->shmem_bytes, then);
        sum->own_bytes += own;
        sum->swap_bytes += swap_of(p);
        if (p->has_pss)
                sum->shmem_bytes += p->shmem_bytes >= then
                                            ? p->pss.shmem_bytes
                                            : scaled(p->pss.shmem_bytes, then, p->shmem_bytes);
        sum->shmem_more_bytes += more;
        if (p->shmem_bytes > sum->shmem_most_bytes)
                sum->shmem_most_bytes = p->shmem_bytes;
        if (p->inherits || p->shares)
                sum->slack_bytes += above(held(p), own);
        if (p->base_bytes > sum->inherit_bytes)
                sum->inherit_bytes = p->base_bytes;
        sum->processes++;
        sum->inheriting += p->inherits;
        sum->with_shmem += p->shmem_bytes > 0;
}

uint64_t afz_need_total(const struct afz_need_sum *sum, uint64_t machine_more_bytes)
{
        /* At least what one of them maps, at most what all have got; and all of the machine's
         * growth is more than the job's. Who maps what another has counted already gets none. */
        uint64_t more = sum->shmem_more_bytes;
        uint64_t most = least(above(sum->shmem_most_bytes, sum->shmem_bytes), more);
        if (machine_more_bytes < more)
                more = machine_more_bytes > most ? machine_more_bytes : most;
        return sum->own_bytes + sum->shmem_bytes + more;
}

uint64_t afz_need_hidden(const struct afz_need_sum *sum, int64_t fall_bytes, int64_t grown_bytes,
                         uint64_t fault_bytes)
{
        int64_t unseen = fall_bytes - (grown_bytes > 0 ? grown_bytes : 0);
        if (unseen <= 0)
                return 0;
        return least(least((uint64_t)unseen, sum->slack_bytes), fault_bytes);
}
