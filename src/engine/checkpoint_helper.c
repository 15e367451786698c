#include "checkpoint_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fds.h"

enum { OURS = 3, EXIT_NOT_RUN = 127 };

int afz_checkpoint_helper_send(int fd, const struct afz_checkpoint_word *word)
{
        return send(fd, word, sizeof *word, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int afz_checkpoint_helper_read(int fd, struct afz_checkpoint_word *ret)
{
        struct afz_checkpoint_word word;
        ssize_t n = recv(fd, &word, sizeof word, MSG_DONTWAIT);
        if (n < 0)
                return errno == EAGAIN ? -EAGAIN : -EPIPE;
        if (n != sizeof word)
                return -EPIPE;
        *ret = word;
        return 0;
}

/* The guard holds locks and sockets that must end with it and not with us. */
static void keep_only(int fd)
{
        if (fd != OURS)
                (void)dup2(fd, OURS);
        afz_fds_close_but((int[]){0, 1, 2, OURS}, 4);
}

/* The terminal's keys are CMD's, and so is stdout: who reads it waits for its end, and must not
 * wait for us. What the command prints goes where our own words go. */
static void leave_stdio(void)
{
        int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null_fd >= 0)
                (void)dup2(null_fd, STDIN_FILENO);
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
        if (null_fd > STDERR_FILENO)
                close(null_fd);
}

static void default_signals(void)
{
        for (int i = 1; i < NSIG; i++)
                (void)signal(i, SIG_DFL);
}

static _Noreturn void be_command(const char *command, int32_t job)
{
        sigset_t none;
        char pid[16];

        (void)setpgid(0, 0);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the helper itself be killed */
        if (job > 0) {
                (void)snprintf(pid, sizeof pid, "%d", job);
                (void)setenv("ANTIFREEZE_PID", pid, 1);
        }
        close(OURS);
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(EXIT_NOT_RUN);
}

struct helper {
        const char *command;
        int signal_fd;
        pid_t running; /* 0: none */
        uint32_t number;
};

static void answer(const struct helper *h, int32_t value)
{
        (void)send(OURS, &(struct afz_checkpoint_word){h->number, value},
                   sizeof(struct afz_checkpoint_word), MSG_NOSIGNAL);
}

static void end_running(struct helper *h)
{
        if (h->running == 0)
                return;
        (void)kill(-h->running, SIGKILL);
        (void)waitpid(h->running, NULL, 0);
        h->running = 0;
}

static void start(struct helper *h, const struct afz_checkpoint_word *word)
{
        h->number = word->number;
        pid_t pid = fork();
        if (pid == 0)
                be_command(h->command, word->value);
        if (pid < 0) {
                answer(h, EXIT_NOT_RUN);
                return;
        }
        (void)setpgid(pid, pid); /* both do it: whoever is first */
        h->running = pid;
}

static void reap(struct helper *h)
{
        struct signalfd_siginfo info;
        int status;
        (void)!read(h->signal_fd, &info, sizeof info);
        if (h->running == 0 || waitpid(h->running, &status, WNOHANG) != h->running)
                return;
        h->running = 0;
        answer(h, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

static _Noreturn void be_helper(const char *command, int fd)
{
        struct helper h = {.command = command};
        sigset_t chld;
        keep_only(fd);
        leave_stdio();
        (void)setsid(); /* the terminal's signals are not for us */
        (void)prctl(PR_SET_NAME, "afz-checkpoint");
        default_signals();
        sigemptyset(&chld);
        sigaddset(&chld, SIGCHLD);
        (void)sigprocmask(SIG_SETMASK, &chld, NULL);
        h.signal_fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
        if (h.signal_fd < 0)
                _exit(EXIT_NOT_RUN);
        for (;;) {
                struct pollfd fds[] = {{.fd = OURS, .events = POLLIN},
                                       {.fd = h.signal_fd, .events = POLLIN}};
                struct afz_checkpoint_word word;
                if (poll(fds, 2, -1) < 0 && errno != EINTR)
                        break;
                reap(&h);
                int r = afz_checkpoint_helper_read(OURS, &word);
                if (r == -EPIPE)
                        break;
                if (r < 0)
                        continue;
                end_running(&h);
                if (word.value >= 0)
                        start(&h, &word);
        }
        end_running(&h);
        _exit(0);
}

int afz_checkpoint_helper_start(const char *command, pid_t *ret_pid, int *ret_fd)
{
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        pid_t pid = fork();
        if (pid == 0)
                be_helper(command, pair[1]);
        int r = pid < 0 ? -errno : 0;
        close(pair[1]);
        if (r < 0) {
                close(pair[0]);
                return r;
        }
        *ret_pid = pid;
        *ret_fd = pair[0];
        return 0;
}
