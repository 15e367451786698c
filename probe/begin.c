/* Where the probe begins and ends in a process, what a sample is, and the step clock. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "antifreeze/step.h"
#include "hooks.h"
#include "module.h"
#include "py.h"
#include "unwind.h"

AFZ_TLS struct afz_sampler afz_sampler;

static uint64_t new_seed(const struct afz_book *book)
{
        static _Atomic uint64_t threads;
        uint64_t nth = atomic_fetch_add(&threads, 1);
        if (book->seed != 0)
                return book->seed + nth * UINT64_C(0x632be59bd9b4e019);
        return afz_now_ns() << 16 ^ (uint64_t)afz_pid() << 40 ^ nth << 56 ^
               (uint64_t)(uintptr_t)&afz_sampler;
}

static void take_sample(struct afz_book *book, enum afz_site_kind kind, const void *at, size_t size,
                        uint64_t weight)
{
        uint64_t frame[AFZ_STACK_MAX];
        atomic_fetch_add(&book->inside, 1);
        int n = afz_stack_take(book, kind, frame, AFZ_STACK_MAX);
        if (n >= 0)
                afz_book_add(book, afz_book_site(book, kind, frame, (unsigned)n),
                             (uint64_t)(uintptr_t)at, size, weight);
        atomic_fetch_sub(&book->inside, 1);
}

void *afz_count_slowly(enum afz_site_kind kind, void *at, size_t size)
{
        int is_new = 0, saved = errno;
        if (!at || afz_sampler.inside) /* inside: libc, at work for us */
                return at;
        afz_sampler.inside++;
        struct afz_book *book = afz_book_mine(&is_new);
        if (!book) {
                afz_sampler.left_bytes = AFZ_LARGE_BYTES - 1;
        } else {
                if (is_new) /* in a child: its parent's samples are not to come again */
                        afz_sampler.seed = 0;
                if (afz_sampler.seed == 0)
                        afz_sample_begin(&afz_sampler, new_seed(book), book->mean_bytes);
                struct afz_draw draw = afz_sample_draw(&afz_sampler, size, book->mean_bytes);
                if (draw.sampled)
                        take_sample(book, kind, at, size, draw.weight_bytes);
        }
        afz_sampler.inside--;
        errno = saved;
        return at;
}

struct afz_taken afz_take_out(const void *at)
{
        struct afz_book *book = afz_book_seen();
        if (!book || !afz_book_is_mine())
                return (struct afz_taken){.site = -1};
        atomic_fetch_add(&book->inside, 1);
        struct afz_taken taken = afz_book_take(book, (uint64_t)(uintptr_t)at);
        atomic_fetch_sub(&book->inside, 1);
        return taken;
}

void afz_give_back(const void *at, const struct afz_taken *taken)
{
        struct afz_book *book = afz_book_seen();
        if (book && afz_book_is_mine())
                afz_book_put_back(book, (uint64_t)(uintptr_t)at, taken);
}

/* ---- the step clock ---- */

AFZ_EXPORT void antifreeze_step(void)
{
        struct afz_book *book = afz_book_seen();
        if (!book || !afz_book_is_mine())
                return;
        atomic_store_explicit(&book->step_ns, afz_now_ns(), memory_order_relaxed);
        atomic_fetch_add(&book->step, 1);
}

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
        if (r == 0 && afz_book_seen() && afz_module_closed())
                afz_unwind_forget();
        return r;
}

/* ---- begin and end ---- */

static void forget_parent(struct afz_book *book)
{
        afz_stack_new_book(book);
        afz_hooks_map_after_fork();
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
static void say_what_is_hidden(struct afz_book *book)
{
        void *made = dlsym(RTLD_DEFAULT, "_Znwm"), *behind = dlsym(RTLD_NEXT, "malloc");
        struct afz_module module;
        if (behind)
                afz_stack_add_allocator(behind);
        if (!is_called())
                afz_book_say(book, "The program has a malloc of its own built in: only its "
                                   "mappings are seen.");
        else if (made && behind && afz_module_find(NULL, (uint64_t)(uintptr_t)made, &module) == 0 &&
                 (uintptr_t)behind >= module.base && (uintptr_t)behind < module.end)
                afz_book_say(book, "The allocator behind malloc brings its own C++ new, which is "
                                   "not seen.");
}

static void may_read(struct afz_book *book)
{
        uint64_t word = 0, copy = 0;
        if (afz_read_self((uint64_t)(uintptr_t)&word, &copy, sizeof copy) != sizeof copy)
                afz_book_say(book, "The process may not read itself (process_vm_readv): stacks "
                                   "are left out.");
}

__attribute__((constructor)) static void begin(void)
{
        afz_hooks_start();
        if (!secure_getenv(AFZ_BOOK_SOCKET))
                return;
        afz_sampler.inside++;
        afz_stack_start();
        afz_keeper_start(forget_parent);
        struct afz_book *book = afz_book_seen();
        if (book) {
                may_read(book);
                say_what_is_hidden(book);
                (void)afz_py_start(book);
                afz_hooks_python_start();
        }
        afz_sampler.inside--;
}

__attribute__((destructor)) static void end(void)
{
        afz_keeper_end();
}
