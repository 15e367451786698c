#include "spawn_held.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fds.h"
#include "pidfd.h"

/* As shells have it. */
enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

extern char **environ;

static size_t name_length(const char *variable)
{
        return strcspn(variable, "=");
}

static bool is_replaced(const char *variable, const char *const *add)
{
        size_t n = name_length(variable);
        for (; add && *add; add++)
                if (name_length(*add) == n && strncmp(variable, *add, n) == 0)
                        return true;
        return false;
}

/* The environment for CMD; its texts are borrowed, the list is the caller's to free. Made before
 * the fork, so that the child need not allocate. */
static char **environment_with(const char *const *add)
{
        size_t n = 0, used = 0;
        for (char **e = environ; e && *e; e++)
                n++;
        for (const char *const *a = add; a && *a; a++)
                n++;
        char **all = calloc(n + 1, sizeof *all);
        if (!all)
                return NULL;
        for (char **e = environ; e && *e; e++)
                if (!is_replaced(*e, add))
                        all[used++] = *e;
        for (const char *const *a = add; a && *a; a++)
                all[used++] = (char *)(uintptr_t)*a;
        return all;
}

/* Raising it needs no privilege, lowering would: whoever called us with more keeps it. */
static void raise_oom_score(int wanted)
{
        char buf[16] = "";
        int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
        if (fd < 0)
                return;
        if (read(fd, buf, sizeof buf - 1) > 0 && atoi(buf) < wanted) {
                int n = snprintf(buf, sizeof buf, "%d", wanted);
                (void)!pwrite(fd, buf, (size_t)n, 0);
        }
        close(fd);
}

static void be_nice(int more)
{
        errno = 0;
        int now = getpriority(PRIO_PROCESS, 0);
        if (more != 0 && errno == 0)
                (void)setpriority(PRIO_PROCESS, 0, now + more);
}

/* Our handlers must not run in the child once signals are let through: exec would reset them, but a
 * signal that waits comes before. */
static void restore_signals(const struct afz_spawn_plan *plan)
{
        for (int s = 1; s < NSIG; s++) {
                struct sigaction now;
                if (sigaction(s, NULL, &now) < 0 || now.sa_handler == SIG_IGN ||
                    now.sa_handler == SIG_DFL)
                        continue;
                now = (struct sigaction){.sa_handler = SIG_DFL};
                (void)sigaction(s, &now, NULL);
        }
        struct sigaction chld = {.sa_handler = plan->ignore_sigchld ? SIG_IGN : SIG_DFL};
        (void)sigaction(SIGCHLD, &chld, NULL);
        if (plan->mask)
                (void)sigprocmask(SIG_SETMASK, plan->mask, NULL);
}

/* Waits for the word. The pipe alone would not do: helpers that were forked meanwhile may hold its
 * other end. */
static bool was_let_go(int go_fd, pid_t parent)
{
        char word;
        ssize_t n;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                return false;
        do
                n = read(go_fd, &word, 1);
        while (n < 0 && errno == EINTR);
        (void)prctl(PR_SET_PDEATHSIG, 0);
        return n == 1;
}

static _Noreturn void child(const struct afz_spawn_plan *plan, char **env, int go_fd, int fail_fd,
                            pid_t parent)
{
        if (!was_let_go(go_fd, parent))
                _exit(EXIT_CANNOT_RUN);
        if (plan->looker > 0)
                (void)prctl(PR_SET_PTRACER, (unsigned long)plan->looker, 0UL, 0UL, 0UL);
        for (unsigned i = 0; i < plan->limits; i++)
                (void)setrlimit((__rlimit_resource_t)plan->limit[i].resource,
                                &plan->limit[i].value);
        raise_oom_score(plan->oom_score_adj);
        be_nice(plan->nice);
        restore_signals(plan);
        (void)execvpe(plan->argv[0], plan->argv, env);
        int error = errno;
        (void)!write(fail_fd, &error, sizeof error);
        _exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

int afz_spawn_start(const struct afz_spawn_plan *plan, struct afz_spawn *ret)
{
        int go[2] = {-1, -1}, fail[2] = {-1, -1};
        pid_t parent = getpid(), pid = -1;
        char **env = environment_with(plan->environ_add);
        int r = env ? 0 : -ENOMEM;
        if (r == 0 && (pipe2(go, O_CLOEXEC) < 0 || pipe2(fail, O_CLOEXEC) < 0))
                r = -errno;
        if (r == 0 && (pid = fork()) < 0)
                r = -errno;
        if (pid == 0) {
                close(go[1]);
                close(fail[0]);
                child(plan, env, go[0], fail[1], parent);
        }
        free(env);
        afz_fd_close(&go[0]);
        afz_fd_close(&fail[1]);
        if (r < 0) {
                afz_fd_close(&go[1]);
                afz_fd_close(&fail[0]);
                return r;
        }
        int pidfd = afz_pidfd_open(pid);
        *ret = (struct afz_spawn){
                .pid = pid, .pidfd = pidfd >= 0 ? pidfd : -1, .go_fd = go[1], .fail_fd = fail[0]};
        return 0;
}

static void reap(struct afz_spawn *spawn)
{
        while (waitpid(spawn->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        spawn->pid = 0;
        afz_fd_close(&spawn->pidfd);
}

/* A child that died while it waited has closed its end: the word would raise SIGPIPE here. */
static int give_word(int fd)
{
        sigset_t pipe_only, before, waiting;
        sigemptyset(&pipe_only);
        sigaddset(&pipe_only, SIGPIPE);
        sigpending(&waiting);
        sigprocmask(SIG_BLOCK, &pipe_only, &before);
        int r = write(fd, "g", 1) == 1 ? 0 : -errno;
        if (r == -EPIPE && !sigismember(&waiting, SIGPIPE))
                (void)sigtimedwait(&pipe_only, NULL, &(struct timespec){0});
        sigprocmask(SIG_SETMASK, &before, NULL);
        return r == -EPIPE ? 0 : r;
}

int afz_spawn_go(struct afz_spawn *spawn)
{
        int error = 0;
        ssize_t n;
        int r = give_word(spawn->go_fd);
        afz_fd_close(&spawn->go_fd);
        do
                n = read(spawn->fail_fd, &error, sizeof error);
        while (n < 0 && errno == EINTR);
        afz_fd_close(&spawn->fail_fd);
        if (r == 0 && n != (ssize_t)sizeof error)
                return 0;
        reap(spawn);
        return r < 0 ? r : -error;
}

void afz_spawn_done(struct afz_spawn *spawn)
{
        bool waits = spawn->go_fd >= 0 && spawn->pid > 0;
        afz_fd_close(&spawn->go_fd); /* the end of the pipe is its end */
        afz_fd_close(&spawn->fail_fd);
        if (waits) {
                if (spawn->pidfd >= 0)
                        (void)afz_pidfd_signal(spawn->pidfd, SIGKILL);
                reap(spawn);
        }
        afz_fd_close(&spawn->pidfd);
}
