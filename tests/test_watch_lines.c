/* Asking a run about its lines while it is watched: an answer, silence, and nobody there. The
 * clock is ours; a silent keeper costs a moment of the real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "keeper_ask.h"
#include "watch_lines.h"

#define S AFZ_NS_PER_S

struct keeper {
        char dir[40], control[80], path[80];
        int fd;
};

static void listen_here(struct keeper *k)
{
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        strcpy(k->dir, "/tmp/afz-XXXXXX");
        assert_non_null(mkdtemp(k->dir));
        snprintf(k->control, sizeof k->control, "%s/x.sock", k->dir);
        snprintf(k->path, sizeof k->path, "%s/x.probe", k->dir);
        strcpy(at.sun_path, k->path);
        k->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        assert_true(k->fd >= 0);
        assert_int_equal(bind(k->fd, (struct sockaddr *)&at, sizeof at), 0);
        assert_int_equal(listen(k->fd, 64), 0);
}

static void leave(struct keeper *k)
{
        close(k->fd);
        unlink(k->path);
        rmdir(k->dir);
}

/* A child that answers one question. */
static pid_t answer_once(const struct keeper *k, const struct afz_keeper_answer *answer)
{
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid > 0)
                return pid;
        char question[256];
        int fd = accept(k->fd, NULL, NULL);
        bool ok = fd >= 0 && recv(fd, question, sizeof question, 0) > 0 &&
                  send(fd, answer, sizeof *answer, MSG_NOSIGNAL) == (ssize_t)sizeof *answer;
        _exit(ok ? 0 : 1);
}

static bool has_answered(pid_t pid)
{
        int status;
        return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_answer(void **state)
{
        struct keeper k;
        struct afz_watch_lines *w = calloc(1, sizeof *w);
        struct afz_keeper_answer answer = {
                .magic = afz_keeper_ask_magic,
                .looked_ns = 5,
                .live_bytes = 900,
                .step = 12,
                .growth_s = 60,
                .processes = 3,
                .rows = 2,
                .words = "the probe is in 3 processes",
                .row = {{"train.py:33 in load()", 700, 10, 3, 2},
                        {"everywhere else", 200, 0, 0, 0}},
        };
        uint64_t now = 1000 * S;
        (void)state;
        listen_here(&k);
        afz_watch_lines_init(w, k.control);
        assert_string_equal(w->socket, k.path);
        /* A busy machine may take longer than we wait: then it is asked again. */
        for (int i = 0; i < 50 && !w->now.known; i++, now += 20 * S) {
                pid_t pid = answer_once(&k, &answer);
                afz_watch_lines_look(w, now);
                assert_true(has_answered(pid) || !w->now.known);
        }
        assert_true(w->now.known);
        assert_int_equal(w->now.live_bytes, 900);
        assert_int_equal(w->now.rows, 2);
        assert_string_equal(w->now.row[0].name, "train.py:33 in load()");
        assert_string_equal(w->now.row[0].memory, "Python objects");
        assert_string_equal(w->now.row[1].memory, "");
        assert_int_equal(w->now.step, 12);
        assert_string_equal(w->now.words, "the probe is in 3 processes");
        leave(&k);
        free(w);
}

/* It is asked ever more seldom; what it said last stands for a while. */
static void test_silence(void **state)
{
        struct keeper k;
        struct afz_watch_lines *w = calloc(1, sizeof *w);
        uint64_t begin = 1000 * S, before = 0, asked = 0;
        (void)state;
        listen_here(&k);
        afz_watch_lines_init(w, k.control);
        w->now.known = true, w->heard_ns = begin;
        uint64_t real = afz_clock_ns(CLOCK_MONOTONIC);
        for (uint64_t now = begin; now < begin + 60 * S; now += S / 10) {
                afz_watch_lines_look(w, now);
                if (w->next_ns != before) {
                        assert_true(w->next_ns >= now + S);
                        assert_true(w->next_ns <= now + 16 * S);
                        before = w->next_ns;
                        asked++;
                }
                if (now < begin + 10 * S)
                        assert_true(w->now.known);
        }
        assert_in_range(asked, 4, 9);
        assert_false(w->now.known);
        /* 600 ticks of the view were held up by nine questions at most. */
        assert_true(afz_clock_ns(CLOCK_MONOTONIC) - real < 30 * S);
        leave(&k);
        free(w);
}

static void test_nobody(void **state)
{
        static const char *const nowhere[] = {"", "x", "/nonexistent/x.sock", "/tmp/x.other"};
        (void)state;
        for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++) {
                struct afz_watch_lines *w = calloc(1, sizeof *w);
                afz_watch_lines_init(w, nowhere[i]);
                w->now.known = true;
                afz_watch_lines_look(w, 1000 * S);
                assert_true(!w->socket[0] || !w->now.known);
                free(w);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_answer),
                cmocka_unit_test(test_silence),
                cmocka_unit_test(test_nobody),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
