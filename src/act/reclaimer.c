#include "reclaimer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup_file.h"
#include "fds.h"
#include "pidfd.h"

/* A quarter of a second of a 30 MB/s disk: an order never waits longer than that. */
#define BITE_BYTES (UINT64_C(8) << 20)
/* A killed process is gone at once unless the disk holds it; then init takes it over. */
#define REAP_MS 100
enum op { OP_SQUEEZE, OP_HIGH, OP_MAX };

/* Smaller than PIPE_BUF: whole or not at all. */
struct order {
        uint64_t bytes;
        enum op op;
};

struct work {
        int orders_fd, reclaim_fd, high_fd, max_fd, current_fd;
        uint64_t high, left;
};

static int put(int fd, uint64_t bytes)
{
        char text[24];
        if (bytes == UINT64_MAX)
                return afz_cgroup_rewrite(fd, "max");
        snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
        return afz_cgroup_rewrite(fd, text);
}

static void obey(struct work *w, const struct order *o)
{
        switch (o->op) {
        case OP_SQUEEZE:
                w->left = o->bytes;
                break;
        case OP_HIGH:
                w->high = o->bytes;
                (void)put(w->high_fd, o->bytes);
                break;
        case OP_MAX:
                (void)put(w->max_fd, o->bytes);
                break;
        }
}

/* Takes orders until there is none; waits for one only when there is nothing left to do. False at
 * the end of the pipe. */
static bool take_orders(struct work *w)
{
        for (;;) {
                struct pollfd p = {.fd = w->orders_fd, .events = POLLIN};
                struct order o;
                int n = poll(&p, 1, w->left > 0 ? 0 : -1);
                if (n == 0)
                        return true;
                if (n < 0 && errno == EINTR)
                        continue;
                ssize_t got = n < 0 ? -1 : read(w->orders_fd, &o, sizeof o);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got != sizeof o)
                        return false;
                obey(w, &o);
        }
}

static int bite_by_high(const struct work *w, uint64_t bytes)
{
        uint64_t used;
        int r = afz_cgroup_reread(w->current_fd, &used);
        if (r < 0)
                return r;
        r = put(w->high_fd, used > bytes ? used - bytes : 0);
        int back = put(w->high_fd, w->high);
        return r < 0 ? r : back;
}

static void bite(struct work *w)
{
        uint64_t bytes = w->left < BITE_BYTES ? w->left : BITE_BYTES;
        int r = w->reclaim_fd >= 0 ? put(w->reclaim_fd, bytes) : bite_by_high(w, bytes);
        /* -EAGAIN: the kernel found less than that, and will not find more now. */
        w->left = r < 0 ? 0 : w->left - bytes;
}

/* Signals are for the job; our end is the end of the pipe. */
static void shut_ears(void)
{
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
}

static _Noreturn void run(int dir_fd, int orders_fd)
{
        struct work w = {.orders_fd = orders_fd, .high = UINT64_MAX};
        shut_ears();
        w.reclaim_fd = afz_cgroup_open(dir_fd, "memory.reclaim", O_WRONLY);
        w.high_fd = afz_cgroup_open(dir_fd, "memory.high", O_WRONLY);
        w.max_fd = afz_cgroup_open(dir_fd, "memory.max", O_WRONLY);
        w.current_fd = afz_cgroup_open(dir_fd, "memory.current", O_RDONLY);
        /* Nobody shall wait for the end of a pipe that only we still hold open. */
        afz_fds_close_but((int[]){w.orders_fd, w.reclaim_fd, w.high_fd, w.max_fd, w.current_fd}, 5);
        while (take_orders(&w))
                bite(&w);
        (void)put(w.high_fd, UINT64_MAX); /* nobody is left who would lift it */
        _exit(0);
}

int afz_reclaimer_start(int dir_fd, struct afz_reclaimer *ret)
{
        int fds[2];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        pid_t pid = fork();
        if (pid == 0)
                run(dir_fd, fds[0]);
        int err = pid < 0 ? -errno : 0;
        close(fds[0]);
        if (err < 0 || fcntl(fds[1], F_SETFL, O_NONBLOCK) < 0) {
                err = err < 0 ? err : -errno;
                close(fds[1]);
                return err;
        }
        *ret = (struct afz_reclaimer){.pid = pid, .pidfd = afz_pidfd_open(pid), .fd = fds[1]};
        return 0;
}

/* A write to a pipe that nobody reads would raise SIGPIPE: the caller ignores that or not, so we
 * ask first. */
static int send(const struct afz_reclaimer *r, enum op op, uint64_t bytes)
{
        struct order o = {.bytes = bytes, .op = op};
        struct pollfd p = {.fd = r->fd, .events = POLLOUT};
        if (r->pid <= 0 || poll(&p, 1, 0) < 0 || p.revents & POLLERR)
                return -EPIPE;
        return write(r->fd, &o, sizeof o) == sizeof o ? 0 : -errno;
}

int afz_reclaimer_squeeze(struct afz_reclaimer *r, uint64_t bytes)
{
        return send(r, OP_SQUEEZE, bytes);
}

int afz_reclaimer_high(struct afz_reclaimer *r, uint64_t bytes)
{
        return send(r, OP_HIGH, bytes);
}

int afz_reclaimer_max(struct afz_reclaimer *r, uint64_t bytes)
{
        return send(r, OP_MAX, bytes);
}

void afz_reclaimer_stop(struct afz_reclaimer *r)
{
        if (r->pid <= 0)
                return;
        close(r->fd);
        if (r->pidfd >= 0) { /* by descriptor: it may be reaped, and its number another's */
                (void)afz_pidfd_signal(r->pidfd, SIGKILL);
                close(r->pidfd);
        }
        for (int i = 0; i < REAP_MS && waitpid(r->pid, NULL, WNOHANG) == 0; i++)
                poll(NULL, 0, 1);
        *r = (struct afz_reclaimer){.fd = -1};
}
