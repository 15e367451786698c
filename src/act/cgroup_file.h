#ifndef AFZ_CGROUP_FILE_H
#define AFZ_CGROUP_FILE_H
/* Writing to the files of a cgroup that is held by its folder's descriptor, v1 and v2 alike. Not
 * for the tick, but for those that take the descriptor of a file that is open already.
 *
 * Nothing here follows a symbolic link, so that a planted one cannot lead a write elsewhere.
 */
#include <stdint.h>
#include <sys/types.h>

#include "span.h"

/* Opens a file or (O_DIRECTORY) a folder of the cgroup; the descriptor or -errno. */
int afz_cgroup_open(int dir_fd, const char *file, int flags);

/* One write() of the whole text. */
int afz_cgroup_write(int dir_fd, const char *file, const char *text);

/* Writes a number (UINT64_MAX: `none`, which is "max" on v2 and "-1" on v1) and reads it back. -EIO
 * when the kernel then says more than was asked for, or less by a page or more (it cuts limits down
 * to whole pages). */
int afz_cgroup_prove(int dir_fd, const char *file, uint64_t value, const char *none);

/* For the tick: the same on descriptors of files, always from their start. */
int afz_cgroup_rewrite(int fd, const char *text);
int afz_cgroup_set(int fd, uint64_t value, const char *none); /* proved; needs O_RDWR */
int afz_cgroup_reread(int fd, uint64_t *ret);                 /* as afz_cgroup_u64 */

/* The file's text; the span points into buf. */
int afz_cgroup_text(int dir_fd, const char *file, char *buf, size_t cap, struct afz_span *ret);

/* The number that is its first line; "max" is UINT64_MAX, "default N" is N. */
int afz_cgroup_u64(int dir_fd, const char *file, uint64_t *ret);

/* Moves a process with all its threads. -ESRCH: gone. */
int afz_cgroup_move(int dir_fd, pid_t pid);

/* Makes a folder and opens it. -EEXIST is an error: it is somebody else's. */
int afz_cgroup_make(int parent_fd, const char *name, int *ret_fd);

/* Removes it; retried for a moment, because a cgroup stays busy until its last process has given
 * back its memory. One that is gone already is fine. -EBUSY: somebody lives in it, or it has
 * children. Only below a folder that is our own. */
int afz_cgroup_remove(int parent_fd, const char *name);

#endif
