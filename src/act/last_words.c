#include "last_words.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc_stat.h"

/* Room to pass the words on: some buffers, a stack for a thread's first call. */
#define MORE_BYTES (UINT64_C(8) << 20)

/* First looked at, then opened by what was looked at: nothing but a pipe can be meant. The pipe is
 * opened anew, so that our way of writing is not the process's. */
static int open_pipe(const struct afz_env *env, pid_t pid)
{
        char path[40];
        struct stat st;
        snprintf(path, sizeof path, "%d/fd/2", (int)pid);
        int look = afz_env_open(env, AFZ_ROOT_PROC, path, O_PATH);
        if (look < 0)
                return look;
        bool pipe = fstat(look, &st) == 0 && S_ISFIFO(st.st_mode);
        snprintf(path, sizeof path, "/proc/self/fd/%d", look);
        int fd = pipe ? open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;
        int r = !pipe ? -ENODATA : fd < 0 ? -errno : fd;
        close(look);
        return r;
}

int afz_last_words(const struct afz_env *env, pid_t pid, const char *text)
{
        size_t n = strlen(text);
        int fd = n <= PIPE_BUF ? open_pipe(env, pid) : -EMSGSIZE;
        if (fd < 0)
                return fd;
        int r = write(fd, text, n) == (ssize_t)n ? 0 : -errno;
        close(fd);
        return r;
}

int afz_refuse_more(const struct afz_env *env, pid_t pid)
{
        char path[32], buf[256];
        struct afz_span text;
        struct afz_proc_statm statm;
        struct rlimit limit;
        snprintf(path, sizeof path, "%d/statm", (int)pid);
        int r = afz_env_read_record(env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text);
        if (r >= 0)
                r = afz_proc_statm_parse(text, &statm);
        if (r < 0)
                return r;
        if (prlimit(pid, RLIMIT_AS, NULL, &limit) < 0)
                return -errno;
        rlim_t most = statm.size_pages * (uint64_t)env->page_bytes + MORE_BYTES;
        if (limit.rlim_cur <= most)
                return 0;
        limit.rlim_cur = most;
        return prlimit(pid, RLIMIT_AS, &limit, NULL) < 0 ? -errno : 0;
}
