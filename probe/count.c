/* What is done with a block that is due: a sample, and its end. */
#include <errno.h>

#include "hooks.h"

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

/* Who has just come back from malloc holds none of its locks, unless a signal's handler stands on
 * top of another malloc: such a program is wrong, but need not hang for us. Mappings may be made
 * from anywhere. */
static int may_look_at_heap(enum afz_site_kind kind, const struct afz_stack *stack)
{
        return (kind == AFZ_SITE_HEAP || kind == AFZ_SITE_OBJECT) && stack->frames > 0 &&
               !stack->in_handler;
}

static void take_sample(struct afz_book *book, enum afz_site_kind kind, const void *at, size_t size,
                        uint64_t weight)
{
        struct afz_stack stack;
        atomic_fetch_add(&book->inside, 1);
        afz_stack_take(book, kind, &stack);
        if (stack.frames >= 0)
                afz_book_add(book,
                             afz_book_site(book, kind, stack.frame, (unsigned)stack.frames, size),
                             (uint64_t)(uintptr_t)at, size, weight);
        if (may_look_at_heap(kind, &stack))
                afz_heap_look(book);
        atomic_fetch_sub(&book->inside, 1);
}

void *afz_count_slowly(enum afz_site_kind kind, void *at, size_t size)
{
        int is_new = 0, saved = errno;
        if (!at || afz_sampler.inside || afz_is_sealed()) /* inside: libc, at work for us */
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
        if (taken.site >= 0 && taken.size_bytes >= AFZ_ROOM_LEAST)
                (void)afz_room_gone((uint64_t)(uintptr_t)at);
        atomic_fetch_sub(&book->inside, 1);
        return taken;
}

void afz_give_back(const void *at, const struct afz_taken *taken)
{
        struct afz_book *book = afz_book_seen();
        if (book && afz_book_is_mine())
                afz_book_put_back(book, (uint64_t)(uintptr_t)at, taken);
}
