/* Memory that is locked for the GPU. Only programs that have these functions call them; where the
 * real one is, is asked when it is first needed, as CUDA's libraries come late and often in a scope
 * of their own (dlopen with RTLD_LOCAL), where RTLD_NEXT does not look. */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "hooks.h"

enum { NO_DEVICE = 100 }; /* cudaErrorNoDevice, CUDA_ERROR_NO_DEVICE */

/* name, parameters, arguments; each gives the address in *ret. */
#define PINNED_ALLOCATIONS(X)                                                                      \
        X(cudaHostAlloc, (void **ret, size_t size, unsigned flags), (ret, size, flags))            \
        X(cudaMallocHost, (void **ret, size_t size), (ret, size))                                  \
        X(cuMemHostAlloc, (void **ret, size_t size, unsigned flags), (ret, size, flags))           \
        X(cuMemAllocHost_v2, (void **ret, size_t size), (ret, size))

#define PINNED_FREES(X)                                                                            \
        X(cudaFreeHost)                                                                            \
        X(cuMemFreeHost)

struct wanted {
        const char *name;
        void *ours, *found;
};

static void ask(struct wanted *w, void *handle)
{
        void *found = dlsym(handle, w->name);
        if (found && found != w->ours)
                w->found = found;
}

static AFZ_COLD void *find(const char *name, void *ours, void *caller)
{
        struct wanted w = {name, ours, NULL};
        const struct link_map *first = NULL;
        Dl_info about;
        void *handle;
        ask(&w, RTLD_NEXT);
        /* Who called us could call the real one: it is in that library's scope. */
        if (!w.found && dladdr(caller, &about) && about.dli_fname &&
            (handle = dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD))) {
                ask(&w, handle);
                (void)dlclose(handle);
        }
        handle = dlopen(NULL, RTLD_LAZY);
        if (handle && dlinfo(handle, RTLD_DI_LINKMAP, &first) != 0)
                first = NULL;
        for (const struct link_map *m = first; !w.found && m; m = m->l_next) {
                void *other = m->l_name[0] ? dlopen(m->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
                if (!other)
                        continue;
                ask(&w, other);
                (void)dlclose(other);
        }
        if (handle)
                (void)dlclose(handle);
        return w.found;
}

/* In a function that stands before one of this name: fills `next` once, and keeps it in `real`. */
#define FIND_NEXT(name)                                                                            \
        if (!next) {                                                                               \
                void *found = find(#name, (void *)(uintptr_t)&name, __builtin_return_address(0));  \
                memcpy(&next, &found, sizeof found);                                               \
                atomic_store(&real, next);                                                         \
        }

#define ALLOCATION(name, parameters, arguments)                                                    \
        AFZ_EXPORT int name parameters;                                                            \
        AFZ_EXPORT int name parameters                                                             \
        {                                                                                          \
                static int(*_Atomic real) parameters;                                              \
                int(*next) parameters = atomic_load(&real);                                        \
                FIND_NEXT(name)                                                                    \
                int r = next ? next arguments : NO_DEVICE;                                         \
                if (r == 0 && ret && afz_count(size))                                              \
                        (void)afz_count_slowly(AFZ_SITE_PINNED, *ret, size);                       \
                return r;                                                                          \
        }
PINNED_ALLOCATIONS(ALLOCATION)

#define FREE(name)                                                                                 \
        AFZ_EXPORT int name(void *at);                                                             \
        AFZ_EXPORT int name(void *at)                                                              \
        {                                                                                          \
                static int (*_Atomic real)(void *);                                                \
                int (*next)(void *) = atomic_load(&real);                                          \
                FIND_NEXT(name)                                                                    \
                if (at)                                                                            \
                        (void)afz_forget(at);                                                      \
                return next ? next(at) : NO_DEVICE;                                                \
        }
PINNED_FREES(FREE)
