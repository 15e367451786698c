#ifndef AFZ_RESTART_PLAN_H
#define AFZ_RESTART_PLAN_H
/* Restarting smaller: what the next attempt looks like, and whether there is one. Pure.
 *
 * CMD holds the words {batch} and {accum}, anywhere in its arguments. Each plan halves the batch
 * and accumulates more, so that batch x accum stays what it was: 64 x 1, 32 x 2, 16 x 4, ... An odd
 * batch is rounded down and the accumulation up (9 x 1 becomes 4 x 3): the effective batch may then
 * grow by less than one batch, never shrink. A plan never comes twice, because the batch falls each
 * time; batch 1 is the last.
 *
 * CMD without these words is restarted when that is another plan all the same: an agent inside
 * makes its steps smaller from the start (each batch is halved `lean` times), or it goes on from
 * what it has saved since it was started.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct afz_restart_plan {
        uint64_t effective; /* batch x accum of the first attempt */
        uint64_t batch, accum;
        unsigned attempt; /* 0: the first run */
        unsigned most;    /* restarts at most (--restarts) */
        unsigned lean;    /* how often an agent inside halves each batch from the start */
};

/* The first attempt. batch 0 is -EINVAL, and so is more than 2^32. */
int afz_restart_first(uint64_t batch, unsigned most, struct afz_restart_plan *ret);

/* The attempt after that one; false: there is none (batch 1, or all restarts are used up). */
bool afz_restart_next(const struct afz_restart_plan *plan, struct afz_restart_plan *ret);

/* CMD without {batch}: how an attempt of it went. */
struct afz_restart_facts {
        bool smaller;     /* an agent inside can make steps smaller, and has not refused to */
        unsigned learned; /* how often it halved each batch at last */
        bool least;       /* down to one sample at once */
        bool saved;       /* a checkpoint was made, and the next attempt is told where */
};
enum { AFZ_RESTART_LEAN_MOST = 16 }; /* a batch of 65536 in parts of one */

/* The first attempt, and the one after that; false: it would be the same again, or all restarts
 * are used up. */
void afz_restart_whole(unsigned most, struct afz_restart_plan *ret);
bool afz_restart_leaner(const struct afz_restart_plan *plan, const struct afz_restart_facts *facts,
                        struct afz_restart_plan *ret);
/* How often `batch` was halved to come to `micro`, rounded up; 0 for nonsense. */
unsigned afz_restart_halvings(uint64_t batch, uint64_t micro);

/* How long to wait before this attempt: 0 for the first run, then 1 s, 2 s, 4 s ... 30 s. */
uint64_t afz_restart_backoff_ns(const struct afz_restart_plan *plan);

/* CMD can be restarted smaller: it has {batch} somewhere. */
bool afz_restart_usable(const char *const *argv);

/* CMD with the plan's numbers filled in. The texts are put into buf, ret_argv (cap entries) points
 * into it and ends with NULL; arguments without a template are borrowed from argv. Other braces are
 * left as they are. -ENOSPC: one of the two is too small; then nothing of them counts. */
int afz_restart_expand(const char *const *argv, const struct afz_restart_plan *plan,
                       const char **ret_argv, size_t argv_cap, char *buf, size_t cap);

#endif
