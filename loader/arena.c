#include "arena.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum { HUGE_BYTES = 2 << 20 };

static void touch(struct afz_arena *arena)
{
        if (madvise(arena->at, arena->bytes, MADV_POPULATE_WRITE) == 0)
                return;
        for (uint64_t i = 0; i < arena->bytes; i += AFZ_ARENA_PAGE)
                ((volatile uint8_t *)arena->at)[i] = 0;
}

int afz_arena_open(struct afz_arena *ret, uint64_t bytes)
{
        struct afz_arena arena = {.bytes = (bytes + AFZ_ARENA_PAGE - 1) &
                                           ~(uint64_t)(AFZ_ARENA_PAGE - 1)};
        if (bytes == 0 || arena.bytes < bytes || arena.bytes > INT64_MAX)
                return -ENOMEM;
        arena.at =
                mmap(NULL, arena.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (arena.at == MAP_FAILED)
                return -errno;
        if (arena.bytes >= HUGE_BYTES) /* or rows all over it would cost a page table walk each */
                (void)madvise(arena.at, arena.bytes, MADV_HUGEPAGE);
        touch(&arena);
        *ret = arena;
        return 0;
}

void afz_arena_close(struct afz_arena *arena)
{
        if (arena->at)
                munmap(arena->at, arena->bytes);
        *arena = (struct afz_arena){0};
}

static void advise(struct afz_arena *arena, uint64_t at, uint64_t bytes, int advice)
{
        uint64_t mask = AFZ_ARENA_PAGE - 1, from = (at + mask) & ~mask, to = (at + bytes) & ~mask;
        if (from < to)
                (void)madvise(arena->at + from, to - from, advice);
}

void afz_arena_give(struct afz_arena *arena, uint64_t at, uint64_t bytes)
{
        advise(arena, at, bytes, MADV_DONTNEED);
}

void afz_arena_keep_from_children(struct afz_arena *arena, uint64_t at, uint64_t bytes)
{
        advise(arena, at, bytes, MADV_DONTFORK);
}
