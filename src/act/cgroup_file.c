#include "cgroup_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "env.h"

/* A killed process leaves its cgroup when its memory is given back: about 0.1 ms/MB, so that some
 * GB are gone by then. Whoever is not is in an uninterruptible wait, and nobody waits for that. */
#define REMOVE_MS 500

/* The kernel cuts limits down to whole pages; arm64 may have 64 KiB of them. */
static uint64_t page_bytes(void)
{
        long n = sysconf(_SC_PAGESIZE);
        return n > 0 ? (uint64_t)n : 65536;
}

int afz_cgroup_open(int dir_fd, const char *file, int flags)
{
        int fd = openat(dir_fd, file, flags | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
        return fd < 0 ? -errno : fd;
}

int afz_cgroup_rewrite(int fd, const char *text)
{
        size_t n = strlen(text);
        ssize_t r;
        do
                r = pwrite(fd, text, n, 0);
        while (r < 0 && errno == EINTR);
        if (r < 0)
                return -errno;
        return (size_t)r == n ? 0 : -EIO;
}

int afz_cgroup_write(int dir_fd, const char *file, const char *text)
{
        int fd = afz_cgroup_open(dir_fd, file, O_WRONLY | O_TRUNC);
        if (fd < 0)
                return fd;
        int r = afz_cgroup_rewrite(fd, text);
        close(fd);
        return r;
}

int afz_cgroup_text(int dir_fd, const char *file, char *buf, size_t cap, struct afz_span *ret)
{
        int fd = afz_cgroup_open(dir_fd, file, O_RDONLY);
        if (fd < 0)
                return fd;
        ssize_t n = afz_fd_read(fd, buf, cap);
        close(fd);
        if (n < 0)
                return (int)n;
        *ret = (struct afz_span){buf, (size_t)n};
        return 0;
}

int afz_cgroup_reread(int fd, uint64_t *ret)
{
        char buf[64];
        ssize_t n = afz_fd_read_head(fd, buf, sizeof buf);
        if (n < 0)
                return (int)n;
        struct afz_span text = {buf, (size_t)n}, line;
        if (afz_span_take_line(&text, &line) < 0)
                return -EINVAL;
        (void)afz_span_take_prefix(&line, "default "); /* io.weight */
        if (afz_span_eq(line, "max")) {
                *ret = UINT64_MAX;
                return 0;
        }
        return afz_span_u64(line, ret);
}

int afz_cgroup_u64(int dir_fd, const char *file, uint64_t *ret)
{
        int fd = afz_cgroup_open(dir_fd, file, O_RDONLY);
        if (fd < 0)
                return fd;
        int r = afz_cgroup_reread(fd, ret);
        close(fd);
        return r;
}

/* "No limit" is read back as "max", or on v1 as the most pages that a long can count. */
static bool is_unlimited(uint64_t value)
{
        return value >= (uint64_t)INT64_MAX - page_bytes();
}

static int check(uint64_t asked, uint64_t got)
{
        if (asked == UINT64_MAX)
                return is_unlimited(got) ? 0 : -EIO;
        return got <= asked && asked - got < page_bytes() ? 0 : -EIO;
}

int afz_cgroup_set(int fd, uint64_t value, const char *none)
{
        char text[24];
        uint64_t got;
        snprintf(text, sizeof text, "%llu\n", (unsigned long long)value);
        int r = value == UINT64_MAX ? afz_cgroup_rewrite(fd, none) : afz_cgroup_rewrite(fd, text);
        if (r < 0)
                return r;
        r = afz_cgroup_reread(fd, &got);
        return r < 0 ? r : check(value, got);
}

int afz_cgroup_prove(int dir_fd, const char *file, uint64_t value, const char *none)
{
        int fd = afz_cgroup_open(dir_fd, file, O_RDWR | O_TRUNC);
        if (fd < 0)
                return fd;
        int r = afz_cgroup_set(fd, value, none);
        close(fd);
        return r;
}

int afz_cgroup_move(int dir_fd, pid_t pid)
{
        char text[16];
        if (pid <= 0) /* 0 would move ourselves */
                return -EINVAL;
        snprintf(text, sizeof text, "%d\n", (int)pid);
        return afz_cgroup_write(dir_fd, "cgroup.procs", text);
}

int afz_cgroup_make(int parent_fd, const char *name, int *ret_fd)
{
        if (mkdirat(parent_fd, name, 0755) < 0)
                return -errno;
        int fd = afz_cgroup_open(parent_fd, name, O_RDONLY | O_DIRECTORY);
        if (fd < 0) {
                (void)unlinkat(parent_fd, name, AT_REMOVEDIR);
                return fd;
        }
        *ret_fd = fd;
        return 0;
}

int afz_cgroup_remove(int parent_fd, const char *name)
{
        uint64_t end = afz_clock_ns(CLOCK_MONOTONIC) + REMOVE_MS * AFZ_NS_PER_MS;
        struct timespec pause = {.tv_nsec = 200000};
        while (unlinkat(parent_fd, name, AT_REMOVEDIR) < 0) {
                if (errno == ENOENT || errno == ENODEV)
                        return 0;
                if (errno != EBUSY || afz_clock_ns(CLOCK_MONOTONIC) >= end)
                        return -errno;
                nanosleep(&pause, NULL);
                if (pause.tv_nsec < 10000000)
                        pause.tv_nsec *= 2;
        }
        return 0;
}
