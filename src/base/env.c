#include "env.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "clock.h"
#include "count_of.h"

const char *const afz_root_name[AFZ_ROOT_COUNT] = {
        [AFZ_ROOT_PROC] = "proc",
        [AFZ_ROOT_SYS] = "sys",
        [AFZ_ROOT_CGROUP] = "cgroup",
        [AFZ_ROOT_DEV] = "dev",
};

static const char *const live_path[AFZ_ROOT_COUNT] = {
        [AFZ_ROOT_PROC] = "/proc",
        [AFZ_ROOT_SYS] = "/sys",
        [AFZ_ROOT_CGROUP] = "/sys/fs/cgroup",
        [AFZ_ROOT_DEV] = "/dev",
};

/* CLOCK_MONOTONIC stands still in suspend: time in which the job did not live is a gap. */
static uint64_t monotonic_ns(void *ctx)
{
        (void)ctx;
        return afz_clock_ns(CLOCK_MONOTONIC);
}

static int live_fs_space(const struct afz_env *env, const char *mount_point,
                         struct afz_fs_space *ret)
{
        (void)env;
        struct statvfs v;
        if (statvfs(mount_point, &v) < 0)
                return -errno;
        *ret = (struct afz_fs_space){
                .total_bytes = (uint64_t)v.f_blocks * v.f_frsize,
                .free_bytes = (uint64_t)v.f_bfree * v.f_frsize,
                .available_bytes = (uint64_t)v.f_bavail * v.f_frsize,
                .files = v.f_files,
                .files_free = v.f_ffree,
        };
        return 0;
}

/* DIR/fs_space has one line a mount point: "total free available files files_free /mount/point". */
static int fixture_fs_space(const struct afz_env *env, const char *mount_point,
                            struct afz_fs_space *ret)
{
        char buf[32768];
        int fd = openat(env->fixture_fd, "fs_space", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -ENODATA;
        ssize_t n = afz_fd_read(fd, buf, sizeof buf);
        close(fd);
        if (n < 0)
                return (int)n;
        struct afz_span text = {buf, (size_t)n}, line;
        while (afz_span_take_line(&text, &line) == 0) {
                uint64_t v[5];
                size_t i = 0;
                while (i < 5 && afz_span_take_u64(&line, &v[i]) == 0)
                        i++;
                if (i < 5 || !afz_span_eq(afz_span_trim(line), mount_point))
                        continue;
                *ret = (struct afz_fs_space){v[0], v[1], v[2], v[3], v[4]};
                return 0;
        }
        return -ENODATA;
}

static void set_empty(struct afz_env *env)
{
        *env = (struct afz_env){
                .fixture_fd = -1,
                .now_ns = monotonic_ns,
                .page_bytes = sysconf(_SC_PAGESIZE),
                .clock_ticks = sysconf(_SC_CLK_TCK),
                .self_pid = (uint64_t)getpid(),
        };
        for (int i = 0; i < AFZ_ROOT_COUNT; i++)
                env->root_fd[i] = -1;
}

int afz_env_open_live(struct afz_env *ret)
{
        struct afz_env env;
        set_empty(&env);
        env.fs_space = live_fs_space;
        int proc_err = 0;
        for (int i = 0; i < AFZ_ROOT_COUNT; i++) {
                env.root_fd[i] = open(live_path[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (i == AFZ_ROOT_PROC && env.root_fd[i] < 0)
                        proc_err = -errno;
        }
        if (proc_err < 0) {
                afz_env_done(&env);
                return proc_err;
        }
        *ret = env;
        return 0;
}

/* DIR/machine: "page_bytes 4096", "clock_ticks 100", "self_pid 1234". */
static void set_machine(void *ctx, int id, uint64_t value)
{
        struct afz_env *env = ctx;
        if (id == 0 && value >= 1024 && value <= 1U << 20)
                env->page_bytes = (long)value;
        else if (id == 1 && value >= 1 && value <= 1000000)
                env->clock_ticks = (long)value;
        else if (id == 2)
                env->self_pid = value;
}

int afz_env_open_fixture(const char *dir, struct afz_env *ret)
{
        static const struct afz_key keys[] = {
                {"page_bytes", 0, 0}, {"clock_ticks", 1, 0}, {"self_pid", 2, 0}};
        struct afz_env env;
        set_empty(&env);
        env.fs_space = fixture_fs_space;
        env.fixture_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (env.fixture_fd < 0)
                return -errno;
        for (int i = 0; i < AFZ_ROOT_COUNT; i++)
                env.root_fd[i] =
                        openat(env.fixture_fd, afz_root_name[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        int fd = openat(env.fixture_fd, "machine", O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
                char buf[512];
                ssize_t n = afz_fd_read(fd, buf, sizeof buf);
                close(fd);
                if (n > 0)
                        afz_span_each_key((struct afz_span){buf, (size_t)n}, keys,
                                          AFZ_COUNT_OF(keys), set_machine, &env);
        }
        *ret = env;
        return 0;
}

void afz_env_done(struct afz_env *env)
{
        if (!env)
                return;
        for (int i = 0; i < AFZ_ROOT_COUNT; i++)
                if (env->root_fd[i] >= 0)
                        close(env->root_fd[i]);
        if (env->fixture_fd >= 0)
                close(env->fixture_fd);
        set_empty(env);
}

static bool has_line(struct afz_span text, const char *error, enum afz_root root, const char *path)
{
        char line[PATH_MAX + 32];
        while (strncmp(path, "./", 2) == 0)
                path += 2;
        int n = afz_path(line, sizeof line, "\n%s %s/%s\n", error, afz_root_name[root], path);
        if (n < 0 || text.n == 0)
                return false;
        /* The first line has no newline before it. */
        return memmem(text.p, text.n, line, (size_t)n) ||
               (text.n >= (size_t)n - 1 && memcmp(text.p, line + 1, (size_t)n - 1) == 0);
}

/* What a path that a fixture does not hold failed with where it was recorded: a file that may not
 * be read is another thing than one that is not there. Any length of list, no allocation. */
static int fixture_error(const struct afz_env *env, enum afz_root root, const char *path, int err)
{
        struct stat st;
        if (env->fixture_fd < 0 || (err != -ENOENT && err != -ENODATA))
                return err;
        int r = err, fd = openat(env->fixture_fd, "not-read", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return r;
        void *map = MAP_FAILED;
        if (fstat(fd, &st) == 0 && st.st_size > 0)
                map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        close(fd);
        if (map == MAP_FAILED)
                return r;
        struct afz_span text = {map, (size_t)st.st_size};
        if (has_line(text, "EACCES", root, path))
                r = -EACCES;
        else if (has_line(text, "EPERM", root, path))
                r = -EPERM;
        munmap(map, text.n);
        return r;
}

static enum afz_open_kind kind_of(int flags)
{
        if (!(flags & O_DIRECTORY))
                return AFZ_OPEN_FILE;
        return flags & O_PATH ? AFZ_OPEN_PLACE : AFZ_OPEN_DIR;
}

int afz_env_open(const struct afz_env *env, enum afz_root root, const char *path, int flags)
{
        int fd = -ENODATA;
        if (env->root_fd[root] >= 0) {
                fd = openat(env->root_fd[root], path, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags);
                if (fd < 0)
                        fd = -errno;
        }
        if (fd < 0)
                fd = fixture_error(env, root, path, fd);
        if (env->on_open)
                env->on_open(env->ctx, root, kind_of(flags), path, fd < 0 ? fd : 0);
        return fd;
}

static ssize_t read_at(int fd, char *buf, size_t cap, size_t offset)
{
        ssize_t n;
        do
                n = pread(fd, buf, cap, (off_t)offset);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
}

ssize_t afz_fd_read_head(int fd, char *buf, size_t cap)
{
        return read_at(fd, buf, cap, 0);
}

ssize_t afz_fd_read(int fd, char *buf, size_t cap)
{
        size_t n = 0;
        while (n < cap) {
                ssize_t r = read_at(fd, buf + n, cap - n, n);
                if (r <= 0)
                        return r < 0 ? r : (ssize_t)n;
                n += (size_t)r;
        }
        return -EOVERFLOW;
}

ssize_t afz_fd_read_lines(int fd, char *buf, size_t cap, size_t longest)
{
        const size_t least_page = 4096;
        size_t n = 0;
        while (n < cap) {
                ssize_t r = read_at(fd, buf + n, cap - n, n);
                if (r < 0)
                        return r;
                n += (size_t)r;
                if (n < cap && (size_t)r + longest < least_page)
                        return (ssize_t)n;
        }
        return -EOVERFLOW;
}

ssize_t afz_fd_read_record(int fd, char *buf, size_t cap)
{
        ssize_t n = read_at(fd, buf, cap, 0);
        return n >= 0 && (size_t)n == cap ? -EOVERFLOW : n;
}

static int read_path(const struct afz_env *env, enum afz_root root, const char *path, char *buf,
                     size_t cap, ssize_t (*read_fd)(int, char *, size_t), struct afz_span *ret)
{
        int fd = afz_env_open(env, root, path, 0);
        if (fd < 0)
                return fd;
        ssize_t n = read_fd(fd, buf, cap);
        close(fd);
        if (n < 0)
                return (int)n;
        *ret = (struct afz_span){buf, (size_t)n};
        return 0;
}

int afz_env_read(const struct afz_env *env, enum afz_root root, const char *path, char *buf,
                 size_t cap, struct afz_span *ret)
{
        return read_path(env, root, path, buf, cap, afz_fd_read, ret);
}

int afz_env_read_record(const struct afz_env *env, enum afz_root root, const char *path, char *buf,
                        size_t cap, struct afz_span *ret)
{
        return read_path(env, root, path, buf, cap, afz_fd_read_record, ret);
}

int afz_env_read_head(const struct afz_env *env, enum afz_root root, const char *path, char *buf,
                      size_t cap, struct afz_span *ret)
{
        return read_path(env, root, path, buf, cap, afz_fd_read_head, ret);
}

int afz_env_read_u64(const struct afz_env *env, enum afz_root root, const char *path, uint64_t *ret)
{
        char buf[64];
        struct afz_span text;
        int r = afz_env_read(env, root, path, buf, sizeof buf, &text);
        if (r < 0)
                return r;
        struct afz_span line;
        if (afz_span_take_line(&text, &line) < 0 || text.n > 0)
                return -EINVAL;
        if (afz_span_eq(line, "max")) {
                *ret = UINT64_MAX;
                return 0;
        }
        return afz_span_u64(line, ret);
}

ssize_t afz_env_readlink(const struct afz_env *env, enum afz_root root, const char *path, char *buf,
                         size_t cap)
{
        ssize_t n = -ENODATA;
        if (env->root_fd[root] >= 0) {
                n = readlinkat(env->root_fd[root], path, buf, cap);
                if (n < 0)
                        n = -errno;
        }
        if (n < 0)
                n = fixture_error(env, root, path, (int)n);
        if (env->on_open)
                env->on_open(env->ctx, root, AFZ_OPEN_LINK, path, n < 0 ? (int)n : 0);
        if (n < 0)
                return n;
        if ((size_t)n >= cap)
                return -ENAMETOOLONG;
        buf[n] = '\0';
        return n;
}

int afz_path(char *buf, size_t cap, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        int n = vsnprintf(buf, cap, format, args);
        va_end(args);
        if (n < 0)
                return -EINVAL;
        return (size_t)n < cap ? n : -ENAMETOOLONG;
}
