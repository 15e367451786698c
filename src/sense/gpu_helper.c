#include "gpu_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "fds.h"
#include "pidfd.h"

/* ---- the child ---- */

static void reset_signals(void)
{
        for (int i = 1; i < NSIG; i++)
                signal(i, SIG_DFL);
        signal(SIGPIPE, SIG_IGN);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Only the two descriptors that it needs stay, behind a closed 0, 1 and 2: a library that prints
 * must not write into the job's output, and an output that somebody waits for must not be held
 * open. */
static void keep_two_fds(int *a, int *b)
{
        if (*a < 3)
                *a = fcntl(*a, F_DUPFD_CLOEXEC, 3);
        if (*b < 3)
                *b = fcntl(*b, F_DUPFD_CLOEXEC, 3);
        int null = open("/dev/null", O_RDWR);
        for (int i = 0; i < 3 && null >= 0; i++)
                dup2(null, i);
        afz_fds_close_but((int[]){0, 1, 2, *a, *b}, 5);
}

static void update_cpu(struct afz_gpu_link *link)
{
        struct rusage use;
        if (getrusage(RUSAGE_SELF, &use) < 0)
                return;
        uint64_t us = (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000U +
                      (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
        atomic_store_explicit(&link->shared->cpu_ns, us * 1000U, memory_order_relaxed);
}

_Noreturn static void be_helper(struct afz_gpu_helper *helper, pid_t parent)
{
        struct afz_gpu_link link = {
                .shared = helper->shared,
                .now_ns = helper->env->now_ns,
                .ctx = helper->env->ctx,
                .poll_ns = helper->poll_ns,
                .news_fd = helper->news_fd,
                .kick_fd = helper->kick_fd,
                .parent = parent,
        };
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(0);
        prctl(PR_SET_NAME, "antifreeze-gpu");
        setsid();
        reset_signals();
        keep_two_fds(&link.news_fd, &link.kick_fd);
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        link.asking = atomic_load(&link.shared->asked);
        int r = helper->main(&link);
        update_cpu(&link);
        _exit(r < 0 ? 1 : 0);
}

void afz_gpu_link_enter(struct afz_gpu_link *link, uint32_t call)
{
        struct afz_gpu_shared *s = link->shared;
        atomic_store_explicit(&s->call, call, memory_order_relaxed);
        atomic_fetch_add_explicit(&s->calls, 1, memory_order_release);
}

void afz_gpu_link_leave(struct afz_gpu_link *link)
{
        atomic_fetch_add_explicit(&link->shared->calls, 1, memory_order_release);
}

void afz_gpu_link_publish(struct afz_gpu_link *link, const struct afz_gpu_report *report)
{
        update_cpu(link);
        afz_gpu_shared_publish(link->shared, report);
        atomic_store(&link->shared->answered, link->asking);
        uint64_t one = 1;
        (void)!write(link->news_fd, &one, sizeof one);
}

bool afz_gpu_link_wait(struct afz_gpu_link *link)
{
        struct pollfd p = {.fd = link->kick_fd, .events = POLLIN};
        poll(&p, 1, (int)(link->poll_ns / 1000000U));
        uint64_t kicks;
        (void)!read(link->kick_fd, &kicks, sizeof kicks);
        link->asking = atomic_load(&link->shared->asked);
        return getppid() == link->parent;
}

/* ---- our side ---- */

static int spawn(struct afz_gpu_helper *helper)
{
        pid_t parent = getpid();
        pid_t pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                be_helper(helper, parent);
        helper->pid = pid;
        helper->pidfd = afz_pidfd_open(pid);
        helper->life = AFZ_GPU_LIFE_RUNNING;
        helper->watched_call = helper->waited_ns = 0;
        return 0;
}

int afz_gpu_helper_start(struct afz_gpu_helper *helper, const struct afz_env *env,
                         afz_gpu_helper_main *main, uint64_t poll_ns)
{
        *helper = (struct afz_gpu_helper){
                .env = env, .main = main, .poll_ns = poll_ns, .pidfd = -1, .pid = -1};
        void *map = mmap(NULL, sizeof *helper->shared, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        int r = map == MAP_FAILED ? -errno : 0;
        helper->shared = r < 0 ? NULL : map;
        helper->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        helper->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (r == 0 && (helper->news_fd < 0 || helper->kick_fd < 0))
                r = -errno;
        if (r == 0)
                r = spawn(helper);
        if (r < 0)
                afz_gpu_helper_stop(helper);
        return r;
}

/* Its exit status is asked for by pid, so that nobody else's child is taken. Someone who reaps all
 * children may have been faster: then it is gone, we don't know how. */
static bool has_ended(struct afz_gpu_helper *helper, bool *ret_clean)
{
        int status = 0;
        pid_t r = waitpid(helper->pid, &status, WNOHANG);
        if (r == 0 || (r < 0 && errno != ECHILD))
                return false;
        *ret_clean = r > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (helper->pidfd >= 0)
                close(helper->pidfd);
        helper->pidfd = -1;
        helper->pid = -1;
        return true;
}

enum afz_gpu_life afz_gpu_helper_tend(struct afz_gpu_helper *helper, uint64_t now_ns)
{
        static const uint64_t backoff_ns[AFZ_GPU_RESTARTS] = {AFZ_GPU_BACKOFF_NS};
        bool clean = false;
        if (helper->life == AFZ_GPU_LIFE_RUNNING && has_ended(helper, &clean)) {
                helper->past_cpu_ns += atomic_load(&helper->shared->cpu_ns);
                atomic_store(&helper->shared->cpu_ns, 0);
                if (clean)
                        helper->life = AFZ_GPU_LIFE_FINISHED;
                else if (helper->restarts == AFZ_GPU_RESTARTS)
                        helper->life = AFZ_GPU_LIFE_GAVE_UP;
                else
                        helper->life = AFZ_GPU_LIFE_DEAD;
                if (helper->life == AFZ_GPU_LIFE_DEAD)
                        helper->restart_at_ns = now_ns + backoff_ns[helper->restarts];
        }
        if (helper->life == AFZ_GPU_LIFE_DEAD && now_ns >= helper->restart_at_ns) {
                afz_gpu_shared_reset(helper->shared);
                helper->restarts++;
                if (spawn(helper) < 0)
                        helper->life = AFZ_GPU_LIFE_GAVE_UP;
        }
        return helper->life;
}

uint64_t afz_gpu_helper_stuck_ns(struct afz_gpu_helper *helper, uint64_t now_ns, uint32_t *ret_call)
{
        uint64_t calls = atomic_load_explicit(&helper->shared->calls, memory_order_acquire);
        uint64_t gone = now_ns > helper->last_look_ns ? now_ns - helper->last_look_ns : 0;
        bool same = calls == helper->watched_call && (calls & 1);
        helper->last_look_ns = now_ns;
        helper->watched_call = calls;
        if (!same || helper->life != AFZ_GPU_LIFE_RUNNING) {
                helper->waited_ns = 0;
                return 0;
        }
        helper->waited_ns += gone < AFZ_NS_PER_S ? gone : AFZ_NS_PER_S;
        *ret_call = atomic_load_explicit(&helper->shared->call, memory_order_relaxed);
        return helper->waited_ns;
}

/* Leaves its status to be collected. */
static bool is_over(pid_t pid)
{
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
                return errno == ECHILD;
        return info.si_pid == pid;
}

int afz_gpu_helper_wait(struct afz_gpu_helper *helper, uint64_t timeout_ns)
{
        if (helper->life != AFZ_GPU_LIFE_RUNNING)
                return 0;
        uint64_t asked = atomic_fetch_add(&helper->shared->asked, 1) + 1, junk;
        uint64_t one = 1, end = afz_clock_ns(CLOCK_MONOTONIC) + timeout_ns;
        (void)!write(helper->kick_fd, &one, sizeof one);
        for (;;) {
                (void)!read(helper->news_fd, &junk, sizeof junk);
                if (atomic_load(&helper->shared->answered) >= asked)
                        return 0;
                uint64_t now = afz_clock_ns(CLOCK_MONOTONIC);
                if (now >= end)
                        return -ETIMEDOUT;
                struct pollfd p[] = {
                        {.fd = helper->news_fd, .events = POLLIN},
                        {.fd = helper->pidfd, .events = POLLIN},
                };
                uint64_t ms = (end - now) / 1000000U + 1;
                /* Without a pidfd its end shows only when we look. */
                if (helper->pidfd < 0 && ms > 20)
                        ms = 20;
                poll(p, 2, ms < 3600000 ? (int)ms : 3600000);
                if (is_over(helper->pid))
                        return 0;
        }
}

uint64_t afz_gpu_helper_cpu(const struct afz_gpu_helper *helper)
{
        return helper->past_cpu_ns + (helper->shared ? atomic_load(&helper->shared->cpu_ns) : 0);
}

static void kill_child(struct afz_gpu_helper *helper)
{
        bool clean;
        if (helper->pid <= 0 || has_ended(helper, &clean))
                return;
        kill(helper->pid, SIGKILL);
        if (helper->pidfd >= 0) {
                struct pollfd p = {.fd = helper->pidfd, .events = POLLIN};
                poll(&p, 1, (int)(AFZ_GPU_STOP_NS / 1000000U));
        } else {
                struct timespec ms = {0, 1000000};
                for (uint64_t ns = 0; ns < AFZ_GPU_STOP_NS; ns += 1000000U) {
                        if (has_ended(helper, &clean))
                                return;
                        nanosleep(&ms, NULL);
                }
        }
        if (!has_ended(helper, &clean) && helper->pidfd >= 0)
                close(helper->pidfd);
}

void afz_gpu_helper_stop(struct afz_gpu_helper *helper)
{
        kill_child(helper);
        helper->pidfd = -1;
        helper->pid = -1;
        if (helper->news_fd >= 0)
                close(helper->news_fd);
        if (helper->kick_fd >= 0)
                close(helper->kick_fd);
        helper->news_fd = helper->kick_fd = -1;
        if (helper->shared)
                munmap(helper->shared, sizeof *helper->shared);
        helper->shared = NULL;
        helper->life = AFZ_GPU_LIFE_GAVE_UP;
}
