#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/wait.h>

#include "clock.h"
#include "control_fixture.h"

static void test_place(void **state)
{
        struct world *w = world_new();
        struct afz_control *other = NULL;
        const struct afz_control_calls none = {0};
        struct stat st;
        char path[256];
        (void)state;

        assert_int_equal(stat(w->path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        /* What stands there is somebody's, and stays. */
        assert_int_equal(afz_control_new(w->path, "x", &none, &other), -EADDRINUSE);
        assert_int_equal(stat(w->path, &st), 0);

        snprintf(path, sizeof path, "%s/%0*d", w->dir, 120, 0);
        assert_int_equal(afz_control_new(path, "x", &none, &other), -ENAMETOOLONG);
        assert_int_equal(afz_control_new("", "x", &none, &other), -EINVAL);
        snprintf(path, sizeof path, "%s/none/x", w->dir);
        assert_int_equal(afz_control_new(path, "x", &none, &other), -ENOENT);

        snprintf(path, sizeof path, "%s/y", w->dir);
        assert_int_equal(chmod(w->dir, 0755), 0);
        assert_int_equal(afz_control_new(path, "x", &none, &other), -EPERM);
        assert_int_equal(chmod(w->dir, 0700), 0);
        char link[128];
        strcat(strcpy(link, w->dir), "-link");
        assert_int_equal(symlink(w->dir, link), 0);
        snprintf(path, sizeof path, "%s/y", link);
        assert_true(afz_control_new(path, "x", &none, &other) < 0);
        assert_int_equal(unlink(link), 0);
        assert_null(other);
        world_free(w);
        afz_control_free(NULL);
}

static void test_hello(void **state)
{
        struct world *w = world_new();
        (void)state;
        assert_false(afz_control_can_checkpoint(w->control));
        int plain = agent(w, "hello script 1");
        assert_false(afz_control_can_checkpoint(w->control));
        int saver = agent(w, "hello agent 1 checkpoint\n");
        assert_true(afz_control_can_checkpoint(w->control));
        close(saver);
        turn(w);
        assert_false(afz_control_can_checkpoint(w->control));

        int old = client(w);
        assert_string_equal(ask(w, old, "hello agent 2 checkpoint"),
                            "error this guard speaks version 1 only");
        assert_string_equal(get(old), "<end>");
        int mad = client(w);
        assert_string_equal(ask(w, mad, "GET / HTTP/1.1"),
                            "error it is one of: hello, saving, saved, cannot, event, set, status");
        assert_string_equal(get(mad), "<end>");
        close(plain);
        close(old);
        close(mad);
        world_free(w);
}

static void test_set(void **state)
{
        struct world *w = world_new();
        int fd = client(w);
        (void)state;
        assert_string_equal(ask(w, fd, "set swap 4096"), "ok budget 4096");
        assert_int_equal(w->which, AFZ_CONTROL_SET_SWAP);
        assert_int_equal(w->bytes, 4096);
        w->refuse = true;
        assert_string_equal(ask(w, fd, "set budget 1"), "error it needs more?than that");
        /* A refusal by the guard is no nonsense: the client stays. */
        assert_string_equal(ask(w, fd, "status"), "status {\"need_bytes\":5}");
        assert_int_equal(w->sets, 2);
        close(fd);
        world_free(w);
}

static void in_child(void (*work)(void *), void *ctx)
{
        pid_t pid = fork();
        if (pid == 0) {
                work(ctx);
                _exit(0);
        }
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

struct spoken {
        int fd;
        const char *path, *line;
};

static void send_line(void *ctx)
{
        const struct spoken *s = ctx;
        if (s->path) {
                struct sockaddr_un address = {.sun_family = AF_UNIX};
                snprintf(address.sun_path, sizeof address.sun_path, "%s", s->path);
                if (connect(s->fd, (struct sockaddr *)&address, sizeof address) < 0)
                        _exit(1);
        }
        if (send(s->fd, s->line, strlen(s->line), MSG_NOSIGNAL) < 0)
                _exit(2);
}

/* The job may look, and may not change its own limits, by whatever way. */
static void test_set_by_the_job(void **state)
{
        static const char refusal[] = "error the job may not change its own limits";
        struct world *w = world_new();
        int fd = client(w);
        (void)state;
        w->job = getpid();
        assert_string_equal(ask(w, fd, "set budget 1"), refusal);
        assert_string_equal(ask(w, fd, "status"), "status {\"need_bytes\":5}");

        /* A connection of somebody outside, used by another process. */
        w->job = -1;
        in_child(send_line, &(struct spoken){.fd = fd, .line = "set budget 2"});
        turn(w);
        assert_string_equal(get(fd), refusal);

        /* A process that connects, asks, and is gone before anybody can look where it was. */
        int gone = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        in_child(send_line, &(struct spoken){.fd = gone, .path = w->path, .line = "set budget 3"});
        turn(w);
        assert_string_equal(get(gone), refusal);

        assert_int_equal(w->sets, 0);
        assert_string_equal(ask(w, fd, "set budget 4"), "ok budget 4");
        close(fd);
        close(gone);
        world_free(w);
}

static void test_calls_may_be_absent(void **state)
{
        struct world *w = world_new();
        struct afz_control *bare;
        char path[96];
        (void)state;
        snprintf(path, sizeof path, "%s/bare", w->dir);
        assert_int_equal(afz_control_new(path, "x", &(struct afz_control_calls){0}, &bare), 0);
        int fd = try_connect(path);
        put(fd, "status");
        put(fd, "set budget 1");
        afz_control_turn(bare, 1);
        assert_string_equal(get(fd), "error not offered here");
        assert_string_equal(get(fd), "error the job may not change its own limits");
        close(fd);
        afz_control_free(bare);
        world_free(w);
}

static void test_checkpoint(void **state)
{
        struct world *w = world_new();
        (void)state;
        assert_int_equal(afz_control_ack(w->control), AFZ_ACK_NONE);
        assert_int_equal(afz_control_ask_checkpoint(w->control, 5000), 0);
        assert_int_equal(afz_control_ack(w->control), AFZ_ACK_NONE);

        int a = agent(w, "hello rank0 1 checkpoint"), b = agent(w, "hello rank1 1 checkpoint");
        int idle = agent(w, "hello other 1 shrink");
        assert_string_equal(ask(w, a, "saved 9"), "error nothing was asked under this number");
        assert_int_equal(afz_control_ask_checkpoint(w->control, 5000), 2);
        assert_string_equal(get(a), "checkpoint 2 5000");
        assert_string_equal(get(b), "checkpoint 2 5000");
        assert_string_equal(get(idle), "");
        assert_int_equal(afz_control_ack(w->control), AFZ_ACK_ASKED);
        assert_string_equal(ask(w, a, "saved 1 /late"), "");
        assert_string_equal(ask(w, idle, "saved 2 /not-asked"), "");
        assert_int_equal(afz_control_ack(w->control), AFZ_ACK_ASKED);
        assert_string_equal(ask(w, a, "saving 2"), "");
        assert_int_equal(afz_control_ack(w->control), AFZ_ACK_SAVING);
        assert_string_equal(ask(w, a, "saved 2 /ckpt/a.pt"), "");
        assert_int_equal(afz_control_ack(w->control), AFZ_ACK_ASKED);
        assert_string_equal(ask(w, a, "cannot 2 second thoughts"), "");
        assert_string_equal(ask(w, b, "cannot 2 not rank 0"), "");
        assert_int_equal(afz_control_ack(w->control), AFZ_ACK_SAVED);
        assert_string_equal(afz_control_saved_path(w->control), "/ckpt/a.pt");
        assert_string_equal(afz_control_refusal(w->control), "not rank 0");

        /* Who saved and left has saved, also when another takes its place. */
        close(a);
        close(b);
        turn(w);
        int c = agent(w, "hello next 1 checkpoint");
        assert_int_equal(afz_control_ack(w->control), AFZ_ACK_SAVED);
        assert_int_equal(afz_control_ask_checkpoint(w->control, 100), 1);
        assert_string_equal(afz_control_saved_path(w->control), "");
        assert_string_equal(get(c), "checkpoint 3 100");
        close(c);
        turn(w);
        assert_int_equal(afz_control_ack(w->control), AFZ_ACK_CANNOT);
        close(idle);
        world_free(w);
}

static void test_words_to_agents(void **state)
{
        struct world *w = world_new();
        int a = agent(w, "hello a 1 shrink"), b = agent(w, "hello b 1 checkpoint");
        int mute = client(w);
        (void)state;
        turn(w);
        assert_int_equal(afz_control_ask_shrink(w->control), 1);
        afz_control_tell(w->control, "stop budget it needs\n2 GB");
        assert_string_equal(get(a), "shrink");
        assert_string_equal(get(a), "stop budget it needs?2 GB");
        assert_string_equal(get(b), "stop budget it needs?2 GB");
        assert_string_equal(get(mute), "");
        char longer[3000];
        memset(longer, 'x', sizeof longer);
        longer[sizeof longer - 1] = '\0';
        afz_control_tell(w->control, longer);
        assert_int_equal(strlen(get(b)), AFZ_CONTROL_LINE - 1);
        close(a);
        close(b);
        close(mute);
        world_free(w);
}

/* Who uses less is asked as who makes its steps smaller is, each once; but nothing is built on it.
 */
static void test_less(void **state)
{
        struct world *w = world_new();
        int loader = agent(w, "hello loader 1 less");
        (void)state;
        assert_true(afz_control_can_shrink(w->control));
        assert_false(afz_control_can_split(w->control));
        assert_int_equal(afz_control_ask_shrink(w->control), 1);
        assert_string_equal(get(loader), "shrink");
        int both = agent(w, "hello both 1 less shrink");
        assert_true(afz_control_can_split(w->control));
        assert_int_equal(afz_control_ask_shrink(w->control), 2);
        assert_string_equal(get(loader), "shrink");
        assert_string_equal(get(both), "shrink");
        assert_string_equal(get(both), "");
        close(both);
        turn(w);
        assert_false(afz_control_can_split(w->control));
        assert_true(afz_control_can_shrink(w->control));
        close(loader);
        turn(w);
        assert_false(afz_control_can_shrink(w->control));
        world_free(w);
}

static void test_events(void **state)
{
        struct world *w = world_new();
        int fd = client(w);
        (void)state;
        assert_string_equal(ask(w, fd, "event note: too early"), "error say hello first");
        assert_string_equal(get(fd), "<end>");
        assert_int_equal(w->events, 0);
        close(fd);
        fd = agent(w, "hello a 1 shrink");
        assert_int_equal(w->hellos, 1);
        assert_true(afz_control_can_shrink(w->control));
        assert_false(afz_control_can_checkpoint(w->control));
        assert_string_equal(ask(w, fd, "event oom step=3 at=/a b.py:1:f: no room"), "");
        assert_int_equal(w->event, AFZ_AGENT_OOM);
        assert_string_equal(w->text, "step=3 at=/a b.py:1:f: no room");
        assert_string_equal(ask(w, fd, "event split"), "");
        assert_int_equal(w->event, AFZ_AGENT_SPLIT);
        assert_string_equal(w->text, "");
        assert_int_equal(w->events, 2);
        /* Abilities may change; the last word counts. */
        assert_string_equal(ask(w, fd, "hello a 1 checkpoint"), "welcome 1 brave-otter");
        assert_false(afz_control_can_shrink(w->control));
        assert_true(afz_control_can_checkpoint(w->control));
        assert_string_equal(ask(w, fd, "event oom what"),
                            "error it is: event KIND [KEY=VALUE ...][: SENTENCE]");
        assert_string_equal(get(fd), "<end>");
        close(fd);
        world_free(w);
}

/* A program that ends right after its words is heard: whether we come to it later, or it has not
 * read what we said. */
static void test_last_words(void **state)
{
        struct world *w = world_new();
        (void)state;
        for (unsigned turns = 0; turns < 2; turns++) {
                int fd = client(w);
                put(fd, "hello a 1 shrink");
                if (turns > 0)
                        turn(w);
                put(fd, "event oom step=1");
                put(fd, "saved 0 /a/b");
                close(fd);
                turn(w);
                assert_int_equal(w->hellos, turns + 1);
                assert_int_equal(w->events, turns + 1);
                assert_string_equal(w->saved, "/a/b");
                w->saved[0] = '\0';
                turn(w);
                assert_false(afz_control_can_shrink(w->control)); /* and then it is gone */
        }
        world_free(w);
}

/* Who saves by itself tells where; it answers no request. */
static void test_saved_unasked(void **state)
{
        struct world *w = world_new();
        int stranger = client(w), a = agent(w, "hello a 1 checkpoint");
        (void)state;
        assert_string_equal(ask(w, stranger, "saved 0 /x"),
                            "error nothing was asked under this number");
        assert_string_equal(w->saved, "");
        assert_string_equal(ask(w, a, "saved 0 /ckpt/step 10"), "");
        assert_string_equal(w->saved, "/ckpt/step 10");
        assert_int_equal(afz_control_ack(w->control), AFZ_ACK_NONE);
        assert_string_equal(ask(w, a, "saved 0 relative"), "");
        assert_string_equal(ask(w, a, "saved 0"), "");
        assert_string_equal(w->saved, "/ckpt/step 10");
        assert_string_equal(ask(w, a, "saving 0"), "error nothing was asked under this number");

        assert_int_equal(afz_control_ask_checkpoint(w->control, 5000), 1);
        assert_string_equal(get(a), "checkpoint 1 5000");
        assert_string_equal(ask(w, a, "saved 0 /ckpt/20"), "");
        assert_int_equal(afz_control_ack(w->control), AFZ_ACK_ASKED);
        assert_string_equal(ask(w, a, "saved 1 /ckpt/21"), "");
        assert_int_equal(afz_control_ack(w->control), AFZ_ACK_SAVED);
        assert_string_equal(w->saved, "/ckpt/21");
        close(stranger);
        close(a);
        world_free(w);
}

/* The other side, in a process of its own, while the guard turns on the real clock. */
static int request(struct world *w, const char *line, const char *expected)
{
        pid_t pid = fork();
        if (pid == 0) {
                char text[AFZ_CONTROL_LINE] = "untouched";
                int r = afz_control_request(w->path, line, text, sizeof text, 20000);
                _exit(strcmp(text, expected) == 0 ? -r : 255);
        }
        int status;
        while (waitpid(pid, &status, WNOHANG) == 0) {
                struct pollfd fds[AFZ_CONTROL_POLLS];
                size_t n = afz_control_poll(w->control, fds, AFZ_CONTROL_POLLS);
                (void)poll(fds, n, 10);
                afz_control_turn(w->control, afz_clock_ns(CLOCK_MONOTONIC));
        }
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void test_request(void **state)
{
        struct world *w = world_new();
        char text[64];
        (void)state;
        assert_int_equal(request(w, "set budget 77", "budget 77"), 0);
        assert_int_equal(w->bytes, 77);
        assert_int_equal(request(w, "status", "{\"need_bytes\":5}"), 0);
        assert_int_equal(request(w, "set budget 12G", "it is: set budget|swap BYTES"), EPROTO);
        assert_int_equal(request(w, "hello a 1", "1 brave-otter"), 0);
        /* No guard, and one that does not turn. */
        assert_int_equal(afz_control_request("/nonexistent/x", "status", text, sizeof text, 10),
                         -ENOENT);
        assert_int_equal(afz_control_request(w->path, "status", text, sizeof text, 20), -ETIMEDOUT);
        turn(w);
        world_free(w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_place),
                cmocka_unit_test(test_hello),
                cmocka_unit_test(test_set),
                cmocka_unit_test(test_set_by_the_job),
                cmocka_unit_test(test_calls_may_be_absent),
                cmocka_unit_test(test_checkpoint),
                cmocka_unit_test(test_words_to_agents),
                cmocka_unit_test(test_less),
                cmocka_unit_test(test_events),
                cmocka_unit_test(test_last_words),
                cmocka_unit_test(test_saved_unasked),
                cmocka_unit_test(test_request),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
