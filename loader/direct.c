#include "direct.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "file.h"
#include "now.h"
#include "room.h"

#define BLOCK UINT64_C(4096) /* no disk and no file system asks for more */

enum {
        SMALL_BYTES = 16 << 10, /* less at once is not worth a way of its own */
        CACHED_OF = 8, /* where all but one part in so many is cached, it is read from there */
        WHOLE_BYTES = 16 << 20, /* labels and the like: cached at once, not in many small pieces */
        SYS_CACHESTAT = 451,    /* Linux 6.5, on all machines */
};

int afz_direct_open(struct afz_direct *ret, const char *path, bool is_shared)
{
        struct afz_direct file = {.past_fd = -1};
        file.fd = afz_file_open(AT_FDCWD, path, &file.bytes);
        if (file.fd < 0)
                return file.fd;
        if (!is_shared && afz_room_is_scarce(file.bytes))
                file.past_fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
        if (file.bytes <= WHOLE_BYTES)
                (void)posix_fadvise(file.fd, 0, 0, POSIX_FADV_WILLNEED);
        else /* readahead would bring what is not asked for, between runs from all over */
                (void)posix_fadvise(file.fd, 0, 0, POSIX_FADV_RANDOM);
        *ret = file;
        return 0;
}

void afz_direct_close(struct afz_direct *file)
{
        close(file->fd);
        if (file->past_fd >= 0)
                close(file->past_fd);
}

static bool is_cached(int fd, uint64_t bytes, uint64_t at)
{
        struct {
                uint64_t off, len;
        } range = {at, bytes};
        struct {
                uint64_t cached, dirty, writeback, evicted, recently_evicted;
        } pages = {0};
        long page_bytes = sysconf(_SC_PAGESIZE);
        if (syscall(SYS_CACHESTAT, fd, &range, &pages, 0) < 0)
                return false;
        return pages.cached * (uint64_t)page_bytes >= bytes - bytes / CACHED_OF;
}

/* Whole blocks into scratch->raw, at least `wanted` bytes of them. Whatever is odd is left to the
 * page cache. */
static bool read_past(const struct afz_direct *file, uint64_t run, uint64_t from, uint64_t wanted,
                      struct afz_scratch *scratch)
{
        uint64_t began = afz_now_ns();
        ssize_t got = pread(file->past_fd, scratch->raw, run, (off_t)from);
        scratch->read_ns += afz_now_ns() - began;
        return got >= 0 && (uint64_t)got >= wanted;
}

int afz_direct_read(const struct afz_direct *file, void *to, uint64_t bytes, uint64_t at,
                    struct afz_scratch *scratch)
{
        uint64_t from = at & ~(BLOCK - 1), end;
        if (__builtin_add_overflow(at, bytes, &end) || end > INT64_MAX - BLOCK)
                return -EOVERFLOW;
        uint64_t run = ((end + BLOCK - 1) & ~(BLOCK - 1)) - from;
        if (file->past_fd < 0 || bytes < SMALL_BYTES || run > scratch->raw_bytes ||
            is_cached(file->fd, bytes, at) || !read_past(file, run, from, end - from, scratch))
                return afz_dataset_read(file->fd, to, bytes, at, scratch);
        scratch->read_bytes += bytes;
        memcpy(to, scratch->raw + (at - from), bytes);
        return 0;
}
