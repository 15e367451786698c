#include "dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int afz_dir_open(struct afz_dir *ret, const struct afz_env *env, enum afz_root root,
                 const char *path)
{
        ret->fd = -1;
        ret->at = ret->have = 0;
        int fd = afz_env_open(env, root, path, O_DIRECTORY);
        if (fd < 0)
                return fd;
        ret->fd = fd;
        return 0;
}

int afz_dir_rewind(struct afz_dir *dir)
{
        dir->at = dir->have = 0;
        return lseek(dir->fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

int afz_dir_next(struct afz_dir *dir)
{
        for (;;) {
                if (dir->at >= dir->have) {
                        ssize_t n = getdents64(dir->fd, dir->buf, sizeof dir->buf);
                        if (n <= 0)
                                return n < 0 ? -errno : 0;
                        dir->at = 0;
                        dir->have = (size_t)n;
                }
                const struct dirent64 *e = (const void *)(dir->buf + dir->at);
                dir->at += e->d_reclen;
                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                        continue;
                dir->name = e->d_name;
                dir->inode = e->d_ino;
                return 1;
        }
}

int afz_dir_name_u64(const struct afz_dir *dir, uint64_t *ret)
{
        /* Most entries of /proc that are no process start with a letter: tell them apart at once.
         */
        if (!afz_is_digit(dir->name[0]))
                return -EINVAL;
        return afz_span_u64(afz_span_str(dir->name), ret);
}

void afz_dir_close(struct afz_dir *dir)
{
        if (dir->fd >= 0)
                close(dir->fd);
        dir->fd = -1;
}
