/* links: engine */
/* The scout as a process: what it holds, what it does not listen to, when it ends. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "fixture.h"
#include "scout.h"

/* Nothing here takes so long; who waits until then has found an error. */
#define PATIENCE_NS (UINT64_C(20) * AFZ_NS_PER_S)

static void nap(void)
{
        const struct timespec ms = {0, 2000000};
        nanosleep(&ms, NULL);
}

static void wait_until_told(const struct afz_scout *scout, uint64_t count,
                            struct afz_scout_report *ret)
{
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
        while (!afz_scout_read(scout, ret) || ret->count < count) {
                if (afz_clock_ns(CLOCK_MONOTONIC) > end_ns)
                        fail_msg("no report %llu", (unsigned long long)count);
                nap();
        }
}

static pid_t start_job(void)
{
        pid_t self = getpid(), pid = fork();
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                while (getppid() == self)
                        pause();
                _exit(0);
        }
        assert_true(pid > 0);
        return pid;
}

static void end_job(pid_t pid)
{
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_it_tells(void **state)
{
        struct afz_scout *scout;
        struct afz_scout_report r;
        (void)state;
        size_t fds = afz_fixture_open_fds();
        assert_int_equal(afz_scout_start(&scout), 0);
        assert_true(afz_scout_pid(scout) > 0);
        wait_until_told(scout, 1, &r); /* before there is a job */
        assert_int_equal(r.largest.pid, 0);
        pid_t job = start_job();
        assert_int_equal(afz_scout_watch(scout, job), 0);
        wait_until_told(scout, 2, &r);
        assert_int_equal(r.largest.pid, job);
        assert_true(r.t_ns <= afz_clock_ns(CLOCK_MONOTONIC));
        assert_true(afz_clock_ns(CLOCK_MONOTONIC) - r.t_ns < PATIENCE_NS);

        /* Another root; and one that does not exist. */
        pid_t next = start_job();
        assert_int_equal(afz_scout_watch(scout, next), 0);
        uint64_t count = r.count;
        while (r.largest.pid != (uint64_t)next)
                wait_until_told(scout, ++count, &r);
        end_job(next);
        assert_int_equal(afz_scout_watch(scout, next), 0);
        assert_int_equal(afz_scout_watch(scout, job), 0);
        while (r.largest.pid != (uint64_t)job)
                wait_until_told(scout, ++count, &r);
        assert_true(r.own_cpu_ns > 0);
        end_job(job);
        pid_t pid = afz_scout_pid(scout);
        afz_scout_stop(scout);
        afz_scout_stop(NULL);
        assert_int_equal(kill(pid, 0), -1); /* reaped */
        assert_int_equal(errno, ESRCH);
        assert_int_equal(afz_fixture_open_fds(), fds);
}

/* Whoever waits for the guard's descriptors to be closed does not wait for the scout. */
static bool pictured_within(const struct afz_scout *scout, uint64_t ns)
{
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + ns;
        while (!afz_scout_pictured(scout) && afz_clock_ns(CLOCK_MONOTONIC) < end_ns)
                nap();
        return afz_scout_pictured(scout);
}

/* It says when a picture is taken, as far as it can be; one that hangs keeps nobody waiting. */
static void test_pictures(void **state)
{
        struct afz_scout *scout;
        struct afz_scout_report r;
        (void)state;
        assert_int_equal(afz_scout_start(&scout), 0);
        assert_true(afz_scout_pictured(scout)); /* none was asked for */
        wait_until_told(scout, 1, &r);
        assert_int_equal(afz_scout_picture(scout), 0); /* of nobody */
        assert_true(pictured_within(scout, PATIENCE_NS));
        pid_t job = start_job();
        assert_int_equal(afz_scout_watch(scout, job), 0);
        assert_int_equal(afz_scout_picture(scout), 0); /* of one that it has not looked at yet */
        assert_true(pictured_within(scout, PATIENCE_NS));

        kill(afz_scout_pid(scout), SIGSTOP);
        siginfo_t info;
        assert_int_equal(waitid(P_PID, (id_t)afz_scout_pid(scout), &info, WSTOPPED), 0);
        assert_int_equal(afz_scout_picture(scout), 0);
        assert_false(pictured_within(scout, AFZ_NS_PER_S / 10));
        kill(afz_scout_pid(scout), SIGCONT);
        assert_true(pictured_within(scout, PATIENCE_NS)); /* too late, and it says so */
        afz_scout_stop(scout);
        end_job(job);
}

static void test_it_holds_nothing_of_ours(void **state)
{
        struct afz_scout *scout;
        struct afz_scout_report r;
        int fd[2];
        (void)state;
        assert_int_equal(pipe(fd), 0);
        int high = fcntl(fd[1], F_DUPFD, 200), out = dup(1);
        dup2(fd[1], 1); /* as when the guard's output is a pipe */
        assert_int_equal(afz_scout_start(&scout), 0);
        dup2(out, 1);
        close(out);
        close(high);
        close(fd[1]);
        wait_until_told(scout, 1, &r);
        struct pollfd p = {.fd = fd[0], .events = POLLIN};
        assert_int_equal(poll(&p, 1, 20000), 1);
        assert_true(p.revents & POLLHUP);
        close(fd[0]);
        afz_scout_stop(scout);
}

static void test_it_hears_no_signals(void **state)
{
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1, SIGPIPE};
        struct afz_scout *scout;
        struct afz_scout_report r;
        (void)state;
        assert_int_equal(afz_scout_start(&scout), 0);
        wait_until_told(scout, 1, &r);
        for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
                assert_int_equal(kill(afz_scout_pid(scout), signals[i]), 0);
        pid_t job = start_job();
        assert_int_equal(afz_scout_watch(scout, job), 0);
        wait_until_told(scout, r.count + 2, &r);
        assert_int_equal(getpgid(afz_scout_pid(scout)), getpgrp());
        assert_true(getpriority(PRIO_PROCESS, (id_t)afz_scout_pid(scout)) >= 0);
        end_job(job);
        afz_scout_stop(scout);
}

/* A guard that starts a scout, and something that holds the pipe open for longer than it lives. */
_Noreturn static void be_guard(int news_fd)
{
        struct afz_scout *scout;
        struct afz_scout_report r;
        if (afz_scout_start(&scout) < 0)
                _exit(1);
        while (!afz_scout_read(scout, &r))
                nap();
        pid_t pid[2] = {afz_scout_pid(scout), fork()};
        if (pid[1] > 0)
                (void)!write(news_fd, pid, sizeof pid);
        for (;;)
                pause();
}

/* A guard that is killed takes the scout with it, even where something else holds the pipe. */
static void test_it_dies_with_the_guard(void **state)
{
        int fd[2];
        pid_t pid[2] = {0};
        (void)state;
        prctl(PR_SET_CHILD_SUBREAPER, 1); /* the orphans are given to us */
        assert_int_equal(pipe(fd), 0);
        pid_t guard = fork();
        if (guard == 0)
                be_guard(fd[1]);
        assert_int_equal(read(fd[0], pid, sizeof pid), sizeof pid);
        kill(guard, SIGKILL);
        assert_int_equal(waitpid(guard, NULL, 0), guard);
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
        pid_t ended = 0;
        while ((ended = waitpid(pid[0], NULL, WNOHANG)) == 0 &&
               afz_clock_ns(CLOCK_MONOTONIC) < end_ns)
                nap();
        kill(pid[1], SIGKILL);
        assert_int_equal(waitpid(pid[1], NULL, 0), pid[1]);
        assert_int_equal(ended, pid[0]);
        prctl(PR_SET_CHILD_SUBREAPER, 0);
        close(fd[0]);
        close(fd[1]);
}

static _Atomic int *is_hanging;

static int hang(const struct afz_env *env, const char *mount_point, struct afz_fs_space *ret)
{
        (void)env, (void)mount_point, (void)ret;
        atomic_store(is_hanging, 1);
        for (;;)
                pause();
        return -EIO;
}

static int open_hanging(struct afz_env *ret)
{
        int r = afz_env_open_live(ret);
        if (r == 0)
                ret->fs_space = hang;
        return r;
}

static void test_a_file_system_that_hangs(void **state)
{
        struct afz_scout *scout;
        struct afz_scout_report r, later;
        (void)state;
        is_hanging = mmap(NULL, sizeof *is_hanging, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(is_hanging != MAP_FAILED);
        assert_int_equal(afz_scout_start_on(open_hanging, &scout), 0);
        wait_until_told(scout, 1, &r);
        pid_t job = start_job();
        assert_int_equal(afz_scout_watch(scout, job), 0);
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
        while (!atomic_load(is_hanging)) {
                assert_true(afz_clock_ns(CLOCK_MONOTONIC) < end_ns);
                nap();
        }
        /* From here on nothing new comes; the last report stands, and its time says how old. */
        for (int i = 0; i < 100000; i++)
                assert_true(afz_scout_read(scout, &later));
        assert_int_equal(later.count, r.count);
        assert_int_equal(later.t_ns, r.t_ns);
        assert_int_equal(afz_scout_watch(scout, job), 0); /* does not wait either */
        pid_t pid = afz_scout_pid(scout);
        uint64_t start_ns = afz_clock_ns(CLOCK_MONOTONIC);
        afz_scout_stop(scout);
        assert_true(afz_clock_ns(CLOCK_MONOTONIC) - start_ns < AFZ_NS_PER_S);
        assert_int_equal(kill(pid, 0), -1);
        end_job(job);
        munmap((void *)is_hanging, sizeof *is_hanging);
}

/* Gone by somebody else's hand: the guard is told, and not by SIGPIPE. */
static void test_a_scout_that_was_killed(void **state)
{
        struct afz_scout *scout;
        struct afz_scout_report r;
        (void)state;
        assert_int_equal(afz_scout_start(&scout), 0);
        wait_until_told(scout, 1, &r);
        kill(afz_scout_pid(scout), SIGKILL);
        assert_int_equal(waitpid(afz_scout_pid(scout), NULL, 0), afz_scout_pid(scout));
        assert_int_equal(afz_scout_watch(scout, getpid()), -EPIPE);
        assert_true(afz_scout_read(scout, &r));
        afz_scout_stop(scout);
}

/* For a job that is over at once. */
static void test_start_and_stop(void **state)
{
        (void)state;
        size_t fds = afz_fixture_open_fds();
        for (int i = 0; i < 50; i++) {
                struct afz_scout *scout;
                assert_int_equal(afz_scout_start(&scout), 0);
                if (i % 2)
                        assert_int_equal(afz_scout_watch(scout, getpid()), 0);
                afz_scout_stop(scout);
        }
        assert_int_equal(afz_fixture_open_fds(), fds);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_tells),
                cmocka_unit_test(test_pictures),
                cmocka_unit_test(test_it_holds_nothing_of_ours),
                cmocka_unit_test(test_it_hears_no_signals),
                cmocka_unit_test(test_it_dies_with_the_guard),
                cmocka_unit_test(test_a_file_system_that_hangs),
                cmocka_unit_test(test_a_scout_that_was_killed),
                cmocka_unit_test(test_start_and_stop),
        };
        return cmocka_run_group_tests_name("scout_live", tests, NULL, NULL);
}
