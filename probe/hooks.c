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

/* ---- the hooks ---- */

AFZ_EXPORT AFZ_HOT void *malloc(size_t size)
{
        if (afz_count(size))
                return afz_count_slowly(AFZ_SITE_HEAP, real.malloc(size), size);
        return real.malloc(size);
}

AFZ_EXPORT AFZ_HOT void *calloc(size_t blocks, size_t size)
{
        size_t bytes;
        if (AFZ_RARELY(__builtin_mul_overflow(blocks, size, &bytes))) {
                errno = ENOMEM;
                return NULL;
        }
        if (afz_count(bytes))
                return afz_count_slowly(AFZ_SITE_HEAP, real.calloc(blocks, size), bytes);
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

static AFZ_COLD void *realloc_slowly(void *at, size_t size)
{
        if (is_early(at))
                return from_early(at, size);
        struct afz_taken taken = afz_forget(at);
        void *to = real.realloc(at, size);
        if (!to) {
                if (size != 0) /* it is still there */
                        afz_remember(at, &taken);
                return NULL;
        }
        return afz_count(size) ? afz_count_slowly(AFZ_SITE_HEAP, to, size) : to;
}

AFZ_EXPORT AFZ_HOT void *realloc(void *at, size_t size)
{
        if (!at)
                return malloc(size);
        if (afz_may_have(at) || is_early(at))
                return realloc_slowly(at, size);
        if (afz_count(size))
                return afz_count_slowly(AFZ_SITE_HEAP, real.realloc(at, size), size);
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

static int knows(const void *found)
{
        if (!found)
                afz_hooks_start();
        return found != NULL;
}

#define KNOWN(name) (knows((const void *)(uintptr_t)real.name) || real.name)

AFZ_EXPORT int posix_memalign(void **ret, size_t align, size_t size)
{
        int r = KNOWN(posix_memalign) ? real.posix_memalign(ret, align, size) : ENOMEM;
        if (r == 0 && afz_count(size))
                (void)afz_count_slowly(AFZ_SITE_HEAP, *ret, size);
        return r;
}

static void *counted(void *at, size_t size)
{
        return afz_count(size) ? afz_count_slowly(AFZ_SITE_HEAP, at, size) : at;
}

static AFZ_COLD void *no_memory(void)
{
        errno = ENOMEM;
        return NULL;
}

#define ALIGNED(name)                                                                              \
        AFZ_EXPORT void *name(size_t align, size_t size)                                           \
        {                                                                                          \
                return KNOWN(name) ? counted(real.name(align, size), size) : no_memory();          \
        }
ALIGNED(aligned_alloc)
ALIGNED(memalign)

#define PAGED(name)                                                                                \
        AFZ_EXPORT void *name(size_t size)                                                         \
        {                                                                                          \
                return KNOWN(name) ? counted(real.name(size), size) : no_memory();                 \
        }
PAGED(valloc)
PAGED(pvalloc)

AFZ_EXPORT size_t malloc_usable_size(void *at)
{
        if (at && is_early(at))
                return early_size(at);
        return KNOWN(malloc_usable_size) ? real.malloc_usable_size(at) : 0;
}
