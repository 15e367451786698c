/* Who holds files in /dev/shm: the maps and the open files of a process. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "dir.h"
#include "shm_files.h"

/* "START-END rw-s OFFSET 00:19 INODE /dev/shm/NAME": a mapping of a file on our file system. */
static bool take_mapping(struct afz_span line, dev_t device, struct afz_shm_grip *ret)
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
        *ret = (struct afz_shm_grip){
                .inode = inode,
                .writes = afz_span_starts(mode, "rw") && afz_span_ends(mode, "s"),
                .maps = true,
                .nameless = afz_span_ends(afz_span_trim(line), " (deleted)"),
        };
        return true;
}

int afz_shm_each_mapping(struct afz_shm *shm, const struct afz_env *env, uint64_t pid,
                         afz_shm_each each)
{
        char path[48], line[8192];
        struct afz_shm_grip grip;
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
        while (fgets(line, sizeof line, maps))
                if (take_mapping(afz_span_str(line), shm->device, &grip))
                        each(shm, &grip);
        int r = ferror(maps) ? -(errno ? errno : EIO) : 0;
        fclose(maps);
        return r;
}

/* The link's own mode tells how it was opened. Only what is in our folder by its name is asked for
 * itself: any other file could wait for a dead server. */
static bool take_open(const struct afz_shm *shm, const struct afz_env *env, const char *path,
                      struct afz_shm_grip *ret)
{
        char target[PATH_MAX];
        struct stat link, st;
        size_t n = strlen(shm->folder);
        int proc = env->root_fd[AFZ_ROOT_PROC];
        if (afz_env_readlink(env, AFZ_ROOT_PROC, path, target, sizeof target) < 0 ||
            strncmp(target, shm->folder, n) != 0 || target[n] != '/' ||
            fstatat(proc, path, &link, AT_SYMLINK_NOFOLLOW) < 0 || fstatat(proc, path, &st, 0) < 0)
                return false;
        if (st.st_dev != shm->device || !S_ISREG(st.st_mode))
                return false;
        *ret = (struct afz_shm_grip){
                .inode = st.st_ino,
                .bytes = (uint64_t)st.st_blocks * 512,
                .writes = (link.st_mode & S_IWUSR) != 0,
                .nameless = st.st_nlink == 0,
        };
        return true;
}

int afz_shm_each_open(struct afz_shm *shm, const struct afz_env *env, uint64_t pid, int most,
                      afz_shm_each each)
{
        char path[80];
        struct afz_shm_grip grip;
        struct afz_dir dir;
        int n = 0;
        snprintf(path, sizeof path, "%llu/fd", (unsigned long long)pid);
        int r = afz_dir_open(&dir, env, AFZ_ROOT_PROC, path);
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0) {
                if (n++ == most) {
                        r = -E2BIG;
                        break;
                }
                snprintf(path, sizeof path, "%llu/fd/%.20s", (unsigned long long)pid, dir.name);
                if (take_open(shm, env, path, &grip))
                        each(shm, &grip);
        }
        afz_dir_close(&dir);
        return r == -ENOENT ? -ESRCH : r;
}

uint64_t afz_shm_resident(const struct afz_env *env, uint64_t pid)
{
        char path[48], buf[4096];
        struct afz_span text, line;
        uint64_t kib = 0;
        snprintf(path, sizeof path, "%llu/status", (unsigned long long)pid);
        if (afz_env_read_record(env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) < 0)
                return 0;
        while (afz_span_take_line(&text, &line) == 0)
                if (afz_span_take_prefix(&line, "RssShmem:") == 0)
                        return afz_span_take_u64(&line, &kib) == 0 ? kib * 1024 : 0;
        return 0;
}
