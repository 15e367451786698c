/*
 * A pool of threads for one kind of work: the same function on every thread, each with its own
 * share.
 *
 * afz_pool_run() returns when all shares are done; the caller does share 0 itself. A pool of one
 * thread makes no thread and takes no lock. NULL is a pool of one. A pool belongs to one caller:
 * two threads must not run it at once. fork() before making a pool: threads do not follow into the
 * child.
 */
#ifndef AFZ_POOL_H
#define AFZ_POOL_H

#include <stddef.h>

struct afz_pool;

typedef void (*afz_pool_work)(void *ctx, size_t share, size_t shares);

/* threads counts the caller, so it is 1 or more. Fails with -ENOMEM, or with -EAGAIN where no
 * thread is to be had. */
int afz_pool_new(size_t threads, struct afz_pool **ret);
struct afz_pool *afz_pool_free(struct afz_pool *pool);

void afz_pool_run(struct afz_pool *pool, afz_pool_work work, void *ctx);

/* The part of [0, total) that is this share's: [*ret_first, *ret_end). Shares differ by one at
 * most. */
static inline void afz_pool_share(size_t total, size_t share, size_t shares, size_t *ret_first,
                                  size_t *ret_end)
{
        const size_t each = total / shares, more = total % shares;

        *ret_first = share * each + (share < more ? share : more);
        *ret_end = *ret_first + each + (share < more ? 1 : 0);
}

#endif
