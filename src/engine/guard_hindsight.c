/* What the judges say of an attempt that has just ended. They read the recording, which the guard
 * does not: a child of its own does, for a moment, and is not missed if it fails. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "explain.h"
#include "guard_state.h"
#include "pidfd.h"
#include "quiet.h"

static const struct {
        uint64_t written_ns; /* the writer takes what was seen to the file every 0.4 s */
        uint64_t look_ns;    /* between two looks at the child */
        uint64_t life_ns;    /* a day of 32 processes is judged in a second; then it is killed, */
        rlim_t cpu_s;        /* or before, by the kernel */
} most = {
        .written_ns = 900 * AFZ_NS_PER_MS,
        .look_ns = 10 * AFZ_NS_PER_MS,
        .life_ns = 10 * AFZ_NS_PER_S,
        .cpu_s = 8,
};

struct page {
        _Atomic bool is_whole;
        struct afz_hindsight found;
};

/* Our own copy of the guard, with a page that nobody else sees. */
_Noreturn static void be_judge(struct afz_guard *g, struct page *page, pid_t guard)
{
        struct afz_run_known known = {0};
        struct afz_flight flight;
        struct afz_case c;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != guard)
                _exit(0);
        afz_quiet_process("afz-judge");
        (void)setrlimit(RLIMIT_CPU, &(struct rlimit){most.cpu_s, most.cpu_s});
        int dir_fd = fcntl(g->run->dir_fd, F_DUPFD_CLOEXEC, 3);
        known.page = *g->run->page;
        afz_run_leave(g->run); /* its lock would outlive the guard's */
        afz_quiet_fds(&dir_fd, 1);
        g->run->page = &known.page;
        afz_guard_outcome(g, &known.outcome);
        known.duration_ns = afz_clock_ns(CLOCK_BOOTTIME) - known.page.started_ns;
        if (afz_explain_known(&known, dir_fd, &flight, NULL) < 0)
                _exit(0);
        afz_explain_case(&known, &flight, &c);
        afz_hindsight_of(&c, &known.outcome, &page->found);
        atomic_store(&page->is_whole, true);
        _exit(0);
}

/* Until it has ended, or has had its time, or nobody wants to know any more. */
static void wait_for_judge(struct afz_guard *g, int pidfd)
{
        struct pollfd child = {.fd = pidfd, .events = POLLIN};
        uint64_t begin = afz_guard_now(g), end = begin + most.life_ns;
        while (poll(&child, 1, 0) == 0 && afz_guard_now(g) < end && g->unwanted_ns < begin)
                afz_guard_wait(g, afz_guard_now(g) + most.look_ns);
        (void)afz_pidfd_signal(pidfd, SIGKILL);
}

static void ask_judge(struct afz_guard *g, struct page *page)
{
        pid_t guard = getpid(), pid = fork(); /* reaped with all others */
        if (pid == 0)
                be_judge(g, page, guard);
        int pidfd = pid > 0 ? afz_pidfd_open(pid) : -1;
        if (pidfd < 0)
                return;
        wait_for_judge(g, pidfd);
        close(pidfd);
}

bool afz_guard_hindsight(struct afz_guard *g, struct afz_hindsight *ret)
{
        uint64_t written_ns = afz_guard_now(g) + most.written_ns;
        if (!g->recorder || g->run->dir_fd < 0)
                return false;
        while (afz_guard_now(g) < written_ns)
                afz_guard_wait(g, written_ns);
        struct page *page =
                mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
                return false;
        ask_judge(g, page);
        bool is_whole = atomic_load(&page->is_whole);
        if (is_whole)
                *ret = page->found;
        munmap(page, sizeof *page);
        return is_whole;
}
