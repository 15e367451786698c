#ifndef AFZ_HOOKS_H
#define AFZ_HOOKS_H
/* What every hook does: pass on, count the bytes down, and look for a freed block in the book. What
 * a sample costs is paid in afz_count_slowly(), about once a mean_bytes. */
#include <stddef.h>

#include "probe.h"

#pragma GCC visibility push(hidden)

extern AFZ_TLS struct afz_sampler afz_sampler;

/* Counts a block down that is about to be allocated: nothing else is to be done (the hook ends
 * with a jump to the real function); or 1: a sample may be due, and the block goes to
 * afz_count_slowly() once it is there. If the allocation fails, its bytes were counted in vain,
 * which biases nothing (docs/sampling.md). */
static inline int afz_count(size_t size)
{
        if (AFZ_RARELY(size > (uint64_t)afz_sampler.left_bytes))
                return 1;
        afz_sampler.left_bytes -= (int64_t)size;
        return 0;
}

/* A block that is there (NULL counts for nothing). Returns it. */
AFZ_COLD void *afz_count_slowly(enum afz_site_kind kind, void *at, size_t size);

/* Before it is freed or moved: a moment later the address may be somebody else's. */
AFZ_COLD struct afz_taken afz_take_out(const void *at);
AFZ_COLD void afz_give_back(const void *at, const struct afz_taken *taken);

static inline int afz_may_have(const void *at)
{
        return AFZ_RARELY(afz_book_may_have((uint64_t)(uintptr_t)at));
}

static inline struct afz_taken afz_forget(const void *at)
{
        return afz_may_have(at) ? afz_take_out(at) : (struct afz_taken){.site = -1};
}

/* It could not be moved, and is where it was. */
static inline void afz_remember(const void *at, const struct afz_taken *taken)
{
        if (AFZ_RARELY(taken->site >= 0))
                afz_give_back(at, taken);
}

/* hooks.c: looks up what is behind us; hooks_python.c: stands before Python's own allocator. */
void afz_hooks_start(void);
void afz_hooks_read_settings(void); /* of malloc; before main() */
void afz_hooks_python_start(void);
void afz_hooks_map_start(void);
void afz_hooks_map_after_fork(void);
void afz_hooks_seal_start(void);

/* What another library has put before libc's function of this name; nothing is set where none has.
 */
void afz_find_next(const char *name, void *ret);

#pragma GCC visibility pop

#endif
