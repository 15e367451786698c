#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "spawn_held.h"

#define ARGV(...) ((char *const *)(uintptr_t)(const char *const[]){__VA_ARGS__, NULL})

static void start(struct afz_spawn *s, struct afz_spawn_plan plan)
{
        assert_int_equal(afz_spawn_start(&plan, s), 0);
}

static int status_of(struct afz_spawn *s)
{
        int status;
        assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
        afz_spawn_done(s);
        return status;
}

/* Runs a shell line with its output in a pipe, and gives what it said. */
static void say(struct afz_spawn_plan plan, char *buf, size_t cap)
{
        int out[2], before = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        struct afz_spawn s;
        size_t n = 0;
        ssize_t got;
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        dup2(out[1], STDOUT_FILENO);
        start(&s, plan);
        dup2(before, STDOUT_FILENO);
        close(before);
        close(out[1]);
        assert_int_equal(afz_spawn_go(&s), 0);
        while (n < cap - 1 && (got = read(out[0], buf + n, cap - 1 - n)) > 0)
                n += (size_t)got;
        buf[n] = '\0';
        close(out[0]);
        assert_int_equal(status_of(&s), 0);
}

static void test_waits_for_the_word(void **state)
{
        (void)state;
        struct afz_spawn s;
        struct stat exe, ours;
        char path[64];
        start(&s, (struct afz_spawn_plan){.argv = ARGV("false")});
        snprintf(path, sizeof path, "/proc/%d/exe", (int)s.pid);
        assert_int_equal(stat(path, &exe), 0);
        assert_int_equal(stat("/proc/self/exe", &ours), 0);
        assert_true(exe.st_ino == ours.st_ino); /* still we ourselves */
        assert_true(s.pidfd >= 0);
        assert_int_equal(afz_spawn_go(&s), 0);
        int status = status_of(&s);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void test_why_not(void **state)
{
        char dir[] = "/tmp/afz-spawn-XXXXXX", path[64], *before = strdup(getenv("PATH"));
        static const struct {
                const char *cmd, *path;
                int error;
        } table[] = {
                {"afz-no-such-command", NULL, -ENOENT},
                {"", NULL, -ENOENT},
                {"/", NULL, -EACCES},
                {"plain", "dir", -EACCES}, /* found along PATH, not executable */
                {"true", "dir", -ENOENT},  /* the caller's PATH, not some other */
                {"/etc/passwd/x", NULL, -ENOTDIR},
        };
        (void)state;
        assert_non_null(mkdtemp(dir));
        snprintf(path, sizeof path, "%s/plain", dir);
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                struct afz_spawn s;
                setenv("PATH", table[i].path ? dir : before, 1);
                start(&s, (struct afz_spawn_plan){.argv = ARGV(table[i].cmd)});
                pid_t pid = s.pid;
                assert_int_equal(afz_spawn_go(&s), table[i].error);
                assert_int_equal(s.pid, 0);
                assert_int_equal(waitpid(pid, NULL, WNOHANG), -1); /* reaped */
                afz_spawn_done(&s);
        }
        setenv("PATH", before, 1);
        free(before);
        unlink(path);
        rmdir(dir);
}

static void test_script_without_interpreter_line(void **state)
{
        char path[] = "/tmp/afz-script-XXXXXX", buf[32];
        int fd = mkostemp(path, O_CLOEXEC);
        (void)state;
        assert_int_equal(write(fd, "echo hello\n", 11), 11);
        fchmod(fd, 0755);
        close(fd);
        say((struct afz_spawn_plan){.argv = ARGV(path)}, buf, sizeof buf);
        assert_string_equal(buf, "hello\n");
        unlink(path);
}

static void on_signal(int s)
{
        (void)s;
}

/* What CMD sees of signals is what our caller gave, not what we made of it. */
static void test_signals(void **state)
{
        sigset_t all, before, given;
        char buf[4096];
        unsigned long long blocked = 0, ignored = 0, caught = 0;
        (void)state;
        signal(SIGUSR2, on_signal);
        signal(SIGHUP, SIG_IGN);
        sigfillset(&all);
        sigemptyset(&given);
        sigaddset(&given, SIGUSR1);
        sigprocmask(SIG_SETMASK, &all, &before);
        say((struct afz_spawn_plan){.argv = ARGV("cat", "/proc/self/status"),
                                    .mask = &given,
                                    .ignore_sigchld = true},
            buf, sizeof buf);
        sigprocmask(SIG_SETMASK, &before, NULL);
        signal(SIGUSR2, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        const char *lines = strstr(buf, "SigBlk:");
        assert_non_null(lines);
        assert_int_equal(sscanf(lines, "SigBlk: %llx SigIgn: %llx SigCgt: %llx", &blocked, &ignored,
                                &caught),
                         3);
        assert_true(blocked == 1ULL << (SIGUSR1 - 1));
        assert_true(ignored >> (SIGHUP - 1) & 1);
        assert_true(ignored >> (SIGCHLD - 1) & 1);
        assert_true(caught == 0);
}

static void test_environment(void **state)
{
        char buf[64];
        (void)state;
        setenv("AFZ_TEST_A", "old", 1);
        setenv("AFZ_TEST_AB", "kept", 1);
        say((struct afz_spawn_plan){.argv = ARGV("sh", "-c",
                                                 "echo $AFZ_TEST_A $AFZ_TEST_AB $AFZ_TEST_C"),
                                    .environ_add = (const char *const[]){"AFZ_TEST_A=new",
                                                                         "AFZ_TEST_C=c", NULL}},
            buf, sizeof buf);
        assert_string_equal(buf, "new kept c\n");
        assert_string_equal(getenv("AFZ_TEST_A"), "old");
}

static void test_oom_score_nice_and_limits(void **state)
{
        char buf[64], want[64], own[16] = "";
        struct afz_spawn_limit limit = {RLIMIT_NOFILE, {0}};
        int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
        (void)state;
        assert_true(read(fd, own, sizeof own - 1) > 0);
        close(fd);
        getrlimit(RLIMIT_NOFILE, &limit.value);
        limit.value.rlim_cur = 77;
        char line[] = "cat /proc/self/oom_score_adj; nice; ulimit -n";
        struct afz_spawn_plan plan = {.argv = ARGV("sh", "-c", line),
                                      .oom_score_adj = atoi(own) + 7,
                                      .nice = 2,
                                      .limit = &limit,
                                      .limits = 1};
        say(plan, buf, sizeof buf);
        int nice_now = getpriority(PRIO_PROCESS, 0) + 2;
        snprintf(want, sizeof want, "%d\n%d\n77\n", atoi(own) + 7, nice_now > 19 ? 19 : nice_now);
        assert_string_equal(buf, want);
        plan.oom_score_adj = atoi(own) - 1; /* lower than now: left alone */
        plan.argv = ARGV("cat", "/proc/self/oom_score_adj");
        say(plan, buf, sizeof buf);
        assert_int_equal(atoi(buf), atoi(own));
}

/* A parent that dies before the word: the child must end, and without having run anything, though
 * somebody else still holds the other end of its pipe. */
static void test_parent_dies(void **state)
{
        int alive[2], told[2];
        char c;
        (void)state;
        assert_int_equal(pipe2(alive, O_CLOEXEC), 0);
        assert_int_equal(pipe2(told, O_CLOEXEC), 0);
        pid_t parent = fork();
        if (parent == 0) {
                struct afz_spawn s;
                afz_spawn_start(&(struct afz_spawn_plan){.argv = ARGV("sleep", "1000")}, &s);
                pid_t holder = fork();
                if (holder == 0) {
                        close(alive[1]);
                        pause();
                        _exit(0);
                }
                (void)!write(told[1], &holder, sizeof holder);
                _exit(0);
        }
        pid_t holder;
        assert_int_equal(read(told[0], &holder, sizeof holder), sizeof holder);
        assert_int_equal(waitpid(parent, NULL, 0), parent);
        close(alive[1]);
        struct pollfd p = {.fd = alive[0], .events = POLLIN};
        assert_int_equal(poll(&p, 1, 10000), 1); /* the child was the last with the other end */
        assert_int_equal(read(alive[0], &c, 1), 0);
        kill(holder, SIGKILL);
        close(alive[0]);
        close(told[0]);
        close(told[1]);
}

static void test_no_parent_death_signal(void **state)
{
        char buf[32];
        (void)state;
        say(
                (struct afz_spawn_plan){
                        .argv = ARGV(
                                "/usr/bin/python3", "-c",
                                "import ctypes\nn = ctypes.c_int(-1)\n"
                                "ctypes.CDLL(None).prctl(2, ctypes.byref(n))\nprint(n.value)")},
                buf, sizeof buf);
        assert_string_equal(buf, "0\n");
}

static void test_given_up(void **state)
{
        size_t fds = afz_fixture_open_fds();
        struct afz_spawn s;
        (void)state;
        start(&s, (struct afz_spawn_plan){.argv = ARGV("sleep", "1000")});
        pid_t pid = s.pid;
        afz_spawn_done(&s);
        afz_spawn_done(&s);
        assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
        assert_int_equal(afz_fixture_open_fds(), fds);
}

/* Killed while it waited: the word goes nowhere, and that raises no SIGPIPE here. */
static void test_killed_while_waiting(void **state)
{
        struct afz_spawn s;
        (void)state;
        start(&s, (struct afz_spawn_plan){.argv = ARGV("true")});
        kill(s.pid, SIGKILL);
        siginfo_t info;
        assert_int_equal(waitid(P_PID, (id_t)s.pid, &info, WEXITED | WNOWAIT), 0);
        assert_int_equal(afz_spawn_go(&s), 0);
        int status = status_of(&s);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Of the pipes that we made ourselves, CMD has none: only those that the test was given. */
static void test_no_descriptor_leaks(void **state)
{
        char buf[4096];
        (void)state;
        say((struct afz_spawn_plan){.argv = ARGV("ls", "-l", "/proc/self/fd")}, buf, sizeof buf);
        for (char *line = strtok(buf, "\n"); line; line = strtok(NULL, "\n")) {
                int fd;
                const char *arrow = strstr(line, " -> pipe:");
                while (arrow && arrow > line && arrow[-1] != ' ')
                        arrow--;
                if (!arrow || sscanf(arrow, "%d", &fd) != 1 || fd < 3)
                        continue;
                int flags = fcntl(fd, F_GETFD);
                assert_true(flags >= 0 && !(flags & FD_CLOEXEC));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_waits_for_the_word),
                cmocka_unit_test(test_why_not),
                cmocka_unit_test(test_script_without_interpreter_line),
                cmocka_unit_test(test_signals),
                cmocka_unit_test(test_environment),
                cmocka_unit_test(test_oom_score_nice_and_limits),
                cmocka_unit_test(test_parent_dies),
                cmocka_unit_test(test_no_parent_death_signal),
                cmocka_unit_test(test_given_up),
                cmocka_unit_test(test_killed_while_waiting),
                cmocka_unit_test(test_no_descriptor_leaks),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
