#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct afz_fixture {
        char dir[PATH_MAX];
        struct afz_env env;
        uint64_t now_ns;
};

static _Noreturn void give_up(const char *what, const char *path)
{
        fprintf(stderr, "fixture: cannot %s %s: %s\n", what, path, strerror(errno));
        abort();
}

static void full_path(const struct afz_fixture *f, const char *path, char out[PATH_MAX])
{
        int n = snprintf(out, PATH_MAX, "%s/%s", f->dir, path);
        if (n < 0 || n >= PATH_MAX) {
                errno = ENAMETOOLONG;
                give_up("name", path);
        }
}

/* Makes every folder on the way to `path`; a path that ends in '/' is a folder itself. */
static void make_folders(char *path)
{
        for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                if (mkdir(path, 0755) < 0 && errno != EEXIST)
                        give_up("make the folder", path);
                *slash = '/';
        }
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st, (void)type, (void)ftw;
        return remove(path);
}

static void remove_tree(const char *path)
{
        struct stat st;
        if (lstat(path, &st) == 0 && nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0)
                give_up("remove", path);
}

static void write_at(const struct afz_fixture *f, const char *path, const void *bytes, size_t n,
                     int flags)
{
        char full[PATH_MAX];
        struct stat st;
        full_path(f, path, full);
        make_folders(full);
        if (lstat(full, &st) == 0 && !S_ISREG(st.st_mode))
                remove_tree(full);
        int fd = open(full, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
        if (fd < 0 || write(fd, bytes, n) != (ssize_t)n || close(fd) < 0)
                give_up("write", full);
}

static void write_link(const struct afz_fixture *f, const char *path, const char *target)
{
        char full[PATH_MAX];
        full_path(f, path, full);
        make_folders(full);
        remove_tree(full);
        if (symlink(target, full) < 0)
                give_up("link", full);
}

static void write_row(const struct afz_fixture *f, const struct afz_fixture_row *row)
{
        size_t n = strlen(row->path);
        if (row->path[n - 1] == '/') {
                char full[PATH_MAX];
                full_path(f, row->path, full);
                make_folders(full);
        } else if (row->size == 0 && strncmp(row->text, "-> ", 3) == 0) {
                write_link(f, row->path, row->text + 3);
        } else {
                write_at(f, row->path, row->text, row->size ? row->size : strlen(row->text),
                         O_TRUNC);
        }
}

static uint64_t fixture_now(void *ctx)
{
        return ((const struct afz_fixture *)ctx)->now_ns;
}

struct afz_fixture *afz_fixture_new(const struct afz_fixture_row *rows)
{
        struct afz_fixture *f = calloc(1, sizeof *f);
        if (!f)
                give_up("allocate", "it");
        const char *tmp = getenv("TMPDIR");
        snprintf(f->dir, sizeof f->dir, "%s/afz-fixture-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        if (!mkdtemp(f->dir))
                give_up("make", f->dir);
        for (; rows->path; rows++)
                write_row(f, rows);
        int r = afz_env_open_fixture(f->dir, &f->env);
        if (r < 0) {
                errno = -r;
                give_up("open", f->dir);
        }
        f->now_ns = AFZ_FIXTURE_START_NS;
        f->env.now_ns = fixture_now;
        f->env.ctx = f;
        return f;
}

void afz_fixture_free(struct afz_fixture *f)
{
        if (!f)
                return;
        afz_env_done(&f->env);
        remove_tree(f->dir);
        free(f);
}

struct afz_env *afz_fixture_env(struct afz_fixture *f)
{
        return &f->env;
}

void afz_fixture_advance(struct afz_fixture *f, uint64_t ns)
{
        f->now_ns += ns;
}

const char *afz_fixture_dir(const struct afz_fixture *f)
{
        return f->dir;
}

void afz_fixture_set(struct afz_fixture *f, const char *path, const char *text)
{
        write_row(f, &(struct afz_fixture_row){path, text, 0});
}

void afz_fixture_set_bytes(struct afz_fixture *f, const char *path, const void *bytes, size_t n)
{
        write_at(f, path, bytes, n, O_TRUNC);
}

void afz_fixture_append(struct afz_fixture *f, const char *path, const char *text)
{
        write_at(f, path, text, strlen(text), O_APPEND);
}

void afz_fixture_remove(struct afz_fixture *f, const char *path)
{
        char full[PATH_MAX];
        full_path(f, path, full);
        remove_tree(full);
}

void afz_fixture_break(struct afz_fixture *f, const char *path)
{
        char full[PATH_MAX];
        full_path(f, path, full);
        make_folders(full);
        remove_tree(full);
        if (mkdir(full, 0755) < 0)
                give_up("make the folder", full);
}

size_t afz_fixture_open_fds(void)
{
        size_t n = 0;
        DIR *dir = opendir("/proc/self/fd");
        if (!dir)
                give_up("list", "/proc/self/fd");
        while (readdir(dir))
                n++;
        closedir(dir);
        return n;
}
