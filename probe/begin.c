/* Where the probe begins and ends in a process. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "hooks.h"
#include "module.h"
#include "py.h"
#include "unwind.h"

/* ---- unloading ---- */

/* What was remembered of addresses may be about another library soon. */
AFZ_EXPORT int dlclose(void *handle)
{
        static int (*_Atomic real)(void *);
        int (*next)(void *) = atomic_load(&real);
        if (!next) {
                void *found = dlsym(RTLD_NEXT, "dlclose");
                memcpy(&next, &found, sizeof found);
                atomic_store(&real, next);
        }
        int r = next ? next(handle) : -1;
        if (r == 0 && afz_book_hoped() && !afz_is_sealed() && afz_module_closed())
                afz_unwind_forget();
        return r;
}

/* ---- begin and end ---- */

static void forget_parent(struct afz_book *book)
{
        afz_step_new_book(book);
        afz_stack_new_book(book);
        afz_hooks_map_after_fork();
        afz_heap_forget();
}

/* Whether what the program calls malloc is ours: tried out, as an address alone may be a stand-in.
 */
static int is_called(void)
{
        void *(*take)(size_t);
        void (*give)(void *), *found = dlsym(RTLD_DEFAULT, "malloc");
        memcpy(&take, &found, sizeof found);
        found = dlsym(RTLD_DEFAULT, "free");
        memcpy(&give, &found, sizeof found);
        if (!take || !give)
                return 1;
        int64_t before = afz_sampler.left_bytes;
        afz_sampler.left_bytes = 1 << 10;
        void *at = take(64);
        int called = !at || afz_sampler.left_bytes != 1 << 10;
        afz_sampler.left_bytes = before;
        give(at);
        return called;
}

/* What others than the malloc behind us give out is not seen. */
static void say_what_is_hidden(void)
{
        void *made = dlsym(RTLD_DEFAULT, "_Znwm"), *behind = dlsym(RTLD_NEXT, "malloc");
        struct afz_module module;
        if (behind)
                afz_stack_add_allocator(behind);
        if (!is_called()) {
                afz_say("The program has a malloc of its own (built in, or loaded ahead "
                        "of the probe): only its mappings are seen.");
                return;
        }
        afz_heap_start();
        if (made && behind && afz_module_find(NULL, (uint64_t)(uintptr_t)made, &module) == 0 &&
            (uintptr_t)behind >= module.base && (uintptr_t)behind < module.end)
                afz_say("The allocator behind malloc brings its own C++ new, which is "
                        "not seen.");
}

static void may_read(void)
{
        uint64_t word = 0, copy = 0;
        if (afz_read_self((uint64_t)(uintptr_t)&word, &copy, sizeof copy) != sizeof copy)
                afz_say("The process may not read itself (process_vm_readv): stacks "
                        "are left out.");
}

__attribute__((constructor)) static void begin(void)
{
        afz_hooks_start();
        afz_hooks_map_start();
        afz_hooks_seal_start();
        const char *socket = secure_getenv(AFZ_BOOK_SOCKET);
        if (!socket || socket[0] != '/') /* or started by a program that is sealed */
                return;
        afz_hooks_read_settings();
        afz_sampler.inside++;
        afz_stack_start();
        afz_keeper_start(forget_parent);
        if (afz_book_hoped()) { /* what can only be done now is done, should it come later */
                may_read();
                say_what_is_hidden();
                afz_py_start();
                afz_hooks_python_start();
        }
        afz_sampler.inside--;
}

__attribute__((destructor)) static void end(void)
{
        afz_keeper_end();
}
