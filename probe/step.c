/* What a training loop tells of itself: its steps, what it waited for data, and figures. */
#include <stddef.h>
#include <string.h>

#include "antifreeze/step.h"
#include "hooks.h"

_Static_assert(offsetof(struct afz_book, wait_ns) ==
                       offsetof(struct afz_book, step) + sizeof(uint64_t),
               "antifreeze_clock() gives out both");

static struct afz_book *mine(void)
{
        struct afz_book *book = afz_book_seen();
        return book && afz_book_is_mine() ? book : NULL;
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
        struct afz_book *book = mine();
        if (!book)
                return;
        atomic_fetch_add(&book->step, 1);
        look_at_heap(book);
}

AFZ_EXPORT uint64_t *antifreeze_clock(void)
{
        struct afz_book *book = mine();
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
        if (book && which >= 0 && which < AFZ_TOLD_COUNT)
                atomic_store_explicit(&book->told[which], value + 1, memory_order_relaxed);
}
