#include "stop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "count_of.h"
#include "dir.h"
#include "pidfd.h"
#include "proc_read.h"

/* More than a pipeline has. */
enum { MAX_CHILDREN = 64 };

/* Programs that run other programs and wait for them. "env", "nice" or "nohup" become the program.
 */
static const char *const shells[] = {"sh",  "bash", "dash", "zsh",  "fish",  "ksh", "mksh",
                                     "ash", "tcsh", "csh",  "yash", "rbash", "time"};

static bool is_shell_name(struct afz_span name)
{
        for (size_t i = 0; i < AFZ_COUNT_OF(shells); i++)
                if (afz_span_eq(name, shells[i]))
                        return true;
        return false;
}

bool afz_stop_is_shell(const struct afz_env *env, pid_t pid)
{
        char path[40], target[4096], buf[AFZ_PROC_STAT_CAP];
        struct afz_proc_stat st;
        snprintf(path, sizeof path, "%d/exe", (int)pid);
        ssize_t n = afz_env_readlink(env, AFZ_ROOT_PROC, path, target, sizeof target);
        if (n > 0) {
                struct afz_span name = {target, (size_t)n};
                if (afz_span_ends(name, " (deleted)")) /* upgraded while it runs */
                        name.n -= strlen(" (deleted)");
                name = afz_span_base_name(name);
                if (is_shell_name(name))
                        return true;
                /* One file may be many programs. */
                if (!afz_span_eq(name, "busybox") && !afz_span_eq(name, "toybox"))
                        return false;
        }
        return afz_proc_stat_read(env, (uint64_t)pid, buf, &st) == 0 && is_shell_name(st.comm);
}

/* A descriptor of the process that has this start; 0: whichever has the number now. */
static int open_checked(const struct afz_env *env, uint64_t pid, uint64_t start_ticks)
{
        return start_ticks == 0 ? afz_pidfd_open((pid_t)pid) : afz_proc_open(env, pid, start_ticks);
}

/* Direct children, as descriptors; returns how many. */
static size_t open_children(const struct afz_env *env, uint64_t parent, int *ret, size_t cap)
{
        struct afz_dir dir;
        size_t n = 0;
        int r = afz_dir_open(&dir, env, AFZ_ROOT_PROC, ".");
        while (r >= 0 && n < cap && (r = afz_dir_next(&dir)) > 0) {
                char buf[AFZ_PROC_STAT_CAP];
                struct afz_proc_stat st;
                uint64_t pid;
                if (afz_dir_name_u64(&dir, &pid) < 0 ||
                    afz_proc_stat_read(env, pid, buf, &st) < 0 || st.ppid != parent)
                        continue;
                int fd = open_checked(env, pid, st.start_ticks);
                if (fd >= 0)
                        ret[n++] = fd;
        }
        afz_dir_close(&dir);
        return n;
}

static int tell(const struct afz_env *env, pid_t pid, int pidfd, uint64_t start_ticks, int signal,
                bool spare_shell)
{
        int child[MAX_CHILDREN], told = 0;
        int fd = pidfd >= 0 ? pidfd : open_checked(env, (uint64_t)pid, start_ticks);
        if (fd < 0)
                return fd;
        /* Found before the signal, after which they may be somebody else's children; told after the
         * shell, which would else see its command die and go on to the next. */
        size_t n = afz_stop_is_shell(env, pid)
                           ? open_children(env, (uint64_t)pid, child, MAX_CHILDREN)
                           : 0;
        int r = afz_pidfd_signal(fd, spare_shell && n > 0 ? 0 : signal);
        for (size_t i = 0; i < n; i++) {
                told += r == 0 && afz_pidfd_signal(child[i], signal) == 0;
                close(child[i]);
        }
        if (pidfd < 0)
                close(fd);
        return r < 0 ? r : 1 + told;
}

int afz_stop_signal(const struct afz_env *env, pid_t pid, int pidfd, uint64_t start_ticks,
                    int signal)
{
        return tell(env, pid, pidfd, start_ticks, signal, false);
}

int afz_stop_ask(const struct afz_env *env, pid_t pid, int pidfd, int signal)
{
        return tell(env, pid, pidfd, 0, signal, true);
}
