#include "shm_sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "dir.h"

/* More files than this are not kept count of: then nothing new is taken for the job's. */
enum { MAX_FILES = 4096 };

enum owner { NOBODY, STRANGER, JOB };

struct file {
        uint64_t inode;
        enum owner owner;
        bool seen; /* in this look */
        bool held; /* at the sweep */
        char name[NAME_MAX + 1];
};

struct afz_shm {
        char folder[256];
        int fd;
        dev_t device;
        bool full;
        size_t files;
        struct file file[MAX_FILES];
};

static struct file *find(struct afz_shm *shm, uint64_t inode)
{
        for (size_t i = 0; i < shm->files; i++)
                if (shm->file[i].inode == inode)
                        return &shm->file[i];
        return NULL;
}

static bool is_candidate(const struct stat *st, const char *name)
{
        return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1 &&
               strncmp(name, "sem.", 4) != 0;
}

static void list_one(struct afz_shm *shm, const char *name, enum owner if_new)
{
        struct stat st;
        if (fstatat(shm->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        struct file *f = find(shm, st.st_ino);
        if (f && strcmp(f->name, name) == 0) {
                f->seen = true;
                return;
        }
        if (f) { /* renamed, linked, or another file with a dead one's number: not certain */
                f->owner = STRANGER;
                f->seen = true;
                snprintf(f->name, sizeof f->name, "%s", name);
                return;
        }
        if (shm->files == MAX_FILES) {
                shm->full = true;
                return;
        }
        f = &shm->file[shm->files++];
        *f = (struct file){.inode = st.st_ino, .seen = true};
        f->owner = is_candidate(&st, name) && !shm->full ? if_new : STRANGER;
        snprintf(f->name, sizeof f->name, "%s", name);
}

static int list(struct afz_shm *shm, enum owner if_new)
{
        int fd = openat(shm->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        if (!dir) {
                int r = -errno;
                if (fd >= 0)
                        close(fd);
                return r;
        }
        for (size_t i = 0; i < shm->files; i++)
                shm->file[i].seen = false;
        for (struct dirent *e; (e = readdir(dir));)
                if (e->d_name[0] != '.' || (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")))
                        list_one(shm, e->d_name, if_new);
        closedir(dir);
        /* What has lost its name is gone, and its number may come again. */
        for (size_t i = 0; i < shm->files;) {
                if (shm->file[i].seen)
                        i++;
                else
                        shm->file[i] = shm->file[--shm->files];
        }
        return 0;
}

int afz_shm_new(const char *folder, struct afz_shm **ret)
{
        struct stat st;
        struct afz_shm *shm = calloc(1, sizeof *shm);
        if (!shm)
                return -ENOMEM;
        int r = afz_path(shm->folder, sizeof shm->folder, "%s", folder);
        shm->fd = r < 0 ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (r >= 0 && (shm->fd < 0 || fstat(shm->fd, &st) < 0))
                r = -ENODATA;
        if (r >= 0) {
                shm->device = st.st_dev;
                r = list(shm, STRANGER);
        }
        if (r < 0) {
                afz_shm_free(shm);
                return r;
        }
        *ret = shm;
        return 0;
}

void afz_shm_free(struct afz_shm *shm)
{
        if (!shm)
                return;
        if (shm->fd >= 0)
                close(shm->fd);
        free(shm);
}

int afz_shm_look(struct afz_shm *shm)
{
        return list(shm, NOBODY);
}

void afz_shm_settle(struct afz_shm *shm)
{
        for (size_t i = 0; i < shm->files; i++)
                if (shm->file[i].owner == NOBODY)
                        shm->file[i].owner = STRANGER;
}

/* "START-END rw-s OFFSET 00:19 INODE /dev/shm/NAME": a mapping of a file on our file system. */
static bool take_mapping(struct afz_span line, dev_t device, struct afz_span *ret_mode,
                         uint64_t *ret_inode)
{
        struct afz_span range, mode, offset;
        uint64_t high, low, inode;
        if (afz_span_take_word(&line, &range) < 0 || afz_span_take_word(&line, &mode) < 0 ||
            afz_span_take_word(&line, &offset) < 0 || afz_span_take_hex(&line, &high) < 0 ||
            afz_span_take_prefix(&line, ":") < 0 || afz_span_take_hex(&line, &low) < 0 ||
            afz_span_take_u64(&line, &inode) < 0)
                return false;
        if (inode == 0 || makedev((unsigned)high, (unsigned)low) != device)
                return false;
        *ret_mode = mode;
        *ret_inode = inode;
        return true;
}

/* Each mapping of our file system goes to `each`. */
static int each_mapping(struct afz_shm *shm, const struct afz_env *env, uint64_t pid,
                        void (*each)(struct file *f, struct afz_span mode))
{
        char path[48], line[8192];
        snprintf(path, sizeof path, "%llu/maps", (unsigned long long)pid);
        int fd = afz_env_open(env, AFZ_ROOT_PROC, path, 0);
        if (fd < 0)
                return fd == -ENOENT ? -ESRCH : fd;
        FILE *maps = fdopen(fd, "re");
        if (!maps) {
                close(fd);
                return -ENOMEM;
        }
        errno = 0;
        while (fgets(line, sizeof line, maps)) {
                struct afz_span mode;
                uint64_t inode;
                struct file *f = take_mapping(afz_span_str(line), shm->device, &mode, &inode)
                                         ? find(shm, inode)
                                         : NULL;
                if (f)
                        each(f, mode);
        }
        int r = ferror(maps) ? -(errno ? errno : EIO) : 0;
        fclose(maps);
        return r;
}

static void note_mapping(struct file *f, struct afz_span mode)
{
        if (f->owner == NOBODY && afz_span_starts(mode, "rw") && afz_span_ends(mode, "s"))
                f->owner = JOB;
}

int afz_shm_note(struct afz_shm *shm, const struct afz_env *env, pid_t pid)
{
        return each_mapping(shm, env, (uint64_t)pid, note_mapping);
}

/* Still the file that we know, and as it must be. */
static bool is_same(const struct afz_shm *shm, const struct file *f, struct stat *ret)
{
        return fstatat(shm->fd, f->name, ret, AT_SYMLINK_NOFOLLOW) == 0 &&
               ret->st_dev == shm->device && ret->st_ino == f->inode && is_candidate(ret, f->name);
}

uint64_t afz_shm_bytes(const struct afz_shm *shm)
{
        uint64_t bytes = 0;
        struct stat st;
        for (size_t i = 0; i < shm->files; i++)
                if (shm->file[i].owner == JOB && is_same(shm, &shm->file[i], &st))
                        bytes += (uint64_t)st.st_blocks * 512;
        return bytes;
}

static void note_held(struct file *f, struct afz_span mode)
{
        (void)mode;
        f->held = true;
}

/* By the names of its open files: to ask the files themselves could wait for a dead server. */
static int note_open_files(struct afz_shm *shm, const struct afz_env *env, uint64_t pid)
{
        char path[80], target[4096];
        struct afz_dir dir;
        size_t n = strlen(shm->folder);
        snprintf(path, sizeof path, "%llu/fd", (unsigned long long)pid);
        int r = afz_dir_open(&dir, env, AFZ_ROOT_PROC, path);
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0) {
                snprintf(path, sizeof path, "%llu/fd/%.20s", (unsigned long long)pid, dir.name);
                if (afz_env_readlink(env, AFZ_ROOT_PROC, path, target, sizeof target) < 0 ||
                    strncmp(target, shm->folder, n) != 0 || target[n] != '/')
                        continue;
                for (size_t i = 0; i < shm->files; i++)
                        if (strcmp(shm->file[i].name, target + n + 1) == 0)
                                shm->file[i].held = true;
        }
        afz_dir_close(&dir);
        return r == -ENOENT ? -ESRCH : r;
}

/* Asks every process that lets us. */
static int note_holders(struct afz_shm *shm, const struct afz_env *env, bool *ret_all_asked)
{
        struct afz_dir dir;
        uint64_t pid;
        int r = afz_dir_open(&dir, env, AFZ_ROOT_PROC, ".");
        *ret_all_asked = true;
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0) {
                if (afz_dir_name_u64(&dir, &pid) < 0)
                        continue;
                int asked = each_mapping(shm, env, pid, note_held);
                if (asked >= 0)
                        asked = note_open_files(shm, env, pid);
                *ret_all_asked &= asked >= 0 || asked == -ESRCH;
        }
        afz_dir_close(&dir);
        return r;
}

int afz_shm_sweep(struct afz_shm *shm, const struct afz_env *env, struct afz_shm_swept *ret)
{
        struct afz_shm_swept swept = {0};
        struct stat st;
        bool any = false, all_asked = false;
        for (size_t i = 0; i < shm->files; i++) {
                shm->file[i].held = false;
                any |= shm->file[i].owner == JOB;
        }
        int r = any ? note_holders(shm, env, &all_asked) : 0;
        if (r < 0)
                return r;
        for (size_t i = 0; i < shm->files; i++) {
                const struct file *f = &shm->file[i];
                if (f->owner != JOB || f->held || !is_same(shm, f, &st))
                        continue;
                bool others_may = (st.st_mode & 077) != 0;
                if (others_may && !all_asked)
                        continue;
                if (unlinkat(shm->fd, f->name, 0) == 0) {
                        swept.files++;
                        swept.bytes += (uint64_t)st.st_blocks * 512;
                }
        }
        *ret = swept;
        return 0;
}
