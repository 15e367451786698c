#include "aide.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aide_work.h"
#include "fds.h"
#include "pidfd.h"
#include "proc_read.h"

/* Descriptors that are closed one by one where the kernel cannot do it at once (before 5.9). */

struct stopped {
        uint64_t pid, start_ticks;
};

/* What both see. `rows` belong to the guard while asked == answered, else to the aide. */
struct page {
        _Atomic uint32_t asked, answered;
        uint32_t task, count;
        uint64_t bytes;
        _Atomic uint32_t stops; /* entries of the stop list, which stands behind the rows */
        size_t max;
        struct afz_aide_row row[];
};

struct afz_aide {
        const struct afz_env *env;
        struct page *page;
        size_t page_bytes;
        pid_t pid;
        int pidfd, wake_fd;
};

static struct stopped *stop_list(struct page *page)
{
        return (struct stopped *)(void *)(page->row + page->max);
}

static void work(const struct afz_env *env, struct page *page)
{
        uint64_t left = page->bytes;
        for (uint32_t i = 0; i < page->count; i++) {
                struct afz_aide_row *row = &page->row[i];
                switch ((enum afz_aide_task)page->task) {
                case AFZ_AIDE_PSS:
                        afz_aide_read_pss(env, row);
                        break;
                case AFZ_AIDE_RELEASE:
                        afz_aide_release(env, row);
                        break;
                case AFZ_AIDE_SQUEEZE:
                        if (left > 0)
                                left -= afz_aide_squeeze(env, row, left);
                        break;
                }
        }
}

/* Children first: by the time a parent runs again and asks, none of its children stands still. */
static void thaw(const struct afz_env *env, struct page *page)
{
        uint32_t n = atomic_load(&page->stops);
        while (n-- > 0) {
                const struct stopped *s = &stop_list(page)[n];
                int fd = afz_proc_open(env, s->pid, s->start_ticks);
                if (fd < 0)
                        continue;
                (void)afz_pidfd_signal(fd, SIGCONT);
                close(fd);
        }
}

/* A pipe of the job that we kept open would never end for its reader. */
static void close_others(int keep, int keep_too)
{
        int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int fd = 0; null_fd >= 0 && fd < 3; fd++)
                if (fd != keep && fd != keep_too)
                        dup2(null_fd, fd);
        afz_fds_close_but((int[]){0, 1, 2, keep, keep_too}, 5);
}

static void on_orphaned(int signal)
{
        (void)signal;
}

/* Nothing of the terminal's signals reaches it; SIGUSR1 says that the guard is gone, and comes only
 * while it waits. The pipe alone would not do: other children of the guard may hold its end. */
static void prepare(sigset_t *ret_waiting)
{
        struct sigaction act = {.sa_handler = on_orphaned};
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        *ret_waiting = all;
        sigdelset(ret_waiting, SIGUSR1);
        sigaction(SIGUSR1, &act, NULL);
        prctl(PR_SET_PDEATHSIG, SIGUSR1);
        prctl(PR_SET_NAME, "antifreeze-aide");
}

static _Noreturn void serve(const struct afz_env *env, struct page *page, int wake_fd, pid_t guard)
{
        sigset_t waiting;
        char word[16];
        prepare(&waiting);
        close_others(wake_fd, env->root_fd[AFZ_ROOT_PROC]);
        while (getppid() == guard) {
                struct pollfd p = {.fd = wake_fd, .events = POLLIN};
                if (ppoll(&p, 1, NULL, &waiting) < 0)
                        continue;
                if (read(wake_fd, word, sizeof word) <= 0)
                        break;
                uint32_t asked = atomic_load(&page->asked);
                if (asked == atomic_load(&page->answered))
                        continue;
                work(env, page);
                atomic_store(&page->answered, asked);
        }
        thaw(env, page);
        _exit(0);
}

static int start_process(struct afz_aide *aide)
{
        int wake[2];
        pid_t guard = getpid();
        if (pipe2(wake, O_CLOEXEC) < 0)
                return -errno;
        pid_t pid = fork();
        if (pid == 0) {
                close(wake[1]);
                serve(aide->env, aide->page, wake[0], guard);
        }
        close(wake[0]);
        if (pid < 0) {
                int r = -errno;
                close(wake[1]);
                return r;
        }
        (void)fcntl(wake[1], F_SETFL, O_NONBLOCK);
        aide->pid = pid;
        aide->pidfd = afz_pidfd_open(pid);
        aide->wake_fd = wake[1];
        return 0;
}

int afz_aide_start(const struct afz_env *env, size_t max, struct afz_aide **ret)
{
        struct afz_aide *aide = calloc(1, sizeof *aide);
        if (!aide)
                return -ENOMEM;
        aide->env = env;
        aide->wake_fd = aide->pidfd = -1;
        aide->page_bytes =
                sizeof(struct page) + max * (sizeof(struct afz_aide_row) + sizeof(struct stopped));
        aide->page = mmap(NULL, aide->page_bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        int r = 0;
        if (aide->page == MAP_FAILED) {
                aide->page = NULL;
                r = -errno;
        } else {
                aide->page->max = max;
        }
        if (r == 0 && env->fixture_fd < 0)
                r = start_process(aide);
        if (r < 0) {
                afz_aide_stop(aide);
                return r;
        }
        *ret = aide;
        return 0;
}

#define REAP_MS 200

/* By descriptor: if it died before, the guard may have reaped it, and its number is another's. */
static void end_process(struct afz_aide *aide)
{
        siginfo_t info;
        if (aide->pidfd < 0)
                return; /* it ends by itself when the pipe does */
        (void)afz_pidfd_signal(aide->pidfd, SIGKILL);
        /* Gone at once, unless the kernel holds it; then init takes it over. */
        for (int i = 0; i < REAP_MS; i++) {
                info.si_pid = 0;
                if (waitid((idtype_t)AFZ_P_PIDFD, (id_t)aide->pidfd, &info, WEXITED | WNOHANG) <
                            0 ||
                    info.si_pid != 0)
                        break;
                poll(NULL, 0, 1);
        }
        close(aide->pidfd);
}

void afz_aide_stop(struct afz_aide *aide)
{
        if (!aide)
                return;
        if (aide->wake_fd >= 0)
                close(aide->wake_fd);
        if (aide->pid > 0) {
                /* Here and not by it, for it may be in the middle of something long. */
                thaw(aide->env, aide->page);
                end_process(aide);
        }
        if (aide->page)
                munmap(aide->page, aide->page_bytes);
        free(aide);
}

pid_t afz_aide_pid(const struct afz_aide *aide)
{
        return aide->pid;
}

bool afz_aide_idle(const struct afz_aide *aide)
{
        return atomic_load(&aide->page->asked) == atomic_load(&aide->page->answered);
}

struct afz_aide_row *afz_aide_rows(struct afz_aide *aide)
{
        return aide->page->row;
}

int afz_aide_ask(struct afz_aide *aide, enum afz_aide_task task, size_t rows, uint64_t bytes)
{
        struct page *page = aide->page;
        if (!afz_aide_idle(aide))
                return -EBUSY;
        page->task = task;
        page->count = (uint32_t)(rows < page->max ? rows : page->max);
        page->bytes = bytes;
        if (aide->pid == 0) {
                work(aide->env, page);
                return 0;
        }
        atomic_fetch_add(&page->asked, 1);
        return write(aide->wake_fd, "a", 1) == 1 ? 0 : -errno;
}

void afz_aide_note_stop(struct afz_aide *aide, uint64_t pid, uint64_t start_ticks)
{
        struct page *page = aide->page;
        uint32_t n = atomic_load(&page->stops);
        if (n == page->max)
                return;
        stop_list(page)[n] = (struct stopped){pid, start_ticks};
        atomic_store(&page->stops, n + 1);
}

void afz_aide_forget_stops(struct afz_aide *aide)
{
        atomic_store(&aide->page->stops, 0);
}
