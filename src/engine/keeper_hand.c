#include "keeper_hand.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fds.h"
#include "keeper_ask.h"

/* A probe connects and asks in one breath; whoever does not keeps all others waiting. */
enum { ASK_MS = 20 };

static int make(const struct afz_hand *hand, struct afz_book **ret)
{
        int fd = memfd_create("antifreeze-book", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;
        if (fd < 0)
                return -errno;
        if (ftruncate(fd, (off_t)AFZ_BOOK_BYTES) < 0 ||
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
                err = -errno;
                close(fd);
                return err;
        }
        struct afz_book *book =
                mmap(NULL, AFZ_BOOK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (book == MAP_FAILED) {
                err = -errno;
                close(fd);
                return err;
        }
        book->magic = AFZ_BOOK_MAGIC;
        book->mean_bytes = hand->mean_bytes;
        book->pid = (uint32_t)hand->pid;
        *ret = book;
        return fd;
}

int afz_book_fill(int *fd)
{
        int r = fallocate(*fd, 0, 0, (off_t)AFZ_BOOK_BYTES) < 0 ? -errno : 0;
        afz_fd_close(fd);
        return r;
}

void afz_book_unmap(struct afz_book *book)
{
        if (book)
                (void)munmap(book, AFZ_BOOK_BYTES);
}

static int check(int fd, pid_t *ret_pid, struct afz_book_wish *ret)
{
        struct ucred who;
        socklen_t size = sizeof who;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 || who.pid <= 0 ||
            who.uid != getuid())
                return -EPERM;
        if (poll(&p, 1, ASK_MS) <= 0 ||
            recv(fd, ret, sizeof *ret, MSG_DONTWAIT | MSG_TRUNC) != (ssize_t)sizeof *ret ||
            (ret->magic != AFZ_BOOK_MAGIC && ret->magic != afz_keeper_ask_magic) ||
            ret->version != AFZ_BOOK_VERSION)
                return -EPROTO;
        ret->program[sizeof ret->program - 1] = '\0';
        *ret_pid = who.pid;
        return 0;
}

int afz_hand_accept(int listen_fd, pid_t *ret_pid, struct afz_book_wish *ret)
{
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
                return errno == EINTR || errno == ECONNABORTED ? -EPROTO : -EAGAIN;
        int r = check(fd, ret_pid, ret);
        if (r < 0) {
                close(fd);
                return r;
        }
        return fd;
}

static int send_fds(int to, const int *fds, size_t n)
{
        char byte = 1;
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(2 * sizeof(int))];
        } control = {0};
        struct iovec data = {&byte, 1};
        struct msghdr message = {.msg_iov = &data,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = CMSG_SPACE(n * sizeof *fds)};
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(n * sizeof *fds);
        memcpy(CMSG_DATA(&control.head), fds, n * sizeof *fds);
        ssize_t sent = sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        return sent == 1 ? 0 : sent < 0 ? -errno : -EIO;
}

int afz_hand_over(int fd, const struct afz_hand *hand, struct afz_book **ret, int *ret_fd)
{
        struct afz_book *book = NULL;
        int memory = make(hand, &book);
        int both[] = {memory, hand->room_fd};
        int r = memory < 0 ? memory : send_fds(fd, both, hand->room_fd > 0 ? 2 : 1);
        if (r < 0) {
                if (memory >= 0) {
                        close(memory);
                        afz_book_unmap(book);
                }
                return r;
        }
        *ret = book;
        *ret_fd = memory;
        return 0;
}
