#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proc_fixture.h"
#include "stop.h"

/* Runs a shell line that says what happens to it; the pipe ends when all of it has ended. */
static pid_t run(const char *program, const char *line, int *ret_fd)
{
        int out[2];
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0) {
                dup2(out[1], STDOUT_FILENO);
                execlp(program, program, "-c", line, (char *)NULL);
                _exit(127);
        }
        close(out[1]);
        *ret_fd = out[0];
        return pid;
}

/* Reads until the text is there, or the end. */
static void hear(int fd, const char *until, char *buf, size_t cap)
{
        size_t n = 0;
        buf[0] = '\0';
        while (n < cap - 1 && !(until && strstr(buf, until))) {
                struct pollfd p = {.fd = fd, .events = POLLIN};
                assert_int_equal(poll(&p, 1, 20000), 1);
                ssize_t got = read(fd, buf + n, cap - 1 - n);
                if (got <= 0)
                        break;
                n += (size_t)got;
                buf[n] = '\0';
        }
}

static void test_shell_and_its_children(void **state)
{
        struct afz_env env;
        char buf[256];
        int fd;
        (void)state;
        assert_int_equal(afz_env_open_live(&env), 0);
        /* The inner shell is a direct child; what it runs in turn is not ours to signal. */
        pid_t pid = run("sh",
                        "trap 'echo root' TERM; "
                        "sh -c 'trap \"echo child; exit\" TERM; "
                        "sh -c \"trap \\\"echo grandchild\\\" TERM; echo ready; "
                        "sleep 0.5; exit 0\" & "
                        "while :; do wait; done' & "
                        "wait; wait; exit 0",
                        &fd);
        hear(fd, "ready\n", buf, sizeof buf);
        assert_int_equal(afz_stop_signal(&env, pid, -1, 0, SIGTERM), 2);
        hear(fd, NULL, buf, sizeof buf);
        assert_non_null(strstr(buf, "root"));
        assert_null(strstr(buf, "grandchild"));
        assert_non_null(strstr(buf, "child"));
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        close(fd);
        afz_env_done(&env);
}

static void test_program_alone(void **state)
{
        struct afz_env env;
        char buf[256];
        int fd, status;
        (void)state;
        assert_int_equal(afz_env_open_live(&env), 0);
        pid_t pid = run("/usr/bin/python3",
                        "import subprocess, sys, os, signal\n"
                        "def on(*a):\n"
                        "    os.write(1, b'root ')\n"
                        "    p.stdin.close()\n"
                        "    p.wait()\n"
                        "    os._exit(0)\n"
                        "signal.signal(signal.SIGTERM, on)\n"
                        "p = subprocess.Popen([sys.executable, '-c', 'import signal, sys, os; "
                        "signal.signal(signal.SIGTERM, lambda *a: os.write(1, b\"worker\")); "
                        "print(\"ready\", flush=True); sys.stdin.read()'], stdin=subprocess.PIPE)\n"
                        "while True: signal.pause()\n",
                        &fd);
        hear(fd, "ready\n", buf, sizeof buf);
        assert_int_equal(afz_stop_signal(&env, pid, -1, 0, SIGTERM), 1);
        hear(fd, NULL, buf, sizeof buf);
        assert_string_equal(buf, "root ");
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        /* Its number may be anybody's by now. */
        assert_int_equal(afz_stop_signal(&env, pid, -1, 1, SIGTERM), -ESRCH);
        close(fd);
        afz_env_done(&env);
}

static void test_not_that_process(void **state)
{
        struct afz_env env;
        int status;
        (void)state;
        assert_int_equal(afz_env_open_live(&env), 0);
        pid_t pid = fork();
        if (pid == 0) {
                pause();
                _exit(0);
        }
        /* It lives, but started at another time than the one that is meant. */
        assert_int_equal(afz_stop_signal(&env, pid, -1, 1, SIGKILL), -ESRCH);
        assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        afz_env_done(&env);
}

static void test_what_is_a_shell(void **state)
{
        static const struct {
                const char *exe, *comm;
                bool shell;
        } table[] = {
                {"-> /usr/bin/bash", "bash", true},
                {"-> /bin/dash", "x", true},
                {"-> /usr/bin/dash (deleted)", "sh", true},
                {"-> /bin/busybox", "sh", true},
                {"-> /bin/busybox", "tail", false},
                {"-> /usr/bin/python3.11", "bash", false}, /* calls itself a shell */
                {"-> /usr/bin/bashful", "bashful", false},
                {NULL, "zsh", true}, /* may not be read: its own word */
                {NULL, "python3", false},
                {NULL, "foo) Z 1", false},
        };
        static const struct afz_fixture_row machine[] = {{"proc/loadavg", "0 0 0 1/1 1\n"}, {0}};
        (void)state;
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                struct afz_watched w;
                afz_watched_init(&w, afz_fixture_new(machine));
                afz_watched_proc(
                        &w, (struct afz_fake_proc){.pid = 7, .ppid = 1, .comm = table[i].comm});
                if (table[i].exe)
                        afz_watched_set(&w, 7, "exe", table[i].exe);
                assert_int_equal(afz_stop_is_shell(&w.env, 7), table[i].shell);
                afz_watched_done(&w);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_shell_and_its_children),
                cmocka_unit_test(test_program_alone),
                cmocka_unit_test(test_not_that_process),
                cmocka_unit_test(test_what_is_a_shell),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
