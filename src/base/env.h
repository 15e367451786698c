#ifndef AFZ_ENV_H
#define AFZ_ENV_H
/* Where the senses look: the roots of /proc, /sys, the cgroup file systems and /dev, the clock, and
 * the few questions that no file answers. Everything below is injected, so that a sense runs the
 * same on this machine, on a recorded tree (a "fixture"), and in a test that moves time by hand.
 *
 * An env is plain data owned by whoever opened it; senses borrow it for as long as they are open.
 * All paths are relative to a root and have no leading slash.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "span.h"

enum afz_root { AFZ_ROOT_PROC, AFZ_ROOT_SYS, AFZ_ROOT_CGROUP, AFZ_ROOT_DEV, AFZ_ROOT_COUNT };

/* What a path was opened as. A place is a folder that is only looked up (O_PATH), not listed. */
enum afz_open_kind { AFZ_OPEN_FILE, AFZ_OPEN_DIR, AFZ_OPEN_PLACE, AFZ_OPEN_LINK };

/* The folder that holds a root inside a fixture: "proc", "sys", "cgroup", "dev". */
extern const char *const afz_root_name[AFZ_ROOT_COUNT];

struct afz_fs_space {
        uint64_t total_bytes, free_bytes, available_bytes, files, files_free;
};

struct afz_env {
        int root_fd[AFZ_ROOT_COUNT]; /* -1: this root is not there */
        int fixture_fd;              /* the fixture's own folder, or -1 on a live machine */
        uint64_t (*now_ns)(void *ctx);
        /* statvfs() of a mount point of the live machine, or what the fixture recorded of it. May
         * be asked of local file systems only: on a dead network mount the kernel never answers. */
        int (*fs_space)(const struct afz_env *env, const char *mount_point,
                        struct afz_fs_space *ret);
        /* Told of every path that is opened, found or not (`err` is 0 or -errno): `capture` records
         * exactly what the senses read. NULL: nobody listens. */
        void (*on_open)(void *ctx, enum afz_root root, enum afz_open_kind kind, const char *path,
                        int err);
        void *ctx;
        long page_bytes, clock_ticks; /* of the machine that the trees come from */
        uint64_t self_pid;            /* our own pid there */
};

/* The machine we run on. */
int afz_env_open_live(struct afz_env *ret);

/* A recorded tree: DIR/proc, DIR/sys, DIR/cgroup, DIR/dev, DIR/fs_space, DIR/machine and
 * DIR/not-read, any of which may be missing. A path that is not in the tree and of which
 * DIR/not-read has the line "EACCES proc/1/io" or "EPERM ..." fails with that error, as it did
 * there. The clock is the live one; a test replaces it. */
int afz_env_open_fixture(const char *dir, struct afz_env *ret);

void afz_env_done(struct afz_env *env);

static inline uint64_t afz_env_now(const struct afz_env *env)
{
        return env->now_ns(env->ctx);
}

/* Opens for reading, close-on-exec. Returns the descriptor or -errno; -ENODATA where the root is
 * missing. Extra flags such as O_DIRECTORY or O_NONBLOCK may be given. */
int afz_env_open(const struct afz_env *env, enum afz_root root, const char *path, int flags);

/* Reads an open file from its start to its end; the kernel's files are made anew at each such read.
 * Returns the bytes read; -EOVERFLOW when cap is too small (a cut file is never taken for a whole
 * one); -ESRCH when the process behind it is gone. */
ssize_t afz_fd_read(int fd, char *buf, size_t cap);

/* The same in one system call, for files that the kernel makes in one piece (most of /proc/PID,
 * meminfo, PSI, cgroup and sysfs files; not vmstat, diskstats, mountinfo or net/dev, which come a
 * page at a time). */
ssize_t afz_fd_read_record(int fd, char *buf, size_t cap);

/* The same for the files that come a page at a time, where no line is longer than `longest`: a read
 * that leaves more than that of a page unused was the last, and need not be asked again only to
 * hear so (for vmstat the kernel would add everything up a second time). */
ssize_t afz_fd_read_lines(int fd, char *buf, size_t cap, size_t longest);

/* What one read gives, at most the first cap bytes, for texts that may be cut (a command line). */
ssize_t afz_fd_read_head(int fd, char *buf, size_t cap);

/* Open, afz_fd_read, _read_record or _read_head, close. On success ret spans the bytes in buf. */
int afz_env_read(const struct afz_env *env, enum afz_root root, const char *path, char *buf,
                 size_t cap, struct afz_span *ret);
int afz_env_read_record(const struct afz_env *env, enum afz_root root, const char *path, char *buf,
                        size_t cap, struct afz_span *ret);
int afz_env_read_head(const struct afz_env *env, enum afz_root root, const char *path, char *buf,
                      size_t cap, struct afz_span *ret);

/* A file that holds one line with one number. "max" is UINT64_MAX. */
int afz_env_read_u64(const struct afz_env *env, enum afz_root root, const char *path,
                     uint64_t *ret);

/* The target of a symbolic link, NUL-terminated; returns its length. A target cut short by cap is
 * -ENAMETOOLONG. */
ssize_t afz_env_readlink(const struct afz_env *env, enum afz_root root, const char *path, char *buf,
                         size_t cap);

/* snprintf for paths: -ENAMETOOLONG instead of a path cut short. */
int afz_path(char *buf, size_t cap, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
