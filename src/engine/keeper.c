#include "keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fds.h"
#include "keeper_loop.h"
#include "keeper_room.h"
#include "quiet.h"
#include "recorder.h"

enum {
        STOP_MS = 300, /* what an end may wait for the last names; without new ones it is 1 ms */
        BACKLOG = 128, /* processes that ask at once */
};

struct afz_keeper {
        struct afz_keeper_shared *shared;
        struct afz_room *room;
        pid_t pid;
        int word_fd;
};

static int listen_at(const char *path)
{
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        if (path[0] != '/' || strlen(path) >= sizeof at.sun_path)
                return -ENAMETOOLONG;
        strcpy(at.sun_path, path);
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 || listen(fd, BACKLOG) < 0) {
                int err = -errno;
                close(fd);
                return err;
        }
        return fd;
}

_Noreturn static void be_keeper(struct afz_keeper_order *order)
{
        afz_quiet_process("afz-keeper");
        int err = afz_recorder_join_sites(order->recorder);
        afz_quiet_fds((int[]){order->listen_fd, order->word_fd, order->room_fd},
                      order->room_fd < 0 ? 2 : 3);
        if (err >= 0)
                afz_keeper_loop(order);
        afz_recorder_leave_sites(order->recorder);
        /* Nobody need wait until the books' memory is given back. */
        (void)send(order->word_fd, "c", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        _exit(0);
}

static int fork_keeper(struct afz_keeper *keeper, struct afz_keeper_order *order)
{
        int fd[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
                return -errno;
        order->word_fd = fd[0];
        order->guard = getpid();
        pid_t pid = fork();
        if (pid == 0)
                be_keeper(order);
        int r = pid < 0 ? -errno : 0;
        close(fd[0]);
        if (r < 0) {
                close(fd[1]);
                return r;
        }
        keeper->word_fd = fd[1];
        keeper->pid = pid;
        return 0;
}

int afz_keeper_start(const char *path, const struct afz_keeper_plan *plan,
                     struct afz_recorder *recorder, struct afz_keeper **ret)
{
        struct afz_keeper *keeper = recorder ? calloc(1, sizeof *keeper) : NULL;
        if (!keeper)
                return recorder ? -ENOMEM : -ENOENT;
        keeper->word_fd = -1;
        struct afz_keeper_order order = {.plan = *plan, .recorder = recorder, .room_fd = -1};
        void *map = mmap(NULL, sizeof *keeper->shared, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        int r = map == MAP_FAILED ? -errno : 0;
        keeper->shared = order.shared = r < 0 ? NULL : map;
        order.listen_fd = r < 0 ? -1 : listen_at(path);
        if (r == 0 && plan->refuses) /* it goes without where that fails */
                (void)afz_keeper_room_make(&keeper->room, &order.room_fd);
        if (r == 0)
                r = order.listen_fd < 0 ? order.listen_fd : fork_keeper(keeper, &order);
        afz_fd_close(&order.listen_fd);
        afz_fd_close(&order.room_fd);
        if (r < 0) {
                afz_keeper_free(keeper);
                return r;
        }
        *ret = keeper;
        return 0;
}

pid_t afz_keeper_pid(const struct afz_keeper *keeper)
{
        return keeper ? keeper->pid : 0;
}

struct afz_room *afz_keeper_room(const struct afz_keeper *keeper)
{
        return keeper ? keeper->room : NULL;
}

void afz_keeper_look_now(struct afz_keeper *keeper)
{
        if (!keeper || keeper->word_fd < 0)
                return;
        atomic_fetch_add(&keeper->shared->asked, 1);
        /* With no room for it there are others, which are not read yet. */
        (void)send(keeper->word_fd, "l", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool afz_keeper_looked(const struct afz_keeper *keeper)
{
        if (!keeper || keeper->word_fd < 0)
                return true;
        struct pollfd p = {.fd = keeper->word_fd, .events = POLLIN};
        return atomic_load(&keeper->shared->looked) == atomic_load(&keeper->shared->asked) ||
               poll(&p, 1, 0) != 0; /* it is gone */
}

bool afz_keeper_steps(const struct afz_keeper *keeper, uint64_t *ret_step, uint64_t *ret_saved)
{
        uint64_t step = keeper ? atomic_load(&keeper->shared->step) : 0;
        if (step == 0)
                return false;
        *ret_step = step;
        *ret_saved = atomic_load(&keeper->shared->saved_step);
        return true;
}

void afz_keeper_forget_steps(struct afz_keeper *keeper)
{
        if (keeper)
                atomic_store(&keeper->shared->step, 0);
}

/* The end of our stream, even where a fork of ours still holds the descriptor. */
void afz_keeper_dismiss(struct afz_keeper *keeper)
{
        if (keeper && keeper->word_fd >= 0)
                (void)shutdown(keeper->word_fd, SHUT_WR);
}

void afz_keeper_await(struct afz_keeper *keeper)
{
        struct pollfd p = {.fd = keeper ? keeper->word_fd : -1, .events = POLLIN};
        if (keeper && keeper->word_fd >= 0 && poll(&p, 1, STOP_MS) != 0)
                afz_fd_close(&keeper->word_fd); /* it has said its last word, or is gone */
}

bool afz_keeper_died_inside(const struct afz_keeper *keeper, pid_t pid)
{
        unsigned n = keeper ? atomic_load(&keeper->shared->deaths) : 0;
        for (unsigned i = 0; i < n && i < AFZ_KEEPER_DEATHS; i++)
                if (pid == 0 || atomic_load(&keeper->shared->inside[i]) == pid)
                        return true;
        return false;
}

void afz_keeper_free(struct afz_keeper *keeper)
{
        if (!keeper)
                return;
        afz_keeper_dismiss(keeper);
        afz_keeper_await(keeper);
        /* Whether it was reaped already: then the number may be another's. */
        if (keeper->pid > 0 && waitpid(keeper->pid, NULL, WNOHANG) == 0 && keeper->word_fd >= 0)
                kill(keeper->pid, SIGKILL);
        afz_fd_close(&keeper->word_fd);
        if (keeper->shared)
                munmap(keeper->shared, sizeof *keeper->shared);
        afz_keeper_room_unmap(keeper->room);
        free(keeper);
}
