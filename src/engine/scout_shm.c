#include "scout_shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dir.h"
#include "map.h"

enum {
        /* Files that are remembered and looked at: at 1 us each, 4 ms in the worst case. Machines
         * have a few; a data loader that shares by file has some hundreds. */
        MAX_FILES = 4096,
};

struct afz_scout_shm {
        const struct afz_env *env;
        struct afz_map *before; /* inodes */
        bool began;
};

int afz_scout_shm_new(const struct afz_env *env, struct afz_scout_shm **ret)
{
        struct afz_scout_shm *shm = calloc(1, sizeof *shm);
        if (!shm)
                return -ENOMEM;
        shm->env = env;
        int r = afz_map_new(MAX_FILES, &shm->before);
        if (r < 0) {
                free(shm);
                return r;
        }
        *ret = shm;
        return 0;
}

void afz_scout_shm_free(struct afz_scout_shm *shm)
{
        if (!shm)
                return;
        afz_map_free(shm->before);
        free(shm);
}

/* Bytes of the files that are new; or, at the beginning, a note of those that are there. A new file
 * that got the inode of an old one is missed: tmpfs counts them upwards, so it takes long. */
static uint64_t look(struct afz_scout_shm *shm, bool begin)
{
        struct afz_dir dir;
        struct stat st;
        uint64_t bytes = 0, known;
        int files = 0;
        int r = afz_dir_open(&dir, shm->env, AFZ_ROOT_DEV, "shm");
        while (r >= 0 && files++ < MAX_FILES && (r = afz_dir_next(&dir)) > 0) {
                if (begin)
                        (void)afz_map_put(shm->before, dir.inode, 1);
                else if (!afz_map_get(shm->before, dir.inode, &known) &&
                         fstatat(dir.fd, dir.name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                         S_ISREG(st.st_mode) && st.st_uid == getuid())
                        bytes += (uint64_t)st.st_blocks * 512;
        }
        afz_dir_close(&dir);
        return bytes;
}

void afz_scout_shm_begin(struct afz_scout_shm *shm)
{
        afz_map_clear(shm->before);
        (void)look(shm, true);
        shm->began = true;
}

void afz_scout_shm_take(struct afz_scout_shm *shm, struct afz_scout_report *report)
{
        if (!shm->began || !report->shm.known)
                return;
        uint64_t bytes = look(shm, false), used = report->shm.size_bytes - report->shm.free_bytes;
        bytes = bytes < used ? bytes : used;
        if (bytes > report->shm.job_bytes)
                report->shm.job_bytes = bytes;
}
