#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_FILES = 2 }; /* the log of --log-everything and the data of --slow-disk */

struct afz_scratch {
        char path[PATH_MAX];
        bool ours;
        int fd;
        size_t files;
        char file[MAX_FILES][64];
};

static int scratch_make(struct afz_scratch *scratch)
{
        const char *parent = getenv("TMPDIR");
        const int length = snprintf(scratch->path, sizeof(scratch->path), "%s/afz-trainer-XXXXXX",
                                    parent && *parent ? parent : "/tmp");

        if (length >= (int)sizeof(scratch->path))
                return -ENAMETOOLONG;
        if (!mkdtemp(scratch->path))
                return -errno;
        scratch->ours = true;
        return 0;
}

static int scratch_open(struct afz_scratch *scratch, const char *dir)
{
        int rc = 0;

        if (!dir)
                rc = scratch_make(scratch);
        else if (snprintf(scratch->path, sizeof(scratch->path), "%s", dir) >=
                 (int)sizeof(scratch->path))
                rc = -ENAMETOOLONG;
        if (rc < 0)
                return rc;

        scratch->fd = open(scratch->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return scratch->fd < 0 ? -errno : 0;
}

int afz_scratch_new(const char *dir, struct afz_scratch **ret)
{
        struct afz_scratch *scratch = calloc(1, sizeof(*scratch));

        if (!scratch)
                return -ENOMEM;
        scratch->fd = -1;

        const int rc = scratch_open(scratch, dir);

        if (rc < 0) {
                afz_scratch_free(scratch);
                return rc;
        }
        *ret = scratch;
        return 0;
}

struct afz_scratch *afz_scratch_free(struct afz_scratch *scratch)
{
        if (!scratch)
                return NULL;
        for (size_t i = 0; i < scratch->files; i++)
                unlinkat(scratch->fd, scratch->file[i], 0);
        if (scratch->fd >= 0)
                close(scratch->fd);
        if (scratch->ours)
                rmdir(scratch->path);
        free(scratch);
        return NULL;
}

int afz_scratch_create(struct afz_scratch *scratch, const char *name, int *ret_fd)
{
        if (scratch->files == MAX_FILES)
                return -ENOSPC;

        /* With the process's number in the name, two runs can share a folder. */
        char *path = scratch->file[scratch->files];
        const size_t room = sizeof(scratch->file[0]);

        if (snprintf(path, room, "afz-trainer-%ld-%s", (long)getpid(), name) >= (int)room)
                return -ENAMETOOLONG;

        const int fd =
                openat(scratch->fd, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (fd < 0)
                return -errno;
        scratch->files++;
        *ret_fd = fd;
        return 0;
}

const char *afz_scratch_path(const struct afz_scratch *scratch)
{
        return scratch->path;
}
