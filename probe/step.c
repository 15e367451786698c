/* What a training loop tells of itself: its steps, and what it waited for data. */
#include "antifreeze/step.h"
#include "hooks.h"

AFZ_EXPORT void antifreeze_step(void)
{
        struct afz_book *book = afz_book_seen();
        if (!book || !afz_book_is_mine())
                return;
        atomic_store_explicit(&book->step_ns, afz_now_ns(), memory_order_relaxed);
        atomic_fetch_add(&book->step, 1);
        if (afz_sampler.inside)
                return;
        /* Here if anywhere no lock of malloc is held. */
        afz_sampler.inside++;
        atomic_fetch_add(&book->inside, 1);
        afz_heap_look(book);
        atomic_fetch_sub(&book->inside, 1);
        afz_sampler.inside--;
}

AFZ_EXPORT void antifreeze_wait(uint64_t ns)
{
        struct afz_book *book = afz_book_seen();
        if (book && afz_book_is_mine())
                atomic_fetch_add_explicit(&book->wait_ns, ns, memory_order_relaxed);
}
