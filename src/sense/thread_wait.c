#include "thread_wait.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "count_of.h"
#include "dir.h"
#include "proc_memory.h"

/* ---- the job's own pipes ---- */

/* Descriptors of one process that are looked at, at 2 us each: a job of 64 processes takes half a
 * second so. */
enum { MOST_FDS = 4096 };

static bool take_inode(const char *link, const char *kind, uint64_t *ret)
{
        struct afz_span s = afz_span_str(link);
        return afz_span_take_prefix(&s, kind) == 0 && afz_span_take_prefix(&s, ":[") == 0 &&
               afz_span_take_u64(&s, ret) == 0;
}

static size_t find_pipe(const struct afz_job_pipes *pipes, uint64_t inode)
{
        size_t i = 0;
        while (i < pipes->count && pipes->pipe[i].inode != inode)
                i++;
        return i;
}

void afz_job_pipes_add(const struct afz_env *env, pid_t pid, struct afz_job_pipes *pipes)
{
        struct afz_dir dir;
        char path[48], link[64];
        uint64_t inode;
        if (afz_path(path, sizeof path, "%d/fd", (int)pid) < 0 ||
            afz_dir_open(&dir, env, AFZ_ROOT_PROC, path) < 0)
                return;
        for (unsigned seen = 0; seen < MOST_FDS && afz_dir_next(&dir) > 0; seen++) {
                struct stat st;
                ssize_t n = readlinkat(dir.fd, dir.name, link, sizeof link - 1);
                if (n <= 0)
                        continue;
                link[n] = '\0';
                /* The link's own mode says how it was opened. */
                if (!take_inode(link, "pipe", &inode) ||
                    fstatat(dir.fd, dir.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                size_t i = find_pipe(pipes, inode);
                if (i == AFZ_COUNT_OF(pipes->pipe))
                        continue;
                if (i == pipes->count) {
                        pipes->pipe[i].inode = inode;
                        pipes->pipe[i].reads = pipes->pipe[i].writes = false;
                        pipes->count++;
                }
                pipes->pipe[i].reads |= (st.st_mode & S_IRUSR) != 0;
                pipes->pipe[i].writes |= (st.st_mode & S_IWUSR) != 0;
        }
        afz_dir_close(&dir);
}

/* ---- what a descriptor is ---- */

/* What says more stands later: one socket among pipes makes it a wait for sockets. */
enum thing { NOTHING, OWN, CHILD, TIMER, OTHER, ALIEN, TERMINAL, SOCKET };

static const char *const thing_words[] = {
        [OWN] = " of its own pipes",        [CHILD] = " of a child",
        [OTHER] = " of a device or a file", [ALIEN] = " of a pipe from outside",
        [TERMINAL] = " of a terminal",      [SOCKET] = " of a socket",
};

static enum thing pipe_thing(const struct afz_job_pipes *pipes, uint64_t inode, bool writes)
{
        size_t i = find_pipe(pipes, inode);
        if (i == pipes->count)
                return ALIEN;
        return (writes ? pipes->pipe[i].reads : pipes->pipe[i].writes) ? OWN : ALIEN;
}

static enum thing thing_of(const struct afz_env *env, pid_t pid, int fd, bool writes,
                           const struct afz_job_pipes *pipes)
{
        static const struct {
                const char *start;
                enum thing is;
        } rows[] = {
                {"socket:", SOCKET},
                {"anon_inode:[eventfd]", OWN},
                {"anon_inode:[timerfd]", TIMER},
                {"anon_inode:[pidfd]", CHILD},
                {"/dev/pts/", TERMINAL},
                {"/dev/tty", TERMINAL},
        };
        char path[48], link[256];
        uint64_t inode;
        if (afz_path(path, sizeof path, "%d/fd/%d", (int)pid, fd) < 0 ||
            afz_env_readlink(env, AFZ_ROOT_PROC, path, link, sizeof link) < 0)
                return OTHER;
        if (take_inode(link, "pipe", &inode))
                return pipe_thing(pipes, inode, writes);
        for (size_t i = 0; i < AFZ_COUNT_OF(rows); i++)
                if (strncmp(link, rows[i].start, strlen(rows[i].start)) == 0)
                        return rows[i].is;
        return OTHER;
}

/* ---- what a call waits for ---- */

struct asked {
        const struct afz_env *env;
        pid_t pid;
        const struct afz_job_pipes *pipes;
        enum thing most;
};

static void ask(struct asked *a, int fd, bool writes)
{
        enum thing is = thing_of(a->env, a->pid, fd, writes, a->pipes);
        a->most = is > a->most ? is : a->most;
}

static void ask_poll(struct asked *a, uint64_t at, uint64_t n)
{
        struct pollfd list[128];
        if (n > AFZ_COUNT_OF(list) ||
            afz_proc_memory_read(a->pid, at, list, (size_t)n * sizeof *list) < 0) {
                a->most = OTHER;
                return;
        }
        for (size_t i = 0; i < n; i++)
                if (list[i].fd >= 0)
                        ask(a, list[i].fd, !(list[i].events & POLLIN));
}

static void ask_epoll(struct asked *a, int fd)
{
        char path[48], buf[8192];
        struct afz_span text, line;
        uint64_t target, events;
        if (afz_path(path, sizeof path, "%d/fdinfo/%d", (int)a->pid, fd) < 0 ||
            afz_env_read(a->env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) < 0) {
                a->most = OTHER;
                return;
        }
        while (afz_span_take_line(&text, &line) == 0)
                if (afz_span_take_prefix(&line, "tfd:") == 0 &&
                    afz_span_take_u64(&line, &target) == 0 && target < INT32_MAX) {
                        line = afz_span_trim(line);
                        bool known = afz_span_take_prefix(&line, "events:") == 0;
                        line = afz_span_trim(line);
                        known = known && afz_span_take_hex(&line, &events) == 0;
                        ask(a, (int)target, known && !(events & EPOLLIN));
                }
}

static void ask_select(struct asked *a, uint64_t n, uint64_t at, bool writes)
{
        uint64_t bits[1024 / 64];
        if (at == 0)
                return;
        if (n > 1024 || afz_proc_memory_read(a->pid, at, bits, (size_t)(n + 63) / 64 * 8) < 0) {
                a->most = OTHER;
                return;
        }
        for (size_t i = 0; i < n; i++)
                if (bits[i / 64] >> i % 64 & 1)
                        ask(a, (int)i, writes);
}

static enum thing waits_for(const struct afz_env *env, pid_t pid,
                            const struct afz_thread_look *look, const struct afz_job_pipes *pipes)
{
        struct asked a = {env, pid, pipes, NOTHING};
        switch (look->in_call ? look->call : -1) {
        case SYS_read:
        case SYS_readv:
                ask(&a, (int)look->arg[0], false);
                break;
        case SYS_write:
        case SYS_writev:
                ask(&a, (int)look->arg[0], true);
                break;
#ifdef SYS_poll
        case SYS_poll:
#endif
        case SYS_ppoll:
                ask_poll(&a, look->arg[0], look->arg[1]);
                break;
#ifdef SYS_epoll_wait
        case SYS_epoll_wait:
#endif
        case SYS_epoll_pwait:
                ask_epoll(&a, (int)look->arg[0]);
                break;
#ifdef SYS_select
        case SYS_select:
#endif
        case SYS_pselect6:
                ask_select(&a, look->arg[0], look->arg[1], false);
                ask_select(&a, look->arg[0], look->arg[2], true);
                break;
        default:
                break;
        }
        return a.most;
}

/* ---- until when ---- */

bool afz_thread_has_deadline(const struct afz_thread_look *look)
{
        switch (look->in_call ? look->call : -1) {
        case SYS_futex:
                return look->arg[3] != 0;
#ifdef SYS_poll
        case SYS_poll:
                return (int32_t)look->arg[2] >= 0;
        case SYS_epoll_wait:
                return (int32_t)look->arg[3] >= 0;
        case SYS_select:
                return look->arg[4] != 0;
#endif
        case SYS_ppoll:
                return look->arg[2] != 0;
        case SYS_pselect6:
                return look->arg[4] != 0;
        case SYS_epoll_pwait:
                return (int32_t)look->arg[3] >= 0;
        case SYS_nanosleep:
        case SYS_clock_nanosleep:
                return true;
        case SYS_semtimedop:
                return look->arg[3] != 0;
        case SYS_rt_sigtimedwait:
                return look->arg[2] != 0;
        default:
                return false;
        }
}

void afz_thread_wait_line(const struct afz_env *env, pid_t pid, const struct afz_thread_look *look,
                          const struct afz_job_pipes *pipes, char *buf, size_t cap)
{
        const char *call = look->in_call ? afz_call_name(look->call) : NULL;
        const char *where = look->wait[0] ? look->wait : call ? call : "";
        enum thing thing = where[0] ? waits_for(env, pid, look, pipes) : NOTHING;
        if (thing == OTHER && strstr(where, "pipe_")) /* a named one: who else has it is not told */
                thing = ALIEN;
        /* Yama lets nobody but a parent see the call: whether it has an end is not known then. */
        const char *until = afz_thread_has_deadline(look) || thing == TIMER ? " with a deadline"
                            : !look->in_call && look->wait[0] ? " perhaps with a deadline"
                                                              : "";
        char slept[40] = "";
        if (look->has_switches)
                snprintf(slept, sizeof slept, ", slept %llu time%s",
                         (unsigned long long)look->switches, look->switches == 1 ? "" : "s");
        snprintf(buf, cap, "%s%s%s%s", where, thing_words[thing] ? thing_words[thing] : "",
                 where[0] ? until : "", where[0] ? slept : "");
}
