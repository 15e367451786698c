#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "checkpoint.h"
#include "clock.h"
#include "control_fixture.h"
#include "fixture.h"

#define S AFZ_NS_PER_S

enum { PATIENCE_MS = 30000 }; /* for a process to start, on the slowest machine */

static void start(struct afz_checkpoint *c, struct afz_control *control, int sig, const char *cmd)
{
        assert_int_equal(afz_checkpoint_init(c, &(struct afz_checkpoint_setup){.control = control,
                                                                               .signal = sig,
                                                                               .command = cmd,
                                                                               .wait_ns = 10 * S}),
                         0);
}

static void test_nobody(void **state)
{
        struct afz_checkpoint c;
        (void)state;
        start(&c, NULL, 0, NULL);
        assert_false(afz_checkpoint_can(&c));
        assert_int_equal(afz_checkpoint_turn(&c, S), AFZ_ACK_NONE);
        assert_int_equal(afz_checkpoint_ask(&c, S), AFZ_CHECKPOINT_NOBODY);
        assert_int_equal(afz_checkpoint_turn(&c, S), AFZ_ACK_CANNOT);
        afz_checkpoint_done(&c);
}

static void test_signal(void **state)
{
        struct afz_checkpoint c;
        (void)state;
        start(&c, NULL, SIGUSR1, NULL);
        assert_true(afz_checkpoint_can(&c));
        assert_int_equal(afz_checkpoint_ask(&c, 5 * S), AFZ_CHECKPOINT_SIGNAL);
        assert_int_equal(afz_checkpoint_turn(&c, 5 * S), AFZ_ACK_ASKED);
        assert_int_equal(afz_checkpoint_turn(&c, 15 * S - 1), AFZ_ACK_ASKED);
        assert_string_equal(afz_checkpoint_words(&c), "");
        assert_int_equal(afz_checkpoint_turn(&c, 15 * S), AFZ_ACK_CANNOT);
        assert_string_equal(afz_checkpoint_words(&c), "signal 10 was sent 10 s before; it has no "
                                                      "answer");
        /* Once more, later. */
        assert_int_equal(afz_checkpoint_ask(&c, 100 * S), AFZ_CHECKPOINT_SIGNAL);
        assert_int_equal(afz_checkpoint_turn(&c, 109 * S), AFZ_ACK_ASKED);
        afz_checkpoint_done(&c);
}

static void test_agents_come_first(void **state)
{
        struct world *w = world_new();
        struct afz_checkpoint c;
        (void)state;
        start(&c, w->control, SIGUSR1, "exit 0");
        int fd = agent(w, "hello a 1 checkpoint");
        assert_int_equal(afz_checkpoint_ask(&c, 5 * S), AFZ_CHECKPOINT_AGENT);
        assert_string_equal(get(fd), "checkpoint 1 10000");
        assert_int_equal(afz_checkpoint_turn(&c, 6 * S), AFZ_ACK_ASKED);
        (void)ask(w, fd, "saving 1");
        assert_int_equal(afz_checkpoint_turn(&c, 6 * S), AFZ_ACK_SAVING);
        (void)ask(w, fd, "saved 1 /ckpt/9.pt");
        assert_int_equal(afz_checkpoint_turn(&c, 7 * S), AFZ_ACK_SAVED);
        assert_string_equal(afz_checkpoint_words(&c), "saved to /ckpt/9.pt");

        assert_int_equal(afz_checkpoint_ask(&c, 20 * S), AFZ_CHECKPOINT_AGENT);
        (void)ask(w, fd, "saving 2");
        assert_int_equal(afz_checkpoint_turn(&c, 30 * S), AFZ_ACK_CANNOT);
        assert_string_equal(afz_checkpoint_words(&c), "not saved within 10 s");

        assert_int_equal(afz_checkpoint_ask(&c, 40 * S), AFZ_CHECKPOINT_AGENT);
        (void)ask(w, fd, "cannot 3 disk full");
        assert_int_equal(afz_checkpoint_turn(&c, 41 * S), AFZ_ACK_CANNOT);
        assert_string_equal(afz_checkpoint_words(&c), "not saved: disk full");

        assert_int_equal(afz_checkpoint_ask(&c, 50 * S), AFZ_CHECKPOINT_AGENT);
        close(fd);
        turn(w);
        assert_int_equal(afz_checkpoint_turn(&c, 51 * S), AFZ_ACK_CANNOT);
        assert_string_equal(afz_checkpoint_words(&c), "not saved: the agent has gone");
        /* Nobody listens any more: the next request goes the other way. */
        assert_int_equal(afz_checkpoint_ask(&c, 60 * S), AFZ_CHECKPOINT_SIGNAL);
        afz_checkpoint_done(&c);
        world_free(w);
}

/* What was asked of an attempt is not what the next one did. */
static void test_next_attempt(void **state)
{
        struct world *w = world_new();
        struct afz_checkpoint c;
        (void)state;
        start(&c, w->control, 0, NULL);
        int fd = agent(w, "hello a 1 checkpoint");
        assert_int_equal(afz_checkpoint_ask(&c, 5 * S), AFZ_CHECKPOINT_AGENT);
        (void)ask(w, fd, "saved 1 /ckpt/9.pt");
        assert_int_equal(afz_checkpoint_turn(&c, 6 * S), AFZ_ACK_SAVED);
        afz_checkpoint_job(&c, 4243);
        assert_int_equal(afz_checkpoint_turn(&c, 7 * S), AFZ_ACK_NONE);
        assert_string_equal(afz_checkpoint_words(&c), "");
        assert_int_equal(afz_checkpoint_ask(&c, 8 * S), AFZ_CHECKPOINT_AGENT);
        assert_int_equal(afz_checkpoint_turn(&c, 9 * S), AFZ_ACK_ASKED);
        close(fd);
        afz_checkpoint_done(&c);
        world_free(w);
}

/* Until the helper has said something; the injected clock stands still meanwhile. */
static enum afz_ack wait_for_command(struct afz_checkpoint *c, uint64_t now_ns)
{
        enum afz_ack ack = afz_checkpoint_turn(c, now_ns);
        while (ack == AFZ_ACK_ASKED) {
                struct pollfd fd = {.fd = c->helper_fd, .events = POLLIN};
                assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
                ack = afz_checkpoint_turn(c, now_ns);
        }
        return ack;
}

static void test_command_ends(void **state)
{
        static const struct {
                const char *command;
                enum afz_ack ack;
                const char *words;
        } cases[] = {
                {"true", AFZ_ACK_SAVED, "the checkpoint command has saved"},
                {"exit 3", AFZ_ACK_CANNOT, "the checkpoint command failed (status 3)"},
                {"/nonexistent/x 2>&-", AFZ_ACK_CANNOT,
                 "the checkpoint command failed (status 127)"},
                {"kill -9 $$", AFZ_ACK_CANNOT, "the checkpoint command died of signal 9"},
                {"test \"$ANTIFREEZE_PID\" = 4242", AFZ_ACK_SAVED,
                 "the checkpoint command has saved"},
        };
        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct afz_checkpoint c;
                start(&c, NULL, 0, cases[i].command);
                afz_checkpoint_job(&c, 4242);
                assert_true(afz_checkpoint_can(&c));
                for (uint64_t again = 1; again <= 3; again++) {
                        assert_int_equal(afz_checkpoint_ask(&c, again * S), AFZ_CHECKPOINT_COMMAND);
                        assert_int_equal(wait_for_command(&c, again * S), cases[i].ack);
                        assert_string_equal(afz_checkpoint_words(&c), cases[i].words);
                }
                afz_checkpoint_done(&c);
        }
}

/* With a signal as well, the command's end is the answer. */
static void test_signal_and_command(void **state)
{
        struct afz_checkpoint c;
        (void)state;
        start(&c, NULL, SIGUSR2, "true");
        assert_int_equal(afz_checkpoint_ask(&c, S), AFZ_CHECKPOINT_SIGNAL);
        assert_int_equal(wait_for_command(&c, S), AFZ_ACK_SAVED);
        afz_checkpoint_done(&c);
}

/* A command that holds a pipe open as long as it, or a child of it, lives. */
static void open_lifeline(char *ret_command, size_t cap, const char *work, int *ret_fd, char *dir)
{
        char path[96];
        strcpy(dir, "/tmp/afz-checkpoint-XXXXXX");
        assert_non_null(mkdtemp(dir));
        snprintf(path, sizeof path, "%s/life", dir);
        assert_int_equal(mkfifo(path, 0600), 0);
        *ret_fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        assert_true(*ret_fd >= 0);
        snprintf(ret_command, cap, "exec 9>%s; echo begun >&9; %s", path, work);
}

static void close_lifeline(int fd, const char *dir)
{
        char path[96];
        snprintf(path, sizeof path, "%s/life", dir);
        unlink(path);
        rmdir(dir);
        close(fd);
}

/* Between two writers the pipe says that its end has come; that is looked at again. */
static void wait_begun(int fd)
{
        char text[16];
        ssize_t n = 0;
        for (int ms = 0; n <= 0 && ms < PATIENCE_MS; ms++) {
                n = read(fd, text, sizeof text);
                if (n <= 0)
                        (void)poll(NULL, 0, 1);
        }
        assert_int_equal(n, 6);
}

static void wait_ended(int fd)
{
        struct pollfd p = {.fd = fd};
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        assert_true(p.revents & POLLHUP);
}

static void test_command_too_slow(void **state)
{
        struct afz_checkpoint c;
        char command[192], dir[64];
        int life;
        (void)state;
        open_lifeline(command, sizeof command, "sleep 1000 & sleep 1000; true", &life, dir);
        start(&c, NULL, 0, command);
        assert_int_equal(afz_checkpoint_ask(&c, S), AFZ_CHECKPOINT_COMMAND);
        wait_begun(life);
        assert_int_equal(afz_checkpoint_turn(&c, 2 * S), AFZ_ACK_ASKED);
        assert_int_equal(afz_checkpoint_turn(&c, 11 * S), AFZ_ACK_CANNOT);
        assert_string_equal(afz_checkpoint_words(&c),
                            "the checkpoint command took longer than 10 s");
        wait_ended(life); /* with the child it left in the background */
        /* A second one while the first still runs: that is given up. */
        assert_int_equal(afz_checkpoint_ask(&c, 20 * S), AFZ_CHECKPOINT_COMMAND);
        wait_begun(life);
        assert_int_equal(afz_checkpoint_ask(&c, 21 * S), AFZ_CHECKPOINT_COMMAND);
        wait_begun(life);
        afz_checkpoint_done(&c);
        wait_ended(life);
        close_lifeline(life, dir);
}

/* The guard is killed: helper and command go with it. */
static void test_guard_dies(void **state)
{
        char command[192], dir[64];
        int life;
        (void)state;
        open_lifeline(command, sizeof command, "sleep 1000", &life, dir);
        pid_t guard = fork();
        if (guard == 0) {
                struct afz_checkpoint c;
                start(&c, NULL, 0, command);
                (void)afz_checkpoint_ask(&c, S);
                for (;;)
                        pause();
        }
        wait_begun(life);
        assert_int_equal(kill(guard, SIGKILL), 0);
        assert_int_equal(waitpid(guard, NULL, 0), guard);
        wait_ended(life);
        close_lifeline(life, dir);
}

static void test_helper_dies(void **state)
{
        struct afz_checkpoint c;
        (void)state;
        start(&c, NULL, SIGUSR1, "sleep 1000");
        pid_t helper = c.helper;
        assert_int_equal(afz_checkpoint_ask(&c, S), AFZ_CHECKPOINT_SIGNAL);
        assert_int_equal(kill(helper, SIGKILL), 0);
        assert_int_equal(waitpid(helper, NULL, 0), helper);
        afz_checkpoint_reaped(&c, helper);
        afz_checkpoint_reaped(&c, 1);
        assert_int_equal(wait_for_command(&c, S), AFZ_ACK_CANNOT);
        assert_int_equal(afz_checkpoint_ask(&c, 2 * S), AFZ_CHECKPOINT_SIGNAL);
        assert_int_equal(afz_checkpoint_turn(&c, 2 * S), AFZ_ACK_ASKED);
        afz_checkpoint_done(&c);
}

/* The command has the standard descriptors and nothing of the guard's; what it prints is not in
 * CMD's output. */
static void test_command_is_alone(void **state)
{
        struct afz_checkpoint c;
        int out[2], before_fd = dup(STDOUT_FILENO);
        (void)state;
        fflush(NULL);
        assert_int_equal(pipe(out), 0); /* without O_CLOEXEC */
        assert_int_equal(dup2(out[1], STDOUT_FILENO), STDOUT_FILENO);
        start(&c, NULL, 0, "test ! -e /proc/self/fd/4 && read x; test \"$x\" = '' && exit 0");
        assert_int_equal(dup2(before_fd, STDOUT_FILENO), STDOUT_FILENO);
        close(out[1]);
        assert_int_equal(afz_checkpoint_ask(&c, S), AFZ_CHECKPOINT_COMMAND);
        assert_int_equal(wait_for_command(&c, S), AFZ_ACK_SAVED);
        char text[8];
        struct pollfd p = {.fd = out[0], .events = POLLIN};
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        assert_int_equal(read(out[0], text, sizeof text), 0); /* nobody holds the other end */
        afz_checkpoint_done(&c);
        close(out[0]);
        close(before_fd);
}

static void test_nothing_is_left(void **state)
{
        size_t before = afz_fixture_open_fds();
        (void)state;
        for (int i = 0; i < 20; i++) {
                struct afz_checkpoint c;
                start(&c, NULL, 0, "sleep 1000");
                (void)afz_checkpoint_ask(&c, S);
                afz_checkpoint_done(&c);
                afz_checkpoint_done(&c);
        }
        assert_int_equal(afz_fixture_open_fds(), before);
        while (waitpid(-1, NULL, 0) > 0) /* whoever needs longer on a busy machine ends as well */
                ;
        assert_int_equal(errno, ECHILD);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nobody),
                cmocka_unit_test(test_signal),
                cmocka_unit_test(test_agents_come_first),
                cmocka_unit_test(test_next_attempt),
                cmocka_unit_test(test_command_ends),
                cmocka_unit_test(test_signal_and_command),
                cmocka_unit_test(test_command_too_slow),
                cmocka_unit_test(test_guard_dies),
                cmocka_unit_test(test_helper_dies),
                cmocka_unit_test(test_command_is_alone),
                cmocka_unit_test(test_nothing_is_left),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
