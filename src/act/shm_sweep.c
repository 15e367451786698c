#include "shm_sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "dir.h"
#include "shm_files.h"

static const struct {
        unsigned depth;          /* folders below folders that are listed */
        int open_files;          /* of a member; where it has more, its mappings still tell */
        uint64_t grown_bytes;    /* of the file system between looks: the next one is due */
        uint64_t nameless_bytes; /* in no file that is listed: somebody holds files without name */
        uint64_t data_bytes;     /* a written file of less may be a log: not worth a doubt */
} rule = {
        .depth = 3,
        .open_files = 4096, /* 12 ms */
        .grown_bytes = UINT64_C(8) << 20,
        .nameless_bytes = UINT64_C(1) << 20,
        .data_bytes = UINT64_C(16) << 20,
};

struct afz_shm_file *afz_shm_find(struct afz_shm *shm, uint64_t inode)
{
        uint64_t at;
        return afz_map_get(shm->at, inode, &at) ? &shm->file[at] : NULL;
}

static struct afz_shm_file *add(struct afz_shm *shm, uint64_t inode)
{
        if (shm->files == AFZ_SHM_FILES || afz_map_put(shm->at, inode, shm->files) < 0)
                return NULL;
        struct afz_shm_file *f = &shm->file[shm->files++];
        *f = (struct afz_shm_file){.inode = inode};
        return f;
}

static bool is_candidate(const struct stat *st, const char *name)
{
        return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1 &&
               !strchr(name, '/') && strncmp(name, "sem.", 4) != 0;
}

static void list_file(struct afz_shm *shm, const struct stat *st, const char *name,
                      enum afz_shm_owner if_new)
{
        struct afz_shm_file *f = afz_shm_find(shm, st->st_ino);
        if (!f) {
                f = add(shm, st->st_ino);
                if (!f) {
                        shm->full = true;
                        return;
                }
                f->owner = shm->full ? AFZ_SHM_STRANGER : if_new;
                snprintf(f->name, sizeof f->name, "%s", name);
        } else if (f->named || strcmp(f->name, name) != 0) {
                /* renamed, linked, or another file with a dead one's number: not certain */
                f->owner = AFZ_SHM_STRANGER;
                snprintf(f->name, sizeof f->name, "%s", name);
        }
        uint64_t bytes = (uint64_t)st->st_blocks * 512;
        f->named = true;
        f->grew = bytes > f->bytes;
        f->bytes = bytes;
        if (f->owner == AFZ_SHM_STRANGER && !f->counts)
                f->base_bytes = bytes;
}

/* `fd` is closed. */
static int list_folder(struct afz_shm *shm, int fd, const char *path, unsigned depth,
                       enum afz_shm_owner if_new)
{
        char name[AFZ_SHM_NAME];
        struct stat st;
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        if (!dir) {
                int r = -errno;
                if (fd >= 0)
                        close(fd);
                return r;
        }
        for (const struct dirent *e; (e = readdir(dir));) {
                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
                    afz_path(name, sizeof name, "%s%s", path, e->d_name) < 0 ||
                    fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    st.st_dev != shm->device)
                        continue;
                if (S_ISREG(st.st_mode))
                        list_file(shm, &st, name, if_new);
                else if (S_ISDIR(st.st_mode) && depth > 0 &&
                         afz_path(name, sizeof name, "%s%s/", path, e->d_name) >= 0)
                        (void)list_folder(shm,
                                          openat(fd, e->d_name,
                                                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                                          name, depth - 1, if_new);
        }
        closedir(dir);
        return 0;
}

/* What has lost its name stays while a member holds it; then it is gone, and its number may come
 * again. */
static void drop_gone(struct afz_shm *shm)
{
        size_t kept = 0;
        afz_map_clear(shm->at);
        for (size_t i = 0; i < shm->files; i++) {
                struct afz_shm_file *f = &shm->file[i];
                if (!f->named && !f->held)
                        continue;
                if (!f->named) {
                        f->owner = AFZ_SHM_STRANGER;
                        f->name[0] = '\0';
                }
                f->held = f->mapped = false;
                (void)afz_map_put(shm->at, f->inode, kept);
                if (kept != i)
                        shm->file[kept] = *f;
                kept++;
        }
        shm->files = kept;
}

static uint64_t used_bytes(const struct afz_shm *shm)
{
        struct statvfs fs;
        return fstatvfs(shm->fd, &fs) == 0 ? (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize : 0;
}

static int list(struct afz_shm *shm, enum afz_shm_owner if_new)
{
        for (size_t i = 0; i < shm->files; i++)
                shm->file[i].named = shm->file[i].grew = false;
        shm->used_bytes = used_bytes(shm);
        int r = list_folder(shm, openat(shm->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "",
                            rule.depth, if_new);
        if (r >= 0)
                drop_gone(shm);
        return r;
}

int afz_shm_new(const char *folder, struct afz_shm **ret)
{
        struct stat st;
        struct afz_shm *shm = calloc(1, sizeof *shm);
        if (!shm)
                return -ENOMEM;
        int r = afz_map_new(AFZ_SHM_FILES, &shm->at);
        shm->fd = r >= 0 && realpath(folder, shm->folder)
                          ? open(shm->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                          : -1;
        if (r >= 0 && (shm->fd < 0 || fstat(shm->fd, &st) < 0))
                r = -ENODATA;
        if (r >= 0) {
                shm->device = st.st_dev;
                r = list(shm, AFZ_SHM_STRANGER);
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
        afz_map_free(shm->at);
        free(shm);
}

bool afz_shm_has_grown(const struct afz_shm *shm)
{
        return used_bytes(shm) > shm->used_bytes + rule.grown_bytes;
}

int afz_shm_look(struct afz_shm *shm)
{
        uint64_t listed = 0;
        bool ask = false;
        int r = list(shm, AFZ_SHM_NOBODY);
        shm->mapped_bytes = 0;
        for (size_t i = 0; r >= 0 && i < shm->files; i++) {
                const struct afz_shm_file *f = &shm->file[i];
                listed += f->named ? f->bytes : 0;
                ask |= f->counts || f->grew || f->owner == AFZ_SHM_NOBODY;
        }
        return r < 0 ? r : ask || shm->used_bytes > listed + rule.nameless_bytes;
}

static void note(struct afz_shm *shm, const struct afz_shm_grip *grip)
{
        struct afz_shm_file *f = afz_shm_find(shm, grip->inode);
        if (!f && grip->nameless && grip->writes) {
                f = add(shm, grip->inode);
                if (f)
                        f->owner = AFZ_SHM_STRANGER;
        }
        if (!f)
                return;
        if (!f->named && grip->bytes > 0)
                f->bytes = grip->bytes;
        f->held = true;
        f->mapped |= grip->maps;
        if (grip->writes) {
                if (f->owner == AFZ_SHM_NOBODY)
                        f->owner = AFZ_SHM_JOB;
                f->counts = true;
                f->segment |= grip->maps;
        }
        shm->maps |= f->counts && grip->maps;
}

int afz_shm_note(struct afz_shm *shm, const struct afz_env *env, pid_t pid)
{
        shm->maps = false;
        int r = afz_shm_each_open(shm, env, (uint64_t)pid, rule.open_files, note);
        if (r >= 0 || r == -E2BIG)
                r = afz_shm_each_mapping(shm, env, (uint64_t)pid, note);
        if (shm->maps)
                shm->mapped_bytes += afz_shm_resident(env, (uint64_t)pid);
        return r;
}

void afz_shm_settle(struct afz_shm *shm, uint64_t now_ns)
{
        for (size_t i = 0; i < shm->files; i++) {
                struct afz_shm_file *f = &shm->file[i];
                if (f->born_ns == 0)
                        f->born_ns = now_ns;
                if (f->owner == AFZ_SHM_NOBODY) {
                        f->owner = AFZ_SHM_STRANGER;
                        f->base_bytes = f->bytes;
                }
                if (f->held)
                        f->closed_ns = 0;
                else if (f->closed_ns == 0)
                        f->closed_ns = now_ns;
        }
}

struct afz_shm_held afz_shm_held(const struct afz_shm *shm)
{
        uint64_t mapped = 0, unmapped = 0;
        for (size_t i = 0; i < shm->files; i++) {
                const struct afz_shm_file *f = &shm->file[i];
                if (!f->counts || f->bytes <= f->base_bytes)
                        continue;
                *(f->mapped ? &mapped : &unmapped) += f->bytes - f->base_bytes;
        }
        /* Pages that several members have are taken off once too often: no page counts twice. */
        uint64_t more = mapped > shm->mapped_bytes ? mapped - shm->mapped_bytes : 0;
        return (struct afz_shm_held){.bytes = mapped + unmapped, .unmapped_bytes = unmapped + more};
}

static void note_holder(struct afz_shm *shm, const struct afz_shm_grip *grip)
{
        struct afz_shm_file *f = afz_shm_find(shm, grip->inode);
        if (f)
                f->held = true;
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
                int asked = afz_shm_each_mapping(shm, env, pid, note_holder);
                if (asked >= 0)
                        asked = afz_shm_each_open(shm, env, pid, INT_MAX, note_holder);
                *ret_all_asked &= asked >= 0 || asked == -ESRCH;
        }
        afz_dir_close(&dir);
        return r;
}

static bool is_left_over(const struct afz_shm_file *f, const struct afz_shm_end *end)
{
        if (f->owner != AFZ_SHM_JOB)
                return false;
        return f->segment || (f->bytes >= rule.data_bytes && f->born_ns <= end->asked_ns &&
                              (f->closed_ns == 0 || f->closed_ns >= end->closed_ns));
}

/* Still the file that we know, and as it must be. */
static bool is_same(const struct afz_shm *shm, const struct afz_shm_file *f, struct stat *ret)
{
        return fstatat(shm->fd, f->name, ret, AT_SYMLINK_NOFOLLOW) == 0 &&
               ret->st_dev == shm->device && ret->st_ino == f->inode && is_candidate(ret, f->name);
}

int afz_shm_sweep(struct afz_shm *shm, const struct afz_env *env, const struct afz_shm_end *end,
                  struct afz_shm_swept *ret)
{
        struct afz_shm_swept swept = {0};
        struct stat st;
        bool any = false, all_asked = false;
        for (size_t i = 0; i < shm->files; i++) {
                struct afz_shm_file *f = &shm->file[i];
                f->held = false;
                if (f->owner == AFZ_SHM_JOB && is_same(shm, f, &st))
                        f->bytes = (uint64_t)st.st_blocks * 512;
                any |= is_left_over(f, end);
        }
        int r = any ? note_holders(shm, env, &all_asked) : 0;
        if (r < 0)
                return r;
        for (size_t i = 0; i < shm->files; i++) {
                const struct afz_shm_file *f = &shm->file[i];
                if (!is_left_over(f, end) || f->held || !is_same(shm, f, &st))
                        continue;
                bool others_write = (st.st_mode & S_IWOTH) != 0;
                if (others_write && !all_asked)
                        continue;
                if (unlinkat(shm->fd, f->name, 0) == 0) {
                        swept.files++;
                        swept.bytes += (uint64_t)st.st_blocks * 512;
                }
        }
        *ret = swept;
        return 0;
}
