#include "thread_look.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "count_of.h"
#include "dir.h"
#include "proc_stat.h"

static int read_file(const struct afz_env *env, pid_t pid, pid_t tid, const char *file, char *buf,
                     size_t cap, struct afz_span *ret)
{
        char path[64];
        int r = afz_path(path, sizeof path, "%d/task/%d/%s", (int)pid, (int)tid, file);
        return r < 0 ? r : afz_env_read_head(env, AFZ_ROOT_PROC, path, buf, cap, ret);
}

static bool take_word(struct afz_span *text, uint64_t *ret)
{
        return afz_span_take_prefix(text, " 0x") == 0 && afz_span_take_hex(text, ret) == 0;
}

void afz_thread_call_parse(struct afz_span text, struct afz_thread_look *ret)
{
        struct afz_thread_look got = *ret;
        ret->in_call = ret->placed = false;
        if (afz_span_take_i64(&text, &got.call) < 0)
                return;              /* "running" */
        got.in_call = got.call >= 0; /* -1: it stands, but in no call, and has no arguments */
        for (size_t i = 0; i < AFZ_SYSCALL_ARGS && got.in_call; i++)
                if (!take_word(&text, &got.arg[i]))
                        return;
        got.placed = take_word(&text, &got.sp) && take_word(&text, &got.pc);
        if (!got.placed)
                return;
        *ret = got;
}

static void take_wait(struct afz_span text, struct afz_thread_look *ret)
{
        struct afz_span word = afz_span_trim(text);
        if (!afz_span_eq(word, "0")) /* "0": it runs, or the kernel keeps its names to itself */
                afz_span_copy(word, ret->wait, sizeof ret->wait);
}

static void take_switches(struct afz_span text, struct afz_thread_look *ret)
{
        struct afz_span line;
        while (afz_span_take_line(&text, &line) == 0)
                if (afz_span_take_prefix(&line, "voluntary_ctxt_switches:") == 0)
                        ret->has_switches = afz_span_u64(afz_span_trim(line), &ret->switches) == 0;
}

static int look_at(const struct afz_env *env, pid_t pid, pid_t tid, struct afz_thread_look *ret)
{
        char buf[4096];
        struct afz_span text;
        struct afz_proc_stat stat;
        struct afz_thread_look look = {.tid = tid};
        int r = read_file(env, pid, tid, "stat", buf, sizeof buf, &text);
        if (r < 0 || (r = afz_proc_stat_parse(text, &stat)) < 0)
                return r;
        look.state = stat.state;
        if (read_file(env, pid, tid, "wchan", buf, sizeof buf, &text) == 0)
                take_wait(text, &look);
        if (read_file(env, pid, tid, "syscall", buf, sizeof buf, &text) == 0)
                afz_thread_call_parse(text, &look);
        if (read_file(env, pid, tid, "status", buf, sizeof buf, &text) == 0)
                take_switches(text, &look);
        *ret = look;
        return 0;
}

int afz_threads_look(const struct afz_env *env, pid_t pid, struct afz_thread_look *ret, size_t cap)
{
        struct afz_dir dir;
        char path[32];
        size_t n = 0;
        uint64_t tid;
        int r = afz_path(path, sizeof path, "%d/task", (int)pid);
        if (r >= 0)
                r = afz_dir_open(&dir, env, AFZ_ROOT_PROC, path);
        if (r < 0)
                return r == -ENOENT ? -ESRCH : r;
        while (n < cap && (r = afz_dir_next(&dir)) > 0)
                if (afz_dir_name_u64(&dir, &tid) == 0 && tid <= INT32_MAX &&
                    look_at(env, pid, (pid_t)tid, &ret[n]) == 0)
                        n++;
        afz_dir_close(&dir);
        return r < 0 && n == 0 ? r : (int)n;
}

/* Those that wait; arm64 lacks the older ones. */
static const struct {
        int64_t call;
        const char *name;
} calls[] = {
        {SYS_futex, "futex"},
        {SYS_read, "read"},
        {SYS_readv, "readv"},
        {SYS_write, "write"},
        {SYS_writev, "writev"},
        {SYS_ppoll, "ppoll"},
        {SYS_pselect6, "pselect6"},
        {SYS_epoll_pwait, "epoll_pwait"},
#ifdef SYS_poll
        {SYS_poll, "poll"},
        {SYS_select, "select"},
        {SYS_epoll_wait, "epoll_wait"},
        {SYS_pause, "pause"},
#endif
        {SYS_accept, "accept"},
        {SYS_accept4, "accept4"},
        {SYS_recvfrom, "recvfrom"},
        {SYS_recvmsg, "recvmsg"},
        {SYS_sendto, "sendto"},
        {SYS_sendmsg, "sendmsg"},
        {SYS_connect, "connect"},
        {SYS_nanosleep, "nanosleep"},
        {SYS_clock_nanosleep, "clock_nanosleep"},
        {SYS_rt_sigsuspend, "rt_sigsuspend"},
        {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
        {SYS_wait4, "wait4"},
        {SYS_waitid, "waitid"},
        {SYS_flock, "flock"},
        {SYS_fcntl, "fcntl"},
        {SYS_semop, "semop"},
        {SYS_semtimedop, "semtimedop"},
        {SYS_msgrcv, "msgrcv"},
        {SYS_ioctl, "ioctl"},
        {SYS_fsync, "fsync"},
};

const char *afz_call_name(int64_t call)
{
        for (size_t i = 0; i < AFZ_COUNT_OF(calls); i++)
                if (calls[i].call == call)
                        return calls[i].name;
        return NULL;
}
