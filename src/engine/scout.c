#include "scout.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "pidfd.h"
#include "quiet.h"
#include "recorder.h"
#include "scout_loop.h"
#include "scout_shared.h"

enum {
        STOP_MS = 50, /* what the guard's end may wait for it: a look takes a few of them */
};

struct afz_scout {
        struct afz_scout_shared *shared;
        struct afz_recorder *recorder; /* borrowed; NULL: it records nothing */
        pid_t pid;
        int root_fd;       /* our end of the pipe */
        uint32_t pictures; /* that were asked for */
};

/* ---- the child ---- */

_Noreturn static void be_scout(const struct afz_scout *scout, int root_fd, pid_t parent,
                               int (*open_env)(struct afz_env *ret))
{
        struct afz_env env;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(0);
        afz_quiet_process("afz-scout");
        (void)afz_recorder_join(scout->recorder); /* if it cannot, it looks all the same */
        (void)madvise(scout->shared, sizeof *scout->shared, MADV_DONTFORK); /* the witness */
        afz_quiet_fds(&root_fd, 1);
        if (open_env(&env) < 0)
                _exit(1);
        afz_scout_loop(&env, root_fd, scout->shared, scout->recorder);
        _exit(0);
}

/* ---- the guard's side ---- */

static int fork_scout(struct afz_scout *scout, int (*open_env)(struct afz_env *ret))
{
        int fd[2];
        pid_t parent = getpid();
        if (pipe2(fd, O_CLOEXEC) < 0)
                return -errno;
        pid_t pid = fork();
        if (pid == 0)
                be_scout(scout, fd[0], parent, open_env);
        int r = pid < 0 ? -errno : 0;
        close(fd[0]);
        if (r < 0) {
                close(fd[1]);
                return r;
        }
        scout->root_fd = fd[1];
        scout->pid = pid;
        return 0;
}

static int start(int (*open_env)(struct afz_env *ret), struct afz_recorder *recorder,
                 struct afz_scout **ret)
{
        struct afz_scout *scout = calloc(1, sizeof *scout);
        if (!scout)
                return -ENOMEM;
        void *map = mmap(NULL, sizeof *scout->shared, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED) {
                int r = -errno;
                free(scout);
                return r;
        }
        scout->shared = map;
        scout->recorder = recorder;
        int r = fork_scout(scout, open_env);
        if (r < 0) {
                munmap(map, sizeof *scout->shared);
                free(scout);
                return r;
        }
        *ret = scout;
        return 0;
}

int afz_scout_start_on(int (*open_env)(struct afz_env *ret), struct afz_scout **ret)
{
        return start(open_env, NULL, ret);
}

int afz_scout_start_with(struct afz_recorder *recorder, struct afz_scout **ret)
{
        return start(afz_env_open_live, recorder, ret);
}

int afz_scout_start(struct afz_scout **ret)
{
        return start(afz_env_open_live, NULL, ret);
}

pid_t afz_scout_pid(const struct afz_scout *scout)
{
        return scout->pid;
}

/* A scout that hangs does not read: the pipe holds thousands of orders before a write would wait.
 * It is made not to. SIGPIPE would be the end of a guard that does not block it. */
static int send_order(struct afz_scout *scout, const struct afz_scout_order *order)
{
        struct pollfd p = {.fd = scout->root_fd, .events = POLLOUT};
        if (poll(&p, 1, 0) < 0)
                return -errno;
        if (p.revents & (POLLERR | POLLHUP))
                return -EPIPE;
        if (!(p.revents & POLLOUT))
                return -EAGAIN;
        ssize_t n = write(scout->root_fd, order, sizeof *order);
        return n == (ssize_t)sizeof *order ? 0 : n < 0 ? -errno : -EIO;
}

int afz_scout_watch(struct afz_scout *scout, pid_t root)
{
        return send_order(scout, &(struct afz_scout_order){.root = root});
}

int afz_scout_sweep(struct afz_scout *scout, const struct afz_shm_end *end)
{
        return send_order(scout, &(struct afz_scout_order){.end = *end});
}

int afz_scout_picture(struct afz_scout *scout)
{
        int r = send_order(scout, &(struct afz_scout_order){
                                          .picture = scout->pictures + 1,
                                          .t_ns = afz_clock_ns(CLOCK_MONOTONIC),
                                  });
        if (r == 0)
                scout->pictures++;
        return r;
}

void afz_scout_step(struct afz_scout *scout, uint64_t step)
{
        atomic_store_explicit(&scout->shared->step, step, memory_order_relaxed);
}

bool afz_scout_pictured(const struct afz_scout *scout)
{
        return atomic_load_explicit(&scout->shared->pictured, memory_order_acquire) ==
               scout->pictures;
}

bool afz_scout_read(const struct afz_scout *scout, struct afz_scout_report *ret)
{
        return afz_scout_take(scout->shared, ret);
}

/* Somebody who reaps all children may have been faster. */
static bool is_reaped(pid_t pid)
{
        pid_t r = waitpid(pid, NULL, WNOHANG);
        return r == pid || (r < 0 && errno == ECHILD);
}

/* True when it is gone. Somebody waits at a prompt, so the kernel is to wake us; where a filter
 * forbids that, we look often. */
static bool has_ended(pid_t pid, int timeout_ms)
{
        struct pollfd p = {.fd = afz_pidfd_open(pid), .events = POLLIN};
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * AFZ_NS_PER_MS;
        if (p.fd >= 0) {
                (void)poll(&p, 1, timeout_ms);
                close(p.fd);
        }
        while (!is_reaped(pid)) {
                if (p.fd >= 0 || afz_clock_ns(CLOCK_MONOTONIC) >= end_ns)
                        return false;
                nanosleep(&(struct timespec){0, (long)AFZ_NS_PER_MS / 4}, NULL);
        }
        return true;
}

void afz_scout_dismiss(struct afz_scout *scout)
{
        if (scout && scout->root_fd >= 0) {
                close(scout->root_fd);
                scout->root_fd = -1;
        }
}

void afz_scout_await(struct afz_scout *scout)
{
        if (scout)
                (void)has_ended(scout->pid, STOP_MS);
}

void afz_scout_stop(struct afz_scout *scout)
{
        if (!scout)
                return;
        afz_scout_dismiss(scout);
        if (!has_ended(scout->pid, STOP_MS)) {
                kill(scout->pid, SIGKILL);
                /* One that the kernel holds in a hanging file system stays behind; init has it. */
                (void)has_ended(scout->pid, STOP_MS);
        }
        munmap(scout->shared, sizeof *scout->shared);
        free(scout);
}
