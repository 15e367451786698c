/* Mappings: memory that a program takes from the kernel itself, private or to be shared. Passed on
 * by the system call, which is the same for every libc and known from the first moment; unless
 * another library stands before libc's functions, as the sanitizers do: then by those.
 *
 * Unlike blocks, mappings are given back in parts: so beside the book there is a short list of
 * those that are in it, to find what a range touches. */
#include "hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
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

static void count_map(enum afz_site_kind kind, void *at, uint64_t size)
{
        (void)afz_count_slowly(kind, at, size);
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

static enum afz_site_kind kind_of_site(const struct afz_taken *taken)
{
        const struct afz_book *book = afz_book_seen();
        return book ? (enum afz_site_kind)atomic_load(&book->site[taken->site].kind) : AFZ_SITE_MAP;
}

/* ---- the hooks ---- */

/* Files that are nothing but memory: of /dev/shm and the like, and those that have no name. */
static bool is_memory(int fd)
{
        struct stat about;
        struct statfs on;
        int saved = errno;
        /* What lies on a disk is told without asking further, as another machine may be asked. */
        bool is = fstat(fd, &about) == 0 && major(about.st_dev) == 0 && fstatfs(fd, &on) == 0 &&
                  (on.f_type == TMPFS_MAGIC || on.f_type == HUGETLBFS_MAGIC);
        errno = saved;
        return is;
}

/* AFZ_SITE_FREE: not counted. A reservation holds nothing: what is made of it later comes by
 * mmap(MAP_FIXED), mostly. */
static enum afz_site_kind kind_of(int protection, int flags, int fd)
{
        if (!(protection & PROT_WRITE))
                return AFZ_SITE_FREE;
        if ((flags & MAP_TYPE) == MAP_PRIVATE)
                return flags & MAP_ANONYMOUS ? AFZ_SITE_MAP : AFZ_SITE_FREE;
        if (flags & MAP_ANONYMOUS)
                return AFZ_SITE_SHARED;
        return !afz_is_sealed() && is_memory(fd) ? AFZ_SITE_SHARED : AFZ_SITE_FREE;
}

/* What another library has put before libc's. */
static struct {
        void *(*mmap)(void *, size_t, int, int, int, off_t);
        void *(*mmap64)(void *, size_t, int, int, int, off64_t);
        int (*munmap)(void *, size_t);
        void *(*mremap)(void *, size_t, size_t, int, ...);
} next;

static const void *library_of(const void *code)
{
        Dl_info about;
        return code && dladdr(code, &about) ? about.dli_fbase : NULL;
}

void afz_find_next(const char *name, void *ret)
{
        const void *libc = library_of(dlsym(RTLD_NEXT, "gnu_get_libc_version"));
        void *found = dlsym(RTLD_NEXT, name);
        if (libc && found && library_of(found) != libc)
                memcpy(ret, &found, sizeof found);
}

void afz_hooks_map_start(void)
{
        afz_find_next("mmap", &next.mmap);
        afz_find_next("mmap64", &next.mmap64);
        afz_find_next("munmap", &next.munmap);
        afz_find_next("mremap", &next.mremap);
}

static void mapped(void *got, size_t size, int protection, int flags, int fd)
{
        if (got == MAP_FAILED)
                return;
        if (flags & MAP_FIXED)
                unmapped(got, size);
        enum afz_site_kind kind = kind_of(protection, flags, fd);
        if (kind != AFZ_SITE_FREE && afz_count(size))
                count_map(kind, got, size);
}

#define MAPPING(name, offset_type)                                                                 \
        AFZ_EXPORT void *name(void *at, size_t size, int protection, int flags, int fd,            \
                              offset_type offset)                                                  \
        {                                                                                          \
                void *got = next.name ? next.name(at, size, protection, flags, fd, offset)         \
                                      : (void *)syscall(SYS_mmap, at, size, protection, flags, fd, \
                                                        offset);                                   \
                mapped(got, size, protection, flags, fd);                                          \
                return got;                                                                        \
        }
MAPPING(mmap, off_t)
MAPPING(mmap64, off64_t)

/* The book forgets first, as another thread may be given the same addresses a moment later. A call
 * that fails (rare, and then for its arguments) is not put right. */
AFZ_EXPORT int munmap(void *at, size_t size)
{
        if (address(at) % PAGE == 0 && size != 0)
                unmapped(at, size);
        return next.munmap ? next.munmap(at, size) : (int)syscall(SYS_munmap, at, size);
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
        void *got = next.mremap ? next.mremap(at, old_size, size, flags, to)
                                : (void *)syscall(SYS_mremap, at, old_size, size, flags, to);
        if (got == MAP_FAILED)
                put_rest(&taken, had, address(at), had);
        else if (taken.site >= 0 && afz_count(size))
                count_map(kind_of_site(&taken), got, size);
        return got;
}
