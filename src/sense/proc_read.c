#include "proc_read.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "pidfd.h"

int afz_proc_stat_read(const struct afz_env *env, uint64_t pid, char buf[AFZ_PROC_STAT_CAP],
                       struct afz_proc_stat *ret)
{
        char path[40];
        struct afz_span text;
        snprintf(path, sizeof path, "%llu/stat", (unsigned long long)pid);
        int r = afz_env_read_record(env, AFZ_ROOT_PROC, path, buf, AFZ_PROC_STAT_CAP, &text);
        if (r < 0)
                return r == -ENOENT ? -ESRCH : r;
        return afz_proc_stat_parse(text, ret);
}

int afz_proc_stat_check(const struct afz_env *env, uint64_t pid, uint64_t start_ticks,
                        char buf[AFZ_PROC_STAT_CAP], struct afz_proc_stat *ret)
{
        struct afz_proc_stat st;
        int r = afz_proc_stat_read(env, pid, buf, &st);
        if (r < 0)
                return r;
        if (st.start_ticks != start_ticks)
                return -ESRCH;
        *ret = st;
        return 0;
}

int afz_proc_open(const struct afz_env *env, uint64_t pid, uint64_t start_ticks)
{
        char buf[AFZ_PROC_STAT_CAP];
        struct afz_proc_stat st;
        int fd = afz_pidfd_open((pid_t)pid);
        if (fd < 0)
                return fd;
        int r = afz_proc_stat_check(env, pid, start_ticks, buf, &st);
        if (r == 0)
                return fd;
        close(fd);
        return r;
}
