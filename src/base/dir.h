#ifndef AFZ_DIR_H
#define AFZ_DIR_H
/* Lists a folder without allocating: getdents64() into a buffer inside the struct. opendir() takes
 * 32 KiB from the heap at each call, and the tick may take none.
 *
 *      struct afz_dir dir;
 *      int r = afz_dir_open(&dir, env, AFZ_ROOT_SYS, "block");
 *      while (r >= 0 && (r = afz_dir_next(&dir)) > 0)
 *              use(dir.name);
 *      afz_dir_close(&dir);       (also after a failed open)
 */
#include <stddef.h>
#include <stdint.h>

#include "env.h"

struct afz_dir {
        const char *name; /* the entry that _next found; valid until the next call */
        uint64_t inode;
        int fd;
        size_t at, have;
        _Alignas(8) char buf[8192];
};

int afz_dir_open(struct afz_dir *ret, const struct afz_env *env, enum afz_root root,
                 const char *path);

/* Lists from the start again, for a folder that is kept open. */
int afz_dir_rewind(struct afz_dir *dir);

/* 1 and the next entry ("." and ".." left out), 0 at the end, else -errno. */
int afz_dir_next(struct afz_dir *dir);

/* The entry's name as a number, for the pids of /proc; -EINVAL when it is no number. */
int afz_dir_name_u64(const struct afz_dir *dir, uint64_t *ret);

void afz_dir_close(struct afz_dir *dir);

#endif
