/* What a hostile job may write to the control socket, and what it must not achieve: a crash, a leak
 * of memory or descriptors, a guard that blocks, a guard that does nothing else any more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <sys/wait.h>

#include "clock.h"
#include "control_fixture.h"
#include "fixture.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

enum { BURST = 64, RATE = 500, SPARE = 4 }; /* as in control.c */

static void test_too_many(void **state)
{
        struct world *w = world_new();
        int fd[AFZ_CONTROL_CLIENTS];
        (void)state;
        for (int i = 0; i < AFZ_CONTROL_CLIENTS; i++)
                fd[i] = agent(w, "hello a 1");
        int more = client(w);
        turn(w);
        assert_string_equal(get(more), "error too many clients");
        assert_string_equal(get(more), "<end>");
        struct pollfd fds[AFZ_CONTROL_POLLS + 8];
        assert_int_equal(afz_control_poll(w->control, fds, AFZ_CONTROL_POLLS + 8),
                         AFZ_CONTROL_POLLS);
        assert_int_equal(afz_control_poll(w->control, fds, 3), 3);
        close(fd[3]);
        turn(w);
        fd[3] = agent(w, "hello b 1");
        assert_string_equal(ask(w, fd[0], "status"), "status {\"need_bytes\":5}");
        for (int i = 0; i < AFZ_CONTROL_CLIENTS; i++)
                close(fd[i]);
        close(more);
        world_free(w);
}

static void test_slow_reader(void **state)
{
        struct world *w = world_new();
        int slow = agent(w, "hello slow 1 checkpoint"), good = agent(w, "hello good 1 checkpoint");
        (void)state;
        for (int i = 0; i < 5000; i++) {
                afz_control_tell(w->control, "stop budget x");
                assert_string_equal(get(good), "stop budget x");
        }
        turn(w);
        assert_int_equal(afz_control_ask_checkpoint(w->control, 1), 1);
        assert_string_equal(get(good), "checkpoint 1 1");
        const char *line;
        while (strcmp(line = get(slow), "stop budget x") == 0)
                ;
        assert_string_equal(line, "<end>");
        close(slow);
        close(good);
        world_free(w);
}

static int fill(int fd, const char *line)
{
        int n = 0;
        while (send(fd, line, strlen(line), MSG_NOSIGNAL) > 0)
                n++;
        return n;
}

static void test_flood(void **state)
{
        struct world *w = world_new();
        int fd = client(w), other = client(w);
        struct pollfd fds[AFZ_CONTROL_POLLS];
        (void)state;
        turn(w);
        assert_true(fill(fd, "saving 0") > 2 * BURST);
        put(other, "status");
        w->now_ns += AFZ_NS_PER_S;
        afz_control_turn(w->control, w->now_ns);
        /* The other one was heard in the midst of it, and nobody wakes us for a while. */
        assert_string_equal(get(other), "status {\"need_bytes\":5}");
        assert_int_equal(afz_control_poll(w->control, fds, AFZ_CONTROL_POLLS), 0);
        put(other, "status");
        for (int i = 0; i < 10; i++) {
                w->now_ns += AFZ_NS_PER_MS;
                afz_control_turn(w->control, w->now_ns);
                assert_string_equal(get(other), "");
        }
        w->now_ns += 100 * AFZ_NS_PER_MS;
        afz_control_turn(w->control, w->now_ns);
        assert_string_equal(get(other), "status {\"need_bytes\":5}");
        close(fd);
        close(other);
        world_free(w);
}

/* Whatever they do, so many requests are served in a second and no more. */
static void test_flood_rate(void **state)
{
        struct world *w = world_new();
        int fd[4];
        (void)state;
        for (int i = 0; i < 4; i++)
                fd[i] = client(w);
        turn(w);
        for (int ms = 0; ms < 1000; ms++) {
                for (int i = 0; i < 4; i++) {
                        (void)fill(fd[i], "status");
                        while (*get(fd[i]))
                                ;
                }
                w->now_ns += AFZ_NS_PER_MS;
                afz_control_turn(w->control, w->now_ns);
        }
        assert_in_range(w->statuses, RATE / 2, RATE + BURST);
        for (int i = 0; i < 4; i++)
                close(fd[i]);
        world_free(w);
}

static void test_connection_storm(void **state)
{
        struct world *w = world_new();
        size_t before = afz_fixture_open_fds();
        int refused = 0;
        (void)state;
        for (int i = 0; i < 3000; i++) {
                int fd = try_connect(w->path);
                refused += fd < 0;
                if (fd >= 0)
                        close(fd);
                if (i % 8 == 0) {
                        w->now_ns += AFZ_NS_PER_MS;
                        afz_control_turn(w->control, w->now_ns);
                }
        }
        assert_true(refused > 0); /* the queue was full, at times: we did not run after them */
        for (int i = 0; i < 10; i++)
                turn(w);
        assert_int_equal(afz_fixture_open_fds(), before);
        int fd = client(w);
        assert_string_equal(ask(w, fd, "status"), "status {\"need_bytes\":5}");
        close(fd);
        world_free(w);
}

static ssize_t send_with(int fd, const void *data, size_t n, const int *attached, size_t count)
{
        union {
                struct cmsghdr align;
                char room[CMSG_SPACE(16 * sizeof(int))];
        } beside;
        memset(&beside, 0, sizeof beside);
        struct msghdr msg = {
                .msg_iov = &(struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = n},
                .msg_iovlen = 1};
        if (count > 0) {
                msg.msg_control = &beside;
                msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
                struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(count * sizeof(int));
                memcpy(CMSG_DATA(c), attached, count * sizeof(int));
        }
        return sendmsg(fd, &msg, MSG_NOSIGNAL);
}

static uint64_t rolled(uint64_t *seed)
{
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        return *seed;
}

/* A packet out of words that mean something, bytes that mean nothing, and both. */
static size_t make_packet(uint64_t *seed, char *buf, size_t cap)
{
        static const char *const words[] = {
                "hello ",  "agent ",  "1 ",     "checkpoint ", "saving ", "saved ", "cannot ",
                "set ",    "budget ", "swap ",  "status ",     "/x ",     "99999 ", "\n",
                "shrink ", "less ",   "event ", "oom ",        "step=1 ", ": "};
        static const char *const good[] = {
                "hello agent 1 checkpoint", "saving 1", "saved 1 /x",         "cannot 1 x",
                "set budget 4096",          "status",   "event oom step=1: x"};
        static const size_t lengths[] = {0, 1, 1022, 1023, 1024, 1025, 4096, 65536};
        size_t n = 0;
        if (rolled(seed) % 8 == 0) {
                n = lengths[rolled(seed) % (sizeof lengths / sizeof *lengths)];
                for (size_t i = 0; i < n; i++)
                        buf[i] = (char)rolled(seed);
                return n;
        }
        if (rolled(seed) % 4 == 0) {
                const char *line = good[rolled(seed) % (sizeof good / sizeof *good)];
                memcpy(buf, line, strlen(line));
                return strlen(line);
        }
        for (uint64_t k = rolled(seed) % 6; k > 0; k--) {
                const char *word = words[rolled(seed) % (sizeof words / sizeof *words)];
                memcpy(buf + n, word, strlen(word));
                n += strlen(word);
        }
        if (n > 0 && rolled(seed) % 4 == 0)
                buf[rolled(seed) % n] = (char)rolled(seed);
        assert_true(n <= cap);
        return n;
}

struct madness {
        struct world *w;
        uint64_t seed;
        int fd[6];
        char buf[65536];
        int attach[2]; /* a pipe, to be attached; [0] is -1: none */
};

static void one_mad_deed(struct madness *m)
{
        int *fd = &m->fd[rolled(&m->seed) % 6];
        if (*fd < 0)
                *fd = try_connect(m->w->path);
        if (*fd < 0)
                return;
        size_t n = make_packet(&m->seed, m->buf, sizeof m->buf);
        uint64_t deed = rolled(&m->seed) % 32;
        size_t attached = deed == 0 && m->attach[0] >= 0 ? 1 + rolled(&m->seed) % 2 : 0;
        ssize_t r = send_with(*fd, m->buf, n, m->attach, attached);
        if (deed == 1)
                (void)shutdown(*fd, (int)(rolled(&m->seed) % 3));
        if (deed == 2 || (r < 0 && errno == EPIPE)) {
                close(*fd);
                *fd = -1;
        } else if (deed < 20) {
                (void)get(*fd);
        }
}

static void go_mad(struct madness *m, int deeds)
{
        for (int i = 0; i < 6; i++)
                m->fd[i] = -1;
        for (int i = 0; i < deeds; i++) {
                one_mad_deed(m);
                if (i % 3 == 0) {
                        m->w->now_ns += 10 * AFZ_NS_PER_MS;
                        afz_control_turn(m->w->control, m->w->now_ns);
                }
                if (i % 500 == 0)
                        (void)afz_control_ask_checkpoint(m->w->control, 1);
                (void)afz_control_ack(m->w->control);
        }
        for (int i = 0; i < 6; i++)
                if (m->fd[i] >= 0)
                        close(m->fd[i]);
        for (int i = 0; i < 20; i++)
                turn(m->w);
}

static void test_random_packets(void **state)
{
        struct madness *m = calloc(1, sizeof *m);
        size_t before = afz_fixture_open_fds();
        (void)state;
        *m = (struct madness){.w = world_new(), .seed = 0x9e3779b97f4a7c15, .attach = {-1, -1}};
        go_mad(m, 10000);
        int fd = client(m->w);
        assert_string_equal(ask(m->w, fd, "status"), "status {\"need_bytes\":5}");
        assert_true(m->w->sets > 0); /* some of it made sense */
        close(fd);
        world_free(m->w);
        free(m);
        assert_int_equal(afz_fixture_open_fds(), before);
}

/* Kernels that can refuse attached descriptors do; the rest of these tests is about those that
 * cannot. */
static void let_descriptors_in(struct world *w)
{
        struct pollfd listening;
        int on = 1;
        assert_int_equal(afz_control_poll(w->control, &listening, 1), 1);
        (void)setsockopt(listening.fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof on);
}

/* With descriptors: the guard ends up with none of them, and with a few clients set aside. */
static void test_random_packets_with_descriptors(void **state)
{
        struct madness *m = calloc(1, sizeof *m);
        (void)state;
        *m = (struct madness){.w = world_new(), .seed = 88172645463325252};
        let_descriptors_in(m->w);
        size_t before = afz_fixture_open_fds();
        assert_int_equal(pipe2(m->attach, O_CLOEXEC), 0);
        go_mad(m, 10000);
        close(m->attach[1]);
        close(m->attach[0]);
        assert_in_range(afz_fixture_open_fds(), before + 1, before + AFZ_CONTROL_CLIENTS + SPARE);
        world_free(m->w);
        free(m);
}

static void test_descriptors_refused(void **state)
{
        struct world *w = world_new();
        int fd = client(w), pipe_fd[2];
        (void)state;
        assert_int_equal(pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK), 0);
        int error = send_with(fd, "status", 6, pipe_fd, 2) < 0 ? errno : 0;
        turn(w);
        if (error != 0) {
                assert_int_equal(error, EPERM); /* the kernel did it */
                assert_string_equal(ask(w, fd, "status"), "status {\"need_bytes\":5}");
        } else {
                assert_string_equal(get(fd), "error descriptors are not taken");
                assert_string_equal(get(fd), "<end>");
        }
        close(fd);
        close(pipe_fd[0]);
        close(pipe_fd[1]);
        world_free(w);
}

/* A TCP socket whose last close waits for a minute: it has data that nobody takes. -1: no network
 * here, not even its own. */
static int sticky_socket(int *ret_other_end)
{
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof address;
        struct linger minute = {.l_onoff = 1, .l_linger = 60};
        static char data[65536];
        int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (server < 0 || fd < 0 || bind(server, (struct sockaddr *)&address, sizeof address) < 0 ||
            listen(server, 1) < 0 || getsockname(server, (struct sockaddr *)&address, &n) < 0 ||
            connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
                return -1;
        *ret_other_end = accept4(server, NULL, NULL, SOCK_CLOEXEC);
        close(server);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &minute, sizeof minute), 0);
        while (send(fd, data, sizeof data, MSG_DONTWAIT) > 0)
                ;
        return fd;
}

static void stick(int fd, int sticky)
{
        assert_int_equal(send_with(fd, "status", 6, &sticky, 1), 6);
}

/* The guard must not be the one to let go of such a socket: not by reading it, not by hanging up on
 * who sent it behind something else, not by refusing a caller that has sent it already, and not by
 * ending. All in a child: what was set aside ends with the process. */
static _Noreturn void let_go_of_nothing(void)
{
        struct world *w = world_new();
        int fd[AFZ_CONTROL_CLIENTS + 2], other_end = -1;
        let_descriptors_in(w);
        int sticky = sticky_socket(&other_end);
        if (sticky < 0)
                _exit(77);
        for (int i = 0; i < AFZ_CONTROL_CLIENTS; i++)
                fd[i] = agent(w, "hello a 1");
        int refused = client(w);
        stick(refused, sticky);
        turn(w);
        put(fd[0], "nonsense");
        stick(fd[0], sticky);
        stick(fd[1], sticky);
        close(fd[1]);
        stick(fd[2], sticky);
        close(sticky); /* what is in flight now are the only ones */
        turn(w);
        assert_string_equal(get(refused), "error too many clients");
        assert_string_equal(ask(w, fd[5], "status"), "status {\"need_bytes\":5}");
        for (int i = 0; i < AFZ_CONTROL_CLIENTS; i++)
                if (i != 1)
                        close(fd[i]);
        int late = client(w); /* never heard */
        int second = sticky_socket(&other_end);
        stick(late, second);
        close(second);
        world_free(w);
        _exit(0);
}

static void test_sticky_descriptors(void **state)
{
        int status;
        uint64_t start_ns = afz_clock_ns(CLOCK_MONOTONIC);
        (void)state;
        pid_t pid = fork();
        if (pid == 0)
                let_go_of_nothing();
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
                skip();
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_true(afz_clock_ns(CLOCK_MONOTONIC) - start_ns < 20 * AFZ_NS_PER_S);
}

/* Not even the modes of file and folder decide: the kernel's word on the caller does. */
static void test_other_user(void **state)
{
        (void)state;
        if (geteuid() != 0)
                skip(); /* only root can be somebody else */
        struct world *w = world_new();
        assert_int_equal(chmod(w->dir, 0711), 0);
        assert_int_equal(chmod(w->path, 0666), 0);
        pid_t pid = fork();
        if (pid == 0) {
                if (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0)
                        _exit(1);
                int fd = try_connect(w->path);
                char line[64];
                (void)send(fd, "status", 6, MSG_NOSIGNAL);
                (void)fcntl(fd, F_SETFL, 0);
                _exit(recv(fd, line, sizeof line, 0) == 0 ? 0 : 2);
        }
        int status;
        while (waitpid(pid, &status, WNOHANG) == 0) {
                struct pollfd fds[AFZ_CONTROL_POLLS];
                (void)poll(fds, afz_control_poll(w->control, fds, AFZ_CONTROL_POLLS), 10);
                turn(w);
        }
        assert_int_equal(status, 0);
        assert_int_equal(w->statuses, 0);
        assert_int_equal(chmod(w->dir, 0700), 0);
        world_free(w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_too_many),
                cmocka_unit_test(test_slow_reader),
                cmocka_unit_test(test_flood),
                cmocka_unit_test(test_flood_rate),
                cmocka_unit_test(test_connection_storm),
                cmocka_unit_test(test_random_packets),
                cmocka_unit_test(test_random_packets_with_descriptors),
                cmocka_unit_test(test_descriptors_refused),
                cmocka_unit_test(test_sticky_descriptors),
                cmocka_unit_test(test_other_user),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
