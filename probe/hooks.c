/* malloc and its family. Where the real ones are is asked with dlsym(), which may itself allocate:
 * until they are known, a few small blocks come out of a room of our own, and are never given
 * back. */
#include "hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* name, result, parameters: what is looked up. */
#define REAL_FUNCTIONS(X)                                                                          \
        X(malloc, void *, (size_t size))                                                           \
        X(calloc, void *, (size_t count, size_t size))                                             \
        X(realloc, void *, (void *at, size_t size))                                                \
        X(free, void, (void *at))                                                                  \
        X(posix_memalign, int, (void **ret, size_t align, size_t size))                            \
        X(aligned_alloc, void *, (size_t align, size_t size))                                      \
        X(memalign, void *, (size_t align, size_t size))                                           \
        X(valloc, void *, (size_t size))                                                           \
        X(pvalloc, void *, (size_t size))                                                          \
        X(malloc_usable_size, size_t, (void *at))

/* The four that may come before we have looked begin with ones that look. */
static void *first_malloc(size_t size);
static void *first_calloc(size_t blocks, size_t size);
static void *first_realloc(void *at, size_t size);
static void first_free(void *at);

#define POINTER(name, type, parameters) type(*name) parameters;
static struct {
        REAL_FUNCTIONS(POINTER)
} real = {
        .malloc = first_malloc,
        .calloc = first_calloc,
        .realloc = first_realloc,
        .free = first_free,
};

/* Not declared by every libc's stdlib.h. */
AFZ_EXPORT void *memalign(size_t align, size_t size);
AFZ_EXPORT void *valloc(size_t size);
AFZ_EXPORT void *pvalloc(size_t size);
AFZ_EXPORT size_t malloc_usable_size(void *at);

/* ---- before the real ones are known ---- */

static struct {
        _Alignas(64) char room[64 << 10];
        _Atomic size_t used;
} early;

enum { EARLY_HEAD = 16 }; /* before a block: its size */

static inline int is_early(const void *at)
{
        return AFZ_RARELY(atomic_load_explicit(&early.used, memory_order_relaxed) != 0) &&
               (uintptr_t)at - (uintptr_t)early.room < sizeof early.room;
}

static AFZ_COLD void *early_block(size_t size)
{
        size_t need = ((size + 15) & ~(size_t)15) + EARLY_HEAD;
        size_t from =
                size < sizeof early.room ? atomic_fetch_add(&early.used, need) : sizeof early.room;
        if (from > sizeof early.room || need > sizeof early.room - from) {
                errno = ENOMEM;
                return NULL;
        }
        memcpy(early.room + from, &size, sizeof size);
        return early.room + from + EARLY_HEAD; /* zero, as it was never used before */
}

static size_t early_size(const void *at)
{
        size_t size;
        memcpy(&size, (const char *)at - EARLY_HEAD, sizeof size);
        return size;
}

static AFZ_COLD void *from_early(const void *at, size_t size)
{
        size_t had = early_size(at);
        if (size == 0)
                return NULL;
        void *to = malloc(size);
        if (to)
                memcpy(to, at, had < size ? had : size);
        return to;
}

void afz_hooks_start(void)
{
#define FIND(name, type, parameters)                                                               \
        {                                                                                          \
                void *found = dlsym(RTLD_NEXT, #name);                                             \
                if (found)                                                                         \
                        memcpy(&real.name, &found, sizeof found);                                  \
        }
        static _Atomic int once;
        if (atomic_exchange(&once, 1))
                return; /* by ourselves, below dlsym() */
        REAL_FUNCTIONS(FIND)
}

static AFZ_COLD void *first_malloc(size_t size)
{
        afz_hooks_start();
        return real.malloc == first_malloc ? early_block(size) : real.malloc(size);
}

static AFZ_COLD void *first_calloc(size_t blocks, size_t size)
{
        afz_hooks_start();
        return real.calloc == first_calloc ? early_block(blocks * size) : real.calloc(blocks, size);
}

static AFZ_COLD void *first_realloc(void *at, size_t size)
{
        afz_hooks_start();
        return real.realloc == first_realloc ? NULL : real.realloc(at, size);
}

static AFZ_COLD void first_free(void *at)
{
        afz_hooks_start();
        if (real.free != first_free)
                real.free(at);
}

/* ---- a sample, or a large block ---- */

static AFZ_COLD void *no_memory(void)
{
        errno = ENOMEM;
        return NULL;
}

/* Blocks that are larger glibc never keeps (DEFAULT_MMAP_THRESHOLD_MAX). */
enum { KEPT_MOST = 32 << 20 };

static int is_perturbed; /* malloc writes all over what it gives out: a trial would take it all */

void afz_hooks_read_settings(void)
{
        const char *tunables = secure_getenv("GLIBC_TUNABLES");
        is_perturbed = secure_getenv("MALLOC_PERTURB_") != NULL ||
                       (tunables && strstr(tunables, "glibc.malloc.perturb"));
}

/* It does not fit; but it may come out of memory that the allocator has kept and that is there
 * already. */
static int is_there(size_t size)
{
        int saved = errno;
        if (size > KEPT_MOST || is_perturbed)
                return 0;
        void *trial = real.malloc(size);
        uint64_t fresh = trial ? afz_room_untouched(trial, size) : size;
        real.free(trial);
        errno = saved;
        return fresh < size && afz_room_fits(fresh);
}

static AFZ_COLD int refuse(size_t size, enum afz_ask how)
{
        if (afz_room_grants(size, how) || is_there(size))
                return 0;
        afz_room_refused(size);
        return 1;
}

static inline int is_refused(size_t size, enum afz_ask how)
{
        return AFZ_RARELY(size >= AFZ_ROOM_LEAST) && refuse(size, how);
}

static AFZ_COLD void *count_block(void *at, size_t size)
{
        (void)afz_count_slowly(AFZ_SITE_HEAP, at, size);
        if (size >= AFZ_ROOM_LEAST)
                afz_room_add(at, size, size);
        return at;
}

/* ---- the hooks ---- */

static AFZ_COLD void *malloc_slowly(size_t size)
{
        return is_refused(size, AFZ_ASK_PLAIN) ? no_memory() : count_block(real.malloc(size), size);
}

AFZ_EXPORT AFZ_HOT void *malloc(size_t size)
{
        if (afz_count(size))
                return malloc_slowly(size);
        return real.malloc(size);
}

static AFZ_COLD void *calloc_slowly(size_t blocks, size_t size)
{
        return is_refused(blocks * size, AFZ_ASK_PLAIN)
                       ? no_memory()
                       : count_block(real.calloc(blocks, size), blocks * size);
}

AFZ_EXPORT AFZ_HOT void *calloc(size_t blocks, size_t size)
{
        size_t bytes;
        if (AFZ_RARELY(__builtin_mul_overflow(blocks, size, &bytes))) {
                errno = ENOMEM;
                return NULL;
        }
        if (afz_count(bytes))
                return calloc_slowly(blocks, size);
        return real.calloc(blocks, size);
}

static AFZ_COLD void free_slowly(void *at)
{
        if (is_early(at))
                return;
        (void)afz_take_out(at);
        real.free(at);
}

AFZ_EXPORT AFZ_HOT void free(void *at)
{
        if (afz_may_have(at) || is_early(at))
                free_slowly(at);
        else
                real.free(at);
}

static int knows(const void *found)
{
        if (!found)
                afz_hooks_start();
        return found != NULL;
}

#define KNOWN(name) (knows((const void *)(uintptr_t)real.name) || real.name)

static size_t usable(void *at)
{
        return KNOWN(malloc_usable_size) ? real.malloc_usable_size(at) : 0;
}

/* Of a large block that was moved, or could not be: what was not touched of it still is not. */
static void keep_untouched(const void *at, size_t size, uint64_t untouched)
{
        if (size >= AFZ_ROOM_LEAST && untouched > 0)
                afz_room_add(at, size, untouched < size ? untouched : size);
}

static AFZ_COLD void *realloc_slowly(void *at, size_t size)
{
        if (is_early(at))
                return from_early(at, size);
        size_t had = size >= AFZ_ROOM_LEAST ? usable(at) : size;
        size_t grows = size > had ? size - had : 0;
        if (is_refused(grows, AFZ_ASK_PLAIN))
                return no_memory();
        uint64_t untouched = size >= AFZ_ROOM_LEAST ? afz_room_gone((uint64_t)(uintptr_t)at) : 0;
        struct afz_taken taken = afz_forget(at);
        void *to = real.realloc(at, size);
        if (!to) {
                if (size != 0) { /* it is still there */
                        afz_remember(at, &taken);
                        keep_untouched(at, had, untouched);
                }
                return NULL;
        }
        keep_untouched(to, size, untouched + grows);
        return afz_count(size) ? afz_count_slowly(AFZ_SITE_HEAP, to, size) : to;
}

AFZ_EXPORT AFZ_HOT void *realloc(void *at, size_t size)
{
        if (!at)
                return malloc(size);
        if (afz_may_have(at) || is_early(at) || afz_count(size))
                return realloc_slowly(at, size);
        return real.realloc(at, size);
}

AFZ_EXPORT void *reallocarray(void *at, size_t blocks, size_t size)
{
        size_t bytes;
        if (__builtin_mul_overflow(blocks, size, &bytes)) {
                errno = ENOMEM;
                return NULL;
        }
        return realloc(at, bytes);
}

/* ---- the rarer ones ---- */

AFZ_EXPORT int posix_memalign(void **ret, size_t align, size_t size)
{
        if (is_refused(size, AFZ_ASK_ALIGNED))
                return ENOMEM;
        int r = KNOWN(posix_memalign) ? real.posix_memalign(ret, align, size) : ENOMEM;
        if (r == 0 && afz_count(size))
                (void)count_block(*ret, size);
        return r;
}

static void *counted(void *at, size_t size)
{
        return afz_count(size) ? count_block(at, size) : at;
}

#define ALIGNED(name)                                                                              \
        AFZ_EXPORT void *name(size_t align, size_t size)                                           \
        {                                                                                          \
                return KNOWN(name) && !is_refused(size, AFZ_ASK_ALIGNED)                           \
                               ? counted(real.name(align, size), size)                             \
                               : no_memory();                                                      \
        }
ALIGNED(aligned_alloc)
ALIGNED(memalign)

#define PAGED(name)                                                                                \
        AFZ_EXPORT void *name(size_t size)                                                         \
        {                                                                                          \
                return KNOWN(name) && !is_refused(size, AFZ_ASK_ALIGNED)                           \
                               ? counted(real.name(size), size)                                    \
                               : no_memory();                                                      \
        }
PAGED(valloc)
PAGED(pvalloc)

AFZ_EXPORT size_t malloc_usable_size(void *at)
{
        if (at && is_early(at))
                return early_size(at);
        return KNOWN(malloc_usable_size) ? real.malloc_usable_size(at) : 0;
}
