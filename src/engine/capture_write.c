#include "capture_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "count_of.h"

enum {
        /* Files of the senses are smaller by far; only a table of many thousand mounts is not. */
        MAX_FILE_BYTES = 4 << 20,
        /* Entries of one folder: above what a sense counts by hand. */
        MAX_ENTRIES = 5000,
};

/* What a link of a folder leads to where nobody looked behind it. */
#define NOT_RECORDED "not-recorded"

static const char *error_name(int err)
{
        static const struct {
                int err;
                const char *name;
        } table[] = {
                {EACCES, "EACCES"},   {EPERM, "EPERM"},     {ENOENT, "ENOENT"}, {ESRCH, "ESRCH"},
                {ENODATA, "ENODATA"}, {ENOTDIR, "ENOTDIR"}, {EINVAL, "EINVAL"}, {EIO, "EIO"},
                {ENODEV, "ENODEV"},   {ENXIO, "ENXIO"},     {EFBIG, "EFBIG"},   {EXDEV, "EXDEV"},
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(table); i++)
                if (table[i].err == -err)
                        return table[i].name;
        return "error";
}

/* The path in the capture: "cgroup/user.slice/x1f2e3d". -EXDEV for one that would lead out of it.
 */
static int name_of(const struct afz_capture_tree *t, enum afz_root root, enum afz_open_kind kind,
                   const char *path, char *buf, size_t cap)
{
        struct afz_out out = afz_out_to(-1, buf, cap - 1);
        afz_out_str(&out, afz_root_name[root]);
        if (strcmp(path, ".") != 0) {
                afz_out_char(&out, '/');
                afz_mask_name(t->mask, root, kind, afz_span_str(path), &out);
        }
        buf[out.len] = '\0';
        if (out.err < 0)
                return -ENAMETOOLONG;
        for (const char *at = buf; (at = strstr(at, "/..")); at += 3)
                if (at[3] == '/' || at[3] == '\0')
                        return -EXDEV;
        return path[0] == '/' ? -EXDEV : 0;
}

static void list_missing(const struct afz_capture_tree *t, const struct afz_seen *s, int err)
{
        char name[PATH_MAX];
        int r = name_of(t, s->root, s->kind, s->path, name, sizeof name);
        afz_out_fmt(t->no, "%s %s\n", error_name(r < 0 ? r : err), name);
}

static int make_folder(const struct afz_capture_tree *t, const char *path)
{
        return mkdirat(t->dir_fd, path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

/* Every folder on the way to the path. */
static int make_way(const struct afz_capture_tree *t, const char *path)
{
        char buf[PATH_MAX];
        int r = afz_path(buf, sizeof buf, "%s", path);
        for (char *slash = buf; r >= 0 && (slash = strchr(slash, '/')); slash++) {
                *slash = '\0';
                r = make_folder(t, buf);
                *slash = '/';
        }
        return r < 0 ? r : 0;
}

int afz_capture_put(struct afz_capture_tree *t, const char *path, struct afz_span text)
{
        int r = make_way(t, path);
        if (r < 0)
                return r;
        int fd =
                openat(t->dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0)
                return errno == EEXIST ? 0 : -errno; /* the same file under another name */
        r = afz_write_all(fd, text.p, text.n);
        if (close(fd) < 0 && r == 0)
                r = -errno;
        t->result.files++;
        t->result.bytes += text.n;
        return r;
}

static int put_link(struct afz_capture_tree *t, const char *path, const char *target)
{
        int r = make_way(t, path);
        if (r < 0)
                return r;
        if (symlinkat(target, t->dir_fd, path) < 0)
                return errno == EEXIST ? 0 : -errno;
        t->result.files++;
        return 0;
}

/* The whole of a file. *ret is the caller's to free. */
static ssize_t read_whole(int fd, char **ret)
{
        size_t cap = 16384;
        char *buf = NULL;
        for (;;) {
                char *more = realloc(buf, cap);
                if (!more) {
                        free(buf);
                        return -ENOMEM;
                }
                buf = more;
                ssize_t n = afz_fd_read(fd, buf, cap);
                if (n >= 0) {
                        *ret = buf;
                        return n;
                }
                cap *= 4;
                if (n != -EOVERFLOW || cap > MAX_FILE_BYTES) {
                        free(buf);
                        return n == -EOVERFLOW ? -EFBIG : n;
                }
        }
}

static int put_masked(struct afz_capture_tree *t, const struct afz_seen *s, const char *name,
                      struct afz_span text)
{
        size_t cap = afz_mask_room(text.n);
        char *buf = malloc(cap);
        if (!buf)
                return -ENOMEM;
        struct afz_out out = afz_out_to(-1, buf, cap);
        int r = afz_mask_file(t->mask, s->root, s->path, text, &out);
        if (r < 0) {
                list_missing(t, s, r == -EPERM ? -ENODATA : -EFBIG);
                r = 0;
        } else {
                r = afz_capture_put(t, name, (struct afz_span){buf, out.len});
        }
        free(buf);
        return r;
}

static int write_file(struct afz_capture_tree *t, const struct afz_seen *s, const char *name)
{
        /* To read from a device can do anything. */
        if (s->root == AFZ_ROOT_DEV)
                return put_masked(t, s, name, (struct afz_span){"", 0});
        int fd = openat(t->env->root_fd[s->root], s->path,
                        O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        char *text = NULL;
        ssize_t n = fd < 0 ? -errno : read_whole(fd, &text);
        if (fd >= 0)
                close(fd);
        if (n == -ENOMEM)
                return -ENOMEM;
        if (n < 0) {
                list_missing(t, s, (int)n);
                return 0;
        }
        int r = put_masked(t, s, name, (struct afz_span){text, (size_t)n});
        free(text);
        return r;
}

static int read_target(const struct afz_capture_tree *t, enum afz_root root, const char *path,
                       char *buf, size_t cap)
{
        char target[PATH_MAX];
        ssize_t n = readlinkat(t->env->root_fd[root], path, target, sizeof target);
        if (n < 0)
                return -errno;
        struct afz_out out = afz_out_to(-1, buf, cap - 1);
        afz_mask_target(t->mask, (struct afz_span){target, (size_t)n}, &out);
        buf[out.len] = '\0';
        return out.err < 0 ? -ENAMETOOLONG : 0;
}

static int write_link(struct afz_capture_tree *t, const struct afz_seen *s, const char *name)
{
        char target[PATH_MAX];
        int r = read_target(t, s->root, s->path, target, sizeof target);
        if (r == 0 && afz_seen_below(t->seen, s->root, s->path))
                r = -ENOTDIR; /* it is a folder here, for what is below it */
        if (r < 0) {
                list_missing(t, s, r);
                return 0;
        }
        return put_link(t, name, target);
}

/* One name in a listed folder. What was opened is written for itself; the others stand for their
 * names only, and as links, because git keeps no empty folders. In /proc a link says what a
 * descriptor is. */
static int write_entry(struct afz_capture_tree *t, enum afz_root root, const char *path,
                       unsigned char type)
{
        char name[PATH_MAX], target[PATH_MAX] = NOT_RECORDED;
        if (type == DT_REG || afz_seen_below(t->seen, root, path) ||
            name_of(t, root, AFZ_OPEN_DIR, path, name, sizeof name) < 0)
                return 0;
        if (type == DT_LNK && root == AFZ_ROOT_PROC &&
            read_target(t, root, path, target, sizeof target) < 0)
                return 0; /* closed meanwhile */
        return put_link(t, name, target);
}

static int write_folder(struct afz_capture_tree *t, const struct afz_seen *s, const char *name)
{
        int r = make_way(t, name);
        if (r == 0)
                r = make_folder(t, name);
        /* Of all processes only those are recorded that were looked at. */
        if (r < 0 || s->kind == AFZ_OPEN_PLACE ||
            (s->root == AFZ_ROOT_PROC && strcmp(s->path, ".") == 0))
                return r;
        int fd = openat(t->env->root_fd[s->root], s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir) {
                list_missing(t, s, -errno);
                if (fd >= 0)
                        close(fd);
                return 0;
        }
        struct dirent *e;
        for (size_t i = 0; r == 0 && i < MAX_ENTRIES && (e = readdir(dir)); i++) {
                char path[PATH_MAX];
                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                        continue;
                if (afz_path(path, sizeof path, "%s/%s", s->path, e->d_name) > 0)
                        r = write_entry(t, s->root, path, e->d_type);
        }
        closedir(dir);
        return r;
}

static int write_one(struct afz_capture_tree *t, const struct afz_seen *s)
{
        char name[PATH_MAX];
        int r = s->err;
        if (r == 0)
                r = name_of(t, s->root, s->kind, s->path, name, sizeof name);
        if (r < 0) {
                list_missing(t, s, r);
                return 0;
        }
        switch (s->kind) {
        case AFZ_OPEN_FILE:
                return write_file(t, s, name);
        case AFZ_OPEN_LINK:
                return write_link(t, s, name);
        default:
                return write_folder(t, s, name);
        }
}

/* The number at the start of a path of /proc; 0 when it is not one of a process. */
static uint64_t pid_of(const struct afz_seen *s)
{
        struct afz_span path = afz_span_str(s->path), first;
        uint64_t pid;
        if (s->root != AFZ_ROOT_PROC || afz_span_take_until(&path, '/', &first) < 0 ||
            afz_span_u64(first, &pid) < 0)
                return 0;
        return pid;
}

static bool lives(const struct afz_capture_tree *t, uint64_t pid)
{
        char path[40];
        afz_path(path, sizeof path, "%llu", (unsigned long long)pid);
        return faccessat(t->env->root_fd[AFZ_ROOT_PROC], path, F_OK, 0) == 0;
}

int afz_capture_write(struct afz_capture_tree *t)
{
        uint64_t pid = 0;
        bool gone = false;
        int r = 0;
        for (size_t i = 0; r == 0 && i < t->seen->count; i++) {
                const struct afz_seen *s = t->seen->list[i];
                uint64_t its = pid_of(s);
                if (its != pid && its != 0) {
                        /* Half a process is none: what ended since is left out whole. */
                        gone = !lives(t, its);
                        t->result.processes += !gone;
                }
                pid = its;
                if (pid != 0 && gone)
                        continue;
                r = write_one(t, s);
        }
        return r;
}
