#include "control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "pidfd.h"
#include "span.h"

/* Newer than the headers that we may be built with. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

enum { BACKLOG = 16 };

static int address_of(const char *path, struct sockaddr_un *ret)
{
        size_t n = strlen(path);
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        if (n == 0)
                return -EINVAL; /* would be an abstract name, without modes */
        if (n >= sizeof address.sun_path)
                return -ENAMETOOLONG;
        memcpy(address.sun_path, path, n + 1);
        *ret = address;
        return 0;
}

/* Nobody else may put something else in the socket's place. */
static int check_folder(const struct sockaddr_un *address)
{
        char path[sizeof address->sun_path];
        struct stat st;

        memcpy(path, address->sun_path, sizeof path);
        int fd = open(dirname(path), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = fstat(fd, &st) < 0 ? -errno : 0;
        close(fd);
        if (r < 0)
                return r;
        return st.st_uid == geteuid() && (st.st_mode & 077) == 0 ? 0 : -EPERM;
}

int afz_control_listen(const char *path)
{
        struct sockaddr_un address;
        int on = 1, off = 0;
        int r = address_of(path, &address);
        if (r >= 0)
                r = check_folder(&address);
        if (r < 0)
                return r;
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        /* The mode before bind: the file is never there with another one. The kernel's word on the
         * sender comes with each packet, which also tells an empty one from the end. Where the
         * kernel can refuse attached descriptors for us, it does. */
        (void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off);
        bool bound = false;
        if (fchmod(fd, 0600) < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 ||
            bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || !(bound = true) ||
            listen(fd, BACKLOG) < 0) {
                r = -errno;
                if (bound)
                        (void)unlink(path);
                close(fd);
                return r;
        }
        return fd;
}

static int peer_pidfd(int fd, pid_t pid)
{
        int pidfd = -1;
        socklen_t n = sizeof pidfd;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &n) == 0)
                return pidfd;
        if (errno == ENOPROTOOPT && pid > 0)
                return afz_pidfd_open(pid);
        return -1;
}

int afz_control_accept(int listen_fd, struct afz_peer *ret)
{
        struct ucred cred;
        socklen_t n = sizeof cred;
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
                return -errno;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
                cred = (struct ucred){.pid = 0, .uid = (uid_t)-1};
        *ret = (struct afz_peer){
                .fd = fd, .uid = cred.uid, .pid = cred.pid, .pidfd = peer_pidfd(fd, cred.pid)};
        return 0;
}

/* Room for the sender and for nothing more: attached descriptors are never installed. */
union ancillary {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(struct ucred))];
};

static ssize_t receive(int fd, struct iovec *part, int flags, struct msghdr *msg,
                       union ancillary *beside)
{
        *msg = (struct msghdr){.msg_iov = part,
                               .msg_iovlen = 1,
                               .msg_control = beside,
                               .msg_controllen = sizeof *beside};
        flags |= MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
        ssize_t n = recvmsg(fd, msg, flags);
        if (n < 0 &&
            errno == ECONNRESET) /* said once, of one that left without reading our words */
                n = recvmsg(fd, msg, flags); /* its own are behind that */
        if (n < 0)
                return -errno;
        return n == 0 && msg->msg_controllen == 0 ? -ENOTCONN : n;
}

static pid_t sender_of(struct msghdr *msg)
{
        struct cmsghdr *c = CMSG_FIRSTHDR(msg);
        struct ucred cred;
        if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS ||
            c->cmsg_len != CMSG_LEN(sizeof cred))
                return 0;
        memcpy(&cred, CMSG_DATA(c), sizeof cred);
        return cred.pid;
}

ssize_t afz_control_receive(int fd, char *buf, size_t cap, pid_t *ret_sender)
{
        struct msghdr msg;
        union ancillary beside;
        ssize_t n = receive(fd, &(struct iovec){.iov_base = buf}, MSG_PEEK, &msg, &beside);
        if (n < 0)
                return n;
        if (msg.msg_flags & MSG_CTRUNC)
                return -EBADF;
        n = receive(fd, &(struct iovec){.iov_base = buf, .iov_len = cap}, 0, &msg, &beside);
        if (n < 0)
                return n;
        if (msg.msg_flags & MSG_TRUNC)
                return -EMSGSIZE;
        *ret_sender = sender_of(&msg);
        return n;
}

int afz_control_send(int fd, const char *line, size_t n)
{
        int err = send(fd, line, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
        return err == -ECONNRESET ? -EPIPE : err;
}

/* Waits until the descriptor is ready; the rest of the time is what is left until `end_ns`. */
static int wait_for(int fd, short events, uint64_t end_ns)
{
        for (;;) {
                uint64_t now = afz_clock_ns(CLOCK_MONOTONIC);
                uint64_t left_ms = end_ns > now ? (end_ns - now) / AFZ_NS_PER_MS + 1 : 0;
                int r = poll(&(struct pollfd){.fd = fd, .events = events}, 1, (int)left_ms);
                if (r > 0)
                        return 0;
                if (r == 0)
                        return -ETIMEDOUT;
                if (errno != EINTR)
                        return -errno;
        }
}

/* A queue that is full does not become ready by itself: it is tried again. */
static int connect_until(int fd, const struct sockaddr_un *address, uint64_t end_ns)
{
        while (connect(fd, (const struct sockaddr *)address, sizeof *address) < 0) {
                if (errno != EAGAIN && errno != EINTR)
                        return -errno;
                if (afz_clock_ns(CLOCK_MONOTONIC) >= end_ns)
                        return -ETIMEDOUT;
                (void)poll(NULL, 0, 10);
        }
        return 0;
}

static int read_answer(int fd, char *ret, size_t cap)
{
        char buf[AFZ_CONTROL_LINE];
        ssize_t n = recv(fd, buf, sizeof buf, MSG_DONTWAIT);
        if (n <= 0)
                return n == 0 ? -ECONNRESET : -errno;
        struct afz_span rest = {buf, (size_t)n}, word;
        if (afz_span_take_word(&rest, &word) < 0)
                return -EBADMSG;
        bool refused = afz_span_eq(word, "error");
        if (!refused && !afz_span_eq(word, "ok") && !afz_span_eq(word, "status") &&
            !afz_span_eq(word, "welcome"))
                return -EBADMSG;
        (void)afz_span_copy(afz_span_trim(rest), ret, cap);
        return refused ? -EPROTO : 0;
}

int afz_control_request(const char *path, const char *line, char *ret, size_t cap, int timeout_ms)
{
        struct sockaddr_un address;
        uint64_t end_ns = afz_clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * AFZ_NS_PER_MS;
        int r = address_of(path, &address);
        if (r < 0)
                return r;
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        r = connect_until(fd, &address, end_ns);
        if (r >= 0)
                r = afz_control_send(fd, line, strlen(line));
        /* A guard that is full has refused us before we spoke: its reason is still to be read. */
        if (r >= 0 || r == -EPIPE)
                r = wait_for(fd, POLLIN, end_ns);
        if (r >= 0)
                r = read_answer(fd, ret, cap);
        close(fd);
        return r;
}
