#ifndef CONTROL_FIXTURE_H
#define CONTROL_FIXTURE_H
/* A guard's control socket in a folder of its own, with a clock that only the test moves, and
 * clients that never wait. Include after cmocka.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"

struct world {
        char dir[64], path[96];
        struct afz_control *control;
        uint64_t now_ns;
        /* What the guard was asked for. */
        unsigned sets, statuses;
        int which;
        uint64_t bytes;
        bool refuse;
        pid_t job; /* this process, and no other, is the job */
        /* What it was told. */
        unsigned events, hellos;
        enum afz_agent_event event;
        uint32_t abilities;
        char text[AFZ_CONTROL_LINE], saved[AFZ_CONTROL_LINE];
};

static int world_set(void *ctx, int which, uint64_t bytes, char *ret_text, size_t cap)
{
        struct world *w = ctx;
        w->sets++;
        if (w->refuse) {
                snprintf(ret_text, cap, "it needs more\nthan that");
                return -EBUSY;
        }
        w->which = which;
        w->bytes = bytes;
        snprintf(ret_text, cap, "budget %llu", (unsigned long long)bytes);
        return 0;
}

static int world_status(void *ctx, char *ret_text, size_t cap)
{
        struct world *w = ctx;
        w->statuses++;
        snprintf(ret_text, cap, "{\"need_bytes\":%u}", 5);
        return 0;
}

static bool world_is_job(void *ctx, pid_t pid)
{
        const struct world *w = ctx;
        return pid == w->job;
}

static void world_event(void *ctx, enum afz_agent_event event, const char *text)
{
        struct world *w = ctx;
        w->events++;
        w->event = event;
        snprintf(w->text, sizeof w->text, "%s", text);
}

static void world_hello(void *ctx, uint32_t abilities)
{
        struct world *w = ctx;
        w->hellos++;
        w->abilities = abilities;
}

static void world_saved(void *ctx, const char *path)
{
        struct world *w = ctx;
        snprintf(w->saved, sizeof w->saved, "%s", path);
}

static inline struct world *world_new(void)
{
        struct world *w = calloc(1, sizeof *w);
        assert_non_null(w);
        strcpy(w->dir, "/tmp/afz-control-XXXXXX");
        assert_non_null(mkdtemp(w->dir));
        snprintf(w->path, sizeof w->path, "%s/run.sock", w->dir);
        w->now_ns = 1000000000;
        assert_int_equal(afz_control_new(w->path, "brave-otter",
                                         &(struct afz_control_calls){.set = world_set,
                                                                     .status = world_status,
                                                                     .is_job = world_is_job,
                                                                     .event = world_event,
                                                                     .hello = world_hello,
                                                                     .saved = world_saved,
                                                                     .ctx = w},
                                         &w->control),
                         0);
        return w;
}

static inline void world_free(struct world *w)
{
        afz_control_free(w->control);
        assert_int_equal(rmdir(w->dir), 0); /* the socket is gone */
        free(w);
}

/* A turn after a second in which nothing happened: every allowance is full again. */
static inline void turn(struct world *w)
{
        w->now_ns += 1000000000;
        afz_control_turn(w->control, w->now_ns);
}

static inline int try_connect(const char *path)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(fd >= 0);
        snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
                close(fd);
                return -1;
        }
        return fd;
}

static inline int client(struct world *w)
{
        int fd = try_connect(w->path);
        assert_true(fd >= 0);
        return fd;
}

static inline void put(int fd, const char *line)
{
        assert_int_equal(send(fd, line, strlen(line), MSG_NOSIGNAL), (ssize_t)strlen(line));
}

/* The next line; "" when none is there, "<end>" when the guard has closed. */
static inline const char *get(int fd)
{
        static char line[AFZ_CONTROL_LINE];
        ssize_t n = recv(fd, line, sizeof line - 1, MSG_DONTWAIT);
        if (n < 0)
                return errno == EAGAIN ? "" : strerror(errno);
        if (n == 0)
                return "<end>";
        line[n] = '\0';
        return line;
}

static inline const char *ask(struct world *w, int fd, const char *line)
{
        put(fd, line);
        turn(w);
        return get(fd);
}

static inline int agent(struct world *w, const char *hello)
{
        int fd = client(w);
        assert_string_equal(ask(w, fd, hello), "welcome 1 brave-otter");
        return fd;
}

#endif
