/* Mappings: private memory that a program takes from the kernel itself. Passed on by the system
 * call, which is the same for every libc and known from the first moment.
 *
 * Unlike blocks, mappings are given back in parts: so beside the book there is a short list of
 * those that are in it, to find what a range touches. */
#include "hooks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
        LISTED = 2048, /* mappings that are in the book at the same time; more are found only by
                          their start */
        PAGE = 4096,
};

static struct {
        _Atomic uint64_t from[LISTED]; /* 0: free */
        uint64_t size[LISTED];
        _Atomic unsigned used; /* the highest that ever was, + 1 */
} list;

void afz_hooks_map_after_fork(void)
{
        for (unsigned i = 0; i < LISTED; i++)
                atomic_store(&list.from[i], 0);
}

static uint64_t address(const void *at)
{
        return (uint64_t)(uintptr_t)at;
}

static uint64_t whole(uint64_t size)
{
        return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static void enlist(uint64_t from, uint64_t size)
{
        for (unsigned i = 0; i < LISTED; i++) {
                uint64_t empty = 0;
                if (!atomic_compare_exchange_strong(&list.from[i], &empty, 1))
                        continue;
                list.size[i] = size;
                unsigned used = atomic_load(&list.used);
                while (used <= i && !atomic_compare_exchange_weak(&list.used, &used, i + 1))
                        ;
                atomic_store_explicit(&list.from[i], from, memory_order_release);
                return;
        }
}

static void count_map(void *at, uint64_t size)
{
        if (!afz_count(size))
                return;
        (void)afz_count_slowly(AFZ_SITE_MAP, at, size);
        if (afz_may_have(at))
                enlist(address(at), whole(size));
}

/* What is left of a mapping keeps its share of the weight. */
static void put_rest(const struct afz_taken *t, uint64_t whole_size, uint64_t from, uint64_t size)
{
        if (size == 0 || t->site < 0)
                return;
        struct afz_taken rest = *t;
        rest.size_bytes = size;
        rest.weight_bytes =
                (uint64_t)((double)t->weight_bytes * ((double)size / (double)whole_size));
        afz_give_back((const void *)(uintptr_t)from, &rest); /* NOLINT */
        enlist(from, size);
}

/* [from, end) is no more. */
static AFZ_COLD void cut_out(uint64_t from, uint64_t end)
{
        unsigned used = atomic_load(&list.used);
        for (unsigned i = 0; i < used; i++) {
                uint64_t at = atomic_load_explicit(&list.from[i], memory_order_acquire);
                uint64_t size = list.size[i], last = at + size;
                if (at <= 1 || at >= end || last <= from ||
                    !atomic_compare_exchange_strong(&list.from[i], &at, 0))
                        continue;
                struct afz_taken t = afz_forget((const void *)(uintptr_t)at); /* NOLINT */
                if (at < from)
                        put_rest(&t, size, at, from - at);
                if (last > end)
                        put_rest(&t, size, end, last - end);
        }
}

static inline void unmapped(const void *at, uint64_t size)
{
        if (AFZ_RARELY(atomic_load_explicit(&list.used, memory_order_relaxed) != 0))
                cut_out(address(at), address(at) + whole(size));
}

/* A mapping that is in the book and begins there. */
static struct afz_taken take_whole(uint64_t from, uint64_t *ret_size)
{
        unsigned used = atomic_load(&list.used);
        for (unsigned i = 0; i < used; i++) {
                uint64_t at = from, size = list.size[i];
                if (atomic_load_explicit(&list.from[i], memory_order_acquire) != from ||
                    !atomic_compare_exchange_strong(&list.from[i], &at, 0))
                        continue;
                *ret_size = size;
                return afz_forget((const void *)(uintptr_t)from); /* NOLINT */
        }
        return (struct afz_taken){.site = -1};
}

/* ---- the hooks ---- */

/* A reservation holds nothing: what is made of it later comes by mmap(MAP_FIXED), mostly. */
static bool counts(int protection, int flags)
{
        return (flags & MAP_PRIVATE) && (flags & MAP_ANONYMOUS) && (protection & PROT_WRITE);
}

static void *map(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
        void *got = (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
        if (got == MAP_FAILED)
                return got;
        if (flags & MAP_FIXED)
                unmapped(got, size);
        if (counts(protection, flags))
                count_map(got, size);
        return got;
}

AFZ_EXPORT void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
        return map(at, size, protection, flags, fd, offset);
}

AFZ_EXPORT void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
        return map(at, size, protection, flags, fd, offset);
}

/* The book forgets first, as another thread may be given the same addresses a moment later. A call
 * that fails (rare, and then for its arguments) is not put right. */
AFZ_EXPORT int munmap(void *at, size_t size)
{
        if (address(at) % PAGE == 0 && size != 0)
                unmapped(at, size);
        return (int)syscall(SYS_munmap, at, size);
}

/* One that is in the book is counted anew. Whether another one is private memory cannot be told
 * here. */
AFZ_EXPORT void *mremap(void *at, size_t old_size, size_t size, int flags, ...)
{
        va_list more;
        va_start(more, flags);
        void *to = (flags & MREMAP_FIXED) ? va_arg(more, void *) : NULL;
        va_end(more);
        uint64_t had = 0;
        struct afz_taken taken = take_whole(address(at), &had);
        if (to)
                unmapped(to, size);
        void *got = (void *)syscall(SYS_mremap, at, old_size, size, flags, to);
        if (got == MAP_FAILED)
                put_rest(&taken, had, address(at), had);
        else if (taken.site >= 0)
                count_map(got, size);
        return got;
}
