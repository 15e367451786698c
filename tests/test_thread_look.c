/* links: sense */
/* Threads that sleep, looked at from outside: what they wait for, and in which functions. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "native_stack.h"
#include "stand_still.h"
#include "thread_wait.h"

static struct afz_env env;

/* ---- the line of the kernel ---- */

static void test_parse(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                bool in_call, placed;
        } rows[] = {
                {"202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffe33f3c4a8 0x7f186bb3c503\n", true, true},
                {"0 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x2", true, true},
                {"-1 0x7ffe33f3c4a8 0x7f186bb3c503\n", false, true},
                {"running\n", false, false},
                {"-1\n", false, false},
                {"-1 0x7ffe33f3c4a8\n", false, false},
                {"-1 7ffe33f3c4a8 7f186bb3c503\n", false, false},
                {"", false, false},
                {"202\n", false, false},
                {"202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffe33f3c4a8", false, false},
                {"202 7f 80 0 0 0 0 1 2\n", false, false},
                {"202 0x7f 0x80 0x0 0x0 0x0 0x0 0xfffffffffffffffff 0x1\n", false, false},
                {"99999999999999999999 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x2\n", false, false},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                struct afz_thread_look look = {.in_call = true, .placed = true, .sp = 7};
                afz_thread_call_parse(afz_span_str(rows[i].text), &look);
                if (look.in_call != rows[i].in_call || look.placed != rows[i].placed ||
                    (!look.placed && look.sp != 7))
                        fail_msg("%s", rows[i].text);
        }
        struct afz_thread_look look = {0};
        afz_thread_call_parse(afz_span_str(rows[0].text), &look);
        assert_int_equal(look.call, 202);
        assert_int_equal(look.arg[1], 0x80);
        assert_int_equal(look.sp, 0x7ffe33f3c4a8);
        assert_int_equal(look.pc, 0x7f186bb3c503);
}

/* ---- a process that stands still ---- */

__attribute__((noinline)) static void lock_up(const int *fd)
{
        pthread_t thread;
        (void)fd;
        pthread_create(&thread, NULL, stand, NULL);
        stand_still();
        __asm__ volatile("");
}

static void read_own(const int *fd)
{
        char c;
        (void)!read(fd[0], &c, 1);
}

static void read_foreign(const int *fd)
{
        close(fd[1]); /* the other end is not in the job any more */
        read_own(fd);
}

static void poll_for_ever(const int *fd)
{
        struct pollfd p = {.fd = fd[0], .events = POLLIN};
        poll(&p, 1, -1);
}

static void poll_socket(const int *fd)
{
        struct pollfd p[2] = {{.fd = fd[0], .events = POLLIN},
                              {.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN}};
        listen(p[1].fd, 1);
        poll(p, 2, 1000000);
}

static void sleep_long(const int *fd)
{
        (void)fd;
        sleep(1000);
}

static pid_t start(void (*what)(const int *fd), const int *fd)
{
        pid_t self = getpid(), pid = fork();
        assert_true(pid >= 0);
        if (pid > 0)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == self)
                what(fd);
        _exit(0);
}

static void end(pid_t pid)
{
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Looks until so many threads sleep in a call; whoever waits until the end has found an error. */
static int look_until(pid_t pid, int threads, struct afz_thread_look *ret)
{
        for (uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + 20 * AFZ_NS_PER_S;
             afz_clock_ns(CLOCK_MONOTONIC) < end_ns;) {
                int n = afz_threads_look(&env, pid, ret, AFZ_THREADS_MAX), asleep = 0;
                for (int i = 0; i < n; i++)
                        asleep += ret[i].state == 'S' && ret[i].in_call &&
                                  afz_call_name(ret[i].call) != NULL;
                if (n >= threads && asleep >= threads)
                        return n;
                nanosleep(&(struct timespec){0, 2000000}, NULL);
        }
        fail_msg("%d threads do not sleep", threads);
        return 0;
}

static void test_waits(void **state)
{
        static const struct {
                const char *what;
                void (*does)(const int *fd);
                const char *has, *has_not;
        } rows[] = {
                {"its own pipe", read_own, " of its own pipes", "deadline"},
                {"a pipe from outside", read_foreign, " of a pipe from outside", "deadline"},
                {"polls its own pipe", poll_for_ever, " of its own pipes", "deadline"},
                {"polls a socket", poll_socket, " of a socket with a deadline", "pipes"},
                {"sleeps", sleep_long, "sleep with a deadline", " of "},
        };
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                static struct afz_thread_look look[AFZ_THREADS_MAX];
                static struct afz_job_pipes pipes;
                char line[256];
                int fd[2];
                assert_int_equal(pipe(fd), 0);
                pid_t pid = start(rows[i].does, fd);
                uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + 20 * AFZ_NS_PER_S;
                bool right;
                do { /* a sanitizer may have it sleep elsewhere on the way */
                        look_until(pid, 1, look);
                        pipes.count = 0;
                        afz_job_pipes_add(&env, pid, &pipes);
                        afz_thread_wait_line(&env, pid, &look[0], &pipes, line, sizeof line);
                        right = strstr(line, rows[i].has) && !strstr(line, rows[i].has_not) &&
                                strstr(line, ", slept ");
                } while (!right && afz_clock_ns(CLOCK_MONOTONIC) < end_ns);
                end(pid);
                close(fd[0]);
                close(fd[1]);
                if (!right)
                        fail_msg("%s: %s", rows[i].what, line);
        }
}

/* Where Yama hides the calls: no promise about the end. */
static void test_hidden_call(void **state)
{
        static const struct afz_job_pipes pipes;
        static const struct afz_thread_look hidden = {.wait = "futex_do_wait"},
                                            nothing = {.tid = 1};
        char line[100];
        (void)state;
        afz_thread_wait_line(&env, getpid(), &hidden, &pipes, line, sizeof line);
        assert_string_equal(line, "futex_do_wait perhaps with a deadline");
        afz_thread_wait_line(&env, getpid(), &nothing, &pipes, line, sizeof line);
        assert_string_equal(line, "");
}

/* Whether a thread stands where the test has it. A sanitizer's own thread does not, and one of ours
 * may sleep in its hands on the way there. */
static bool stands(struct afz_native *native, const struct afz_thread_look *look,
                   const char *caller)
{
        struct afz_native_frame frame[AFZ_NATIVE_FRAMES];
        bool found = false, called = false;
        if (!look->in_call || strcmp(afz_call_name(look->call), "futex") != 0)
                return false;
        int frames =
                afz_native_thread(native, look->tid, look->sp, look->pc, frame, AFZ_NATIVE_FRAMES);
        for (int k = 0; k < frames; k++) {
                found |= strcmp(frame[k].function, "stand_still") == 0;
                called |= strcmp(frame[k].function, caller) == 0;
        }
        /* Registers that lead nowhere are no harm. */
        (void)afz_native_thread(native, look->tid, 0, look->pc, frame, 1);
        (void)afz_native_thread(native, look->tid, UINT64_MAX - 7, 1, frame, AFZ_NATIVE_FRAMES);
        return found && called;
}

static void test_frames(void **state)
{
        static struct afz_thread_look look[AFZ_THREADS_MAX];
        struct afz_native *native;
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + 20 * AFZ_NS_PER_S;
        int standing;
        (void)state;
        pid_t pid = start(lock_up, NULL);
        int n = look_until(pid, 2, look);
        int r = afz_native_open(pid, &native);
        if (r < 0) {
                end(pid);
                assert_int_equal(r, -ENOTSUP);
                skip();
        }
        do {
                standing = stands(native, &look[0], "lock_up");
                for (int i = 1; i < n; i++)
                        standing += stands(native, &look[i], "stand");
                if (standing < 2)
                        n = look_until(pid, 2, look);
        } while (standing < 2 && afz_clock_ns(CLOCK_MONOTONIC) < end_ns);
        assert_int_equal(standing, 2);
        afz_native_close(native);
        /* It sleeps on: nobody has woken it. */
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        end(pid);
        afz_native_close(NULL);
        assert_true(afz_native_open(pid, &native) < 0);
        assert_int_equal(afz_threads_look(&env, pid, look, AFZ_THREADS_MAX), -ESRCH);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_waits),
                cmocka_unit_test(test_hidden_call),
                cmocka_unit_test(test_frames),
        };
        if (afz_env_open_live(&env) < 0)
                return 77;
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        afz_env_done(&env);
        return r;
}
