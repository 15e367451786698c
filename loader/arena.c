#include "arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum { HUGE_BYTES = 2 << 20 };

/* Only what the kernel does not know is done by hand: where it says that there is no page to be
 * had, to touch one would be a signal. */
static int touch(struct afz_arena *arena)
{
        if (madvise(arena->at, arena->bytes, MADV_POPULATE_WRITE) == 0)
                return 0;
        if (errno != EINVAL)
                return -ENOMEM;
        for (uint64_t i = 0; i < arena->bytes; i += AFZ_ARENA_PAGE)
                ((volatile uint8_t *)arena->at)[i] = 0;
        return 0;
}

/* Sealed in its size: memory that somebody could cut off would be the end of who reads it. */
static int make_file(uint64_t bytes)
{
        int fd = memfd_create("antifreeze-loader", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        if (ftruncate(fd, (off_t)bytes) < 0 ||
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
                int r = -errno;
                close(fd);
                return r;
        }
        return fd;
}

int afz_arena_open(struct afz_arena *ret, uint64_t bytes, bool is_shared)
{
        struct afz_arena arena = {.bytes = (bytes + AFZ_ARENA_PAGE - 1) &
                                           ~(uint64_t)(AFZ_ARENA_PAGE - 1),
                                  .is_shared = is_shared,
                                  .fd = -1};
        if (bytes == 0 || arena.bytes < bytes || arena.bytes > INT64_MAX)
                return -ENOMEM;
        if (is_shared) {
                arena.fd = make_file(arena.bytes);
                if (arena.fd < 0)
                        return arena.fd;
        }
        arena.at = mmap(NULL, arena.bytes, PROT_READ | PROT_WRITE,
                        is_shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, arena.fd, 0);
        if (arena.at == MAP_FAILED) {
                int r = -errno;
                if (is_shared)
                        close(arena.fd);
                return r;
        }
        if (arena.bytes >= HUGE_BYTES) /* or rows all over it would cost a page table walk each */
                (void)madvise(arena.at, arena.bytes, MADV_HUGEPAGE);
        int r = touch(&arena);
        if (r < 0)
                afz_arena_close(&arena);
        else
                *ret = arena;
        return r;
}

void afz_arena_close(struct afz_arena *arena)
{
        if (arena->at)
                munmap(arena->at, arena->bytes);
        if (arena->is_shared)
                close(arena->fd);
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
        advise(arena, at, bytes, arena->is_shared ? MADV_REMOVE : MADV_DONTNEED);
}

void afz_arena_keep_from_children(struct afz_arena *arena, uint64_t at, uint64_t bytes)
{
        advise(arena, at, bytes, MADV_DONTFORK);
}
