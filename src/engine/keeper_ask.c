#include "keeper_ask.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "span.h"
#include "wire.h"

const uint64_t afz_keeper_ask_magic = (uint64_t)AFZ_BOOK_VERSION << 56 ^
                                      (uint64_t)sizeof(struct afz_keeper_answer) << 24 ^ 0x6b7361;

bool afz_keeper_socket_path(const char *control_socket, char *buf, size_t cap)
{
        static const char end[] = ".sock";
        size_t n = strlen(control_socket);
        if (n < sizeof end || strcmp(control_socket + n - strlen(end), end) != 0)
                return false;
        int len = snprintf(buf, cap, "%.*s.probe", (int)(n - strlen(end)), control_socket);
        return len > 0 && (size_t)len < cap;
}

/* ---- the answer ---- */

static void make_safe(char *text, size_t cap)
{
        (void)afz_span_copy((struct afz_span){text, strnlen(text, cap)}, text, cap);
}

int afz_keeper_answer_check(struct afz_keeper_answer *a, size_t bytes)
{
        if (bytes != sizeof *a || a->magic != afz_keeper_ask_magic || a->rows > AFZ_KEEPER_ROWS ||
            a->live_bytes > INT64_MAX)
                return -EPROTO;
        make_safe(a->words, sizeof a->words);
        for (uint32_t i = 0; i < a->rows; i++) {
                struct afz_keeper_row *row = &a->row[i];
                make_safe(row->name, sizeof row->name);
                if (row->live_bytes > INT64_MAX || row->kind >= AFZ_SITE_KINDS)
                        return -EPROTO;
        }
        return 0;
}

/* ---- asking ---- */

static int receive(int fd, unsigned timeout_ms, struct afz_keeper_answer *ret)
{
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int r = poll(&p, 1, (int)timeout_ms);
        if (r <= 0)
                return r < 0 ? -errno : -ETIMEDOUT;
        struct afz_keeper_answer answer;
        ssize_t n = recv(fd, &answer, sizeof answer, MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0)
                return -EPROTO;
        r = afz_keeper_answer_check(&answer, (size_t)n);
        if (r == 0)
                *ret = answer;
        return r;
}

int afz_keeper_ask(const char *socket_path, unsigned timeout_ms, struct afz_keeper_answer *ret)
{
        const struct afz_book_wish wish = {
                .magic = afz_keeper_ask_magic,
                .version = AFZ_BOOK_VERSION,
                .own_pid = (uint32_t)getpid(),
        };
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        if (socket_path[0] != '/' || strlen(socket_path) >= sizeof at.sun_path)
                return -ENOENT;
        strcpy(at.sun_path, socket_path);
        /* Does not block: a queue that is full is nobody who answers. */
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        int r = 0;
        if (connect(fd, (const struct sockaddr *)&at, sizeof at) < 0 ||
            send(fd, &wish, sizeof wish, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                r = -errno;
        if (r == 0)
                r = receive(fd, timeout_ms, ret);
        close(fd);
        return r;
}
