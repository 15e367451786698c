#include "cgroup_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_file.h"
#include "dir.h"

/* The kernel allows more, but a walk takes 8 KiB of stack a level and nobody nests like this. */
#define DEPTH_MAX 16

/* Whole lines only; what is left of the last one moves to the front. */
static int take_pids(char *buf, size_t *have, int (*each)(void *ctx, pid_t pid), void *ctx)
{
        struct afz_span text = {buf, *have}, line;
        int r = 0;
        while (r == 0 && afz_span_take_line(&text, &line) == 0) {
                uint64_t pid;
                if (afz_span_u64(line, &pid) == 0 && pid > 0 && pid <= INT_MAX)
                        r = each(ctx, (pid_t)pid);
        }
        memmove(buf, text.p, text.n);
        *have = text.n;
        return r;
}

static int each_of_one(int dir_fd, int (*each)(void *ctx, pid_t pid), void *ctx)
{
        char buf[4096];
        size_t have = 0;
        int r = 0, fd = afz_cgroup_open(dir_fd, "cgroup.procs", O_RDONLY);
        if (fd < 0)
                return fd;
        while (r == 0) {
                ssize_t n = read(fd, buf + have, sizeof buf - have);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0) {
                        r = n < 0 ? -errno : 0;
                        break;
                }
                have += (size_t)n;
                r = take_pids(buf, &have, each, ctx);
                if (have == sizeof buf)
                        r = -EINVAL; /* a line of 4 KiB is no pid */
        }
        close(fd);
        return r;
}

/* The next folder inside, opened; -ENODATA at the end. */
static int next_folder(struct afz_dir *dir)
{
        int r;
        while ((r = afz_dir_next(dir)) > 0) {
                int fd = afz_cgroup_open(dir->fd, dir->name, O_RDONLY | O_DIRECTORY);
                if (fd >= 0)
                        return fd;
        }
        return r < 0 ? r : -ENODATA;
}

static int start(struct afz_dir *dir, int dir_fd)
{
        dir->at = dir->have = 0;
        dir->fd = afz_cgroup_open(dir_fd, ".", O_RDONLY | O_DIRECTORY);
        return dir->fd < 0 ? dir->fd : 0;
}

static int walk(int dir_fd, int depth, int (*each)(void *ctx, pid_t pid), void *ctx)
{
        struct afz_dir dir;
        int fd, r = each_of_one(dir_fd, each, ctx);
        /* -EOPNOTSUPP: a threaded cgroup, whose processes are listed above it. */
        if ((r != 0 && r != -EOPNOTSUPP) || depth >= DEPTH_MAX)
                return r;
        r = start(&dir, dir_fd);
        while (r == 0 && (fd = next_folder(&dir)) >= 0) {
                r = walk(fd, depth + 1, each, ctx);
                if (r == -ENODEV || r == -ENOENT) /* removed meanwhile */
                        r = 0;
                close(fd);
        }
        afz_dir_close(&dir);
        return r;
}

int afz_cgroup_each_pid(int dir_fd, int (*each)(void *ctx, pid_t pid), void *ctx)
{
        return walk(dir_fd, 0, each, ctx);
}

static int remove_below(int parent_fd, const char *name, int depth)
{
        struct afz_dir dir;
        int fd, r, below = afz_cgroup_open(parent_fd, name, O_RDONLY | O_DIRECTORY);
        if (below < 0)
                return below == -ENOENT ? 0 : below;
        r = start(&dir, below);
        while (r != -ENODEV && depth < DEPTH_MAX && dir.fd >= 0 && (fd = next_folder(&dir)) >= 0) {
                close(fd);
                int err = remove_below(below, dir.name, depth + 1);
                r = r < 0 ? r : err;
        }
        afz_dir_close(&dir);
        close(below);
        /* With a child left it is busy for sure, and there is nothing to wait for. */
        return r < 0 ? r : afz_cgroup_remove(parent_fd, name);
}

int afz_cgroup_remove_tree(int parent_fd, const char *name)
{
        return remove_below(parent_fd, name, 0);
}
