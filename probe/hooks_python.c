/* CPython's own small objects. They come out of arenas that it maps by itself, so that malloc never
 * sees them: we stand before its allocator, by the way that Python has for it, and pass on.
 *
 * Objects of more than 512 bytes come from malloc, where they are counted. */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "hooks.h"
#include "py.h"

enum { SMALL_BYTES = 512 }; /* SMALL_REQUEST_THRESHOLD of every version */

/* As Python's headers have had it since 3.5. */
struct py_allocator {
        void *context;
        void *(*malloc)(void *, size_t);
        void *(*calloc)(void *, size_t, size_t);
        void *(*realloc)(void *, void *, size_t);
        void (*free)(void *, void *);
};

enum { PY_RAW, PY_MEM, PY_OBJ, PY_DOMAINS };

static struct py_allocator real[PY_DOMAINS];

static AFZ_HOT void *py_malloc(void *domain, size_t size)
{
        const struct py_allocator *a = domain;
        if (size <= SMALL_BYTES && afz_count(size))
                return afz_count_slowly(AFZ_SITE_OBJECT, a->malloc(a->context, size), size);
        return a->malloc(a->context, size);
}

static AFZ_HOT void *py_calloc(void *domain, size_t blocks, size_t size)
{
        const struct py_allocator *a = domain;
        size_t bytes =
                blocks * size; /* Python has seen to it that this is no more than it can be */
        if (bytes <= SMALL_BYTES && afz_count(bytes))
                return afz_count_slowly(AFZ_SITE_OBJECT, a->calloc(a->context, blocks, size),
                                        bytes);
        return a->calloc(a->context, blocks, size);
}

/* A block that grows over the limit is counted by malloc, one that stays large by realloc. */
static AFZ_COLD void *py_realloc_slowly(const struct py_allocator *a, void *at, size_t size)
{
        struct afz_taken taken = afz_forget(at);
        void *got = a->realloc(a->context, at, size);
        if (!got)
                afz_remember(at, &taken);
        if (size <= SMALL_BYTES && afz_count(size))
                return afz_count_slowly(AFZ_SITE_OBJECT, got, size);
        return got;
}

static AFZ_HOT void *py_realloc(void *domain, void *at, size_t size)
{
        const struct py_allocator *a = domain;
        if (afz_may_have(at))
                return py_realloc_slowly(a, at, size);
        if (size <= SMALL_BYTES && afz_count(size))
                return afz_count_slowly(AFZ_SITE_OBJECT, a->realloc(a->context, at, size), size);
        return a->realloc(a->context, at, size);
}

static AFZ_COLD void py_free_slowly(const struct py_allocator *a, void *at)
{
        (void)afz_take_out(at);
        a->free(a->context, at);
}

static AFZ_HOT void py_free(void *domain, void *at)
{
        const struct py_allocator *a = domain;
        if (afz_may_have(at))
                py_free_slowly(a, at);
        else
                a->free(a->context, at);
}

static bool passes_to_malloc(const struct py_allocator *raw, const struct py_allocator *a)
{
        return a->malloc == raw->malloc;
}

/* Before the interpreter begins: then no block is there that was not ours to pass on. */
void afz_hooks_python_start(void)
{
        void (*get)(int, struct py_allocator *), (*set)(int, struct py_allocator *);
        void *found = dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
        memcpy(&get, &found, sizeof found);
        found = dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
        memcpy(&set, &found, sizeof found);
        if (!get || !set || afz_py_is_free_threaded())
                return;
        get(PY_RAW, &real[PY_RAW]);
        for (int domain = PY_MEM; domain < PY_DOMAINS; domain++) {
                struct py_allocator ours = {&real[domain], py_malloc, py_calloc, py_realloc,
                                            py_free};
                get(domain, &real[domain]);
                if (passes_to_malloc(&real[PY_RAW], &real[domain]))
                        continue;
                set(domain, &ours);
                if (domain == PY_OBJ) /* its arenas hold what is counted here */
                        afz_stack_add_allocator((const void *)(uintptr_t)real[domain].malloc);
        }
}
