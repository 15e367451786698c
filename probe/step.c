/* What a training loop tells of itself: its steps, what it waited for data, and figures. */
#include <stddef.h>
#include <string.h>

#include "antifreeze/step.h"
#include "hooks.h"

_Static_assert(offsetof(struct afz_book, wait_ns) ==
                       offsetof(struct afz_book, step) + sizeof(uint64_t),
               "antifreeze_clock() gives out both");

/* What is told before there is a book, which may come late (keeper.c). */
static struct {
        _Atomic int pid; /* who has told it: the child of a fork has told nothing */
        _Atomic uint64_t step, wait_ns, told[AFZ_TOLD_COUNT];
} early;

static void tell_early(_Atomic uint64_t *what, uint64_t value, int adds)
{
        if (!afz_book_hoped())
                return;
        if (atomic_exchange(&early.pid, afz_pid()) != afz_pid()) {
                atomic_store(&early.step, 0);
                atomic_store(&early.wait_ns, 0);
                for (int i = 0; i < AFZ_TOLD_COUNT; i++)
                        atomic_store(&early.told[i], 0);
        }
        if (adds)
                atomic_fetch_add(what, value);
        else
                atomic_store(what, value);
}

void afz_step_new_book(struct afz_book *book)
{
        if (atomic_load(&early.pid) != afz_pid())
                return;
        atomic_fetch_add(&book->step, atomic_load(&early.step));
        atomic_fetch_add(&book->wait_ns, atomic_load(&early.wait_ns));
        for (int i = 0; i < AFZ_TOLD_COUNT; i++)
                atomic_store(&book->told[i], atomic_load(&early.told[i]));
}

static struct afz_book *mine(void)
{
        struct afz_book *book = afz_book_seen();
        return book && afz_book_is_mine() ? book : NULL;
}

/* As mine(); one that was asked for may have come. */
static struct afz_book *mine_now(void)
{
        struct afz_book *book = mine();
        int is_new = 0;
        if (book || !afz_book_asked() || afz_sampler.inside || afz_is_sealed())
                return book;
        afz_sampler.inside++;
        book = afz_book_mine(&is_new);
        if (is_new) /* as in count.c */
                afz_sampler.seed = 0;
        afz_sampler.inside--;
        return book;
}

/* Between two steps, if anywhere, no lock of malloc is held. */
static void look_at_heap(struct afz_book *book)
{
        if (afz_sampler.inside)
                return;
        afz_sampler.inside++;
        atomic_fetch_add(&book->inside, 1);
        afz_heap_look(book);
        atomic_fetch_sub(&book->inside, 1);
        afz_sampler.inside--;
}

AFZ_EXPORT void antifreeze_step(void)
{
        struct afz_book *book = mine_now();
        if (!book) {
                tell_early(&early.step, 1, 1);
                return;
        }
        atomic_fetch_add(&book->step, 1);
        look_at_heap(book);
}

AFZ_EXPORT uint64_t *antifreeze_clock(void)
{
        struct afz_book *book = mine_now();
        if (!book)
                return NULL;
        look_at_heap(book);
        return (uint64_t *)&book->step;
}

AFZ_EXPORT void antifreeze_wait(uint64_t ns)
{
        struct afz_book *book = mine();
        if (book)
                atomic_fetch_add_explicit(&book->wait_ns, ns, memory_order_relaxed);
        else
                tell_early(&early.wait_ns, ns, 1);
}

/* Names and numbers are one build's: whoever asks by name need not be of it. */
AFZ_EXPORT int antifreeze_told(const char *name)
{
#define NAME(id, text) [AFZ_TOLD_##id] = text,
        static const char *const names[AFZ_TOLD_COUNT] = {AFZ_TOLD_LIST(NAME)};
#undef NAME
        for (int i = 0; name && i < AFZ_TOLD_COUNT; i++)
                if (strcmp(names[i], name) == 0)
                        return i;
        return -1;
}

AFZ_EXPORT void antifreeze_tell(int which, uint64_t value)
{
        struct afz_book *book = mine();
        if (which < 0 || which >= AFZ_TOLD_COUNT)
                return;
        if (book)
                atomic_store_explicit(&book->told[which], value + 1, memory_order_relaxed);
        else
                tell_early(&early.told[which], value + 1, 0);
}
