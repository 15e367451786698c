/* What a training loop tells of itself: its steps, what it waited for data, and figures. */
#include <string.h>

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
        struct afz_book *book = afz_book_seen();
        if (book && afz_book_is_mine() && which >= 0 && which < AFZ_TOLD_COUNT)
                atomic_store_explicit(&book->told[which], value + 1, memory_order_relaxed);
}
