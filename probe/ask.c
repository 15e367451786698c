/* Asking the keeper for a book. It answers within 1 ms as a rule; on a machine that is all busy, or
 * while it hangs, nobody is held up for long: who has waited in vain goes on, with the question
 * open, and looks now and then whether there is an answer. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

enum {
        PATIENT_MS = 1000, /* what a program may lose by it, once: what it allocates in its first
                              moments is seen only if it waits */
        SHORT_MS = 20,     /* the same at least, where others have waited in vain */
        SLOW_S = 5,        /* so lately */
        MOST_VAIN = 999,   /* of them are counted */
        RETRY_MS = 5,      /* when it has not come to accepting others yet */
        HIGH_FD = 500,     /* an open question's, out of the way: programs count from 3 */
};

static struct {
        struct sockaddr_un keeper;
        char program[64];
        int peer; /* 0: not known */
        int fd;   /* of the open question, + 1; 0: there is none */
        dev_t device;
        ino_t inode;
} ask;

int afz_ask_start(const char *path)
{
        if (path[0] != '/' || strlen(path) >= sizeof ask.keeper.sun_path)
                return -1;
        ask.keeper.sun_family = AF_UNIX;
        strcpy(ask.keeper.sun_path, path);
        strncpy(ask.program, program_invocation_short_name, sizeof ask.program - 1);
        return 0;
}

int afz_ask_peer(void)
{
        return ask.peer;
}

/* ---- patience ---- */

static int left_ms(uint64_t until_ns)
{
        uint64_t now = until_ns > 0 ? afz_now_ns() : 0;
        return now >= until_ns ? 0 : (int)((until_ns - now) / 1000000) + 1;
}

/* A keeper that hangs must not hold up each of a thousand short programs: who has waited for it in
 * vain leaves word for the next ones, in the time of the socket's file; its nanoseconds, which are
 * never so few by themselves, say how many did so one soon after the other. */
static unsigned vain_waits(void)
{
        struct stat about;
        struct timespec now;
        if (stat(ask.keeper.sun_path, &about) < 0 || about.st_mtim.tv_nsec > MOST_VAIN)
                return 0;
        clock_gettime(CLOCK_REALTIME, &now);
        int64_t since_s = (int64_t)now.tv_sec - about.st_mtim.tv_sec;
        return since_s >= 0 && since_s < SLOW_S ? (unsigned)about.st_mtim.tv_nsec : 0;
}

static void say_vain(unsigned waits)
{
        struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
        clock_gettime(CLOCK_REALTIME, &times[1]);
        times[1].tv_nsec = waits < MOST_VAIN ? waits : MOST_VAIN;
        (void)utimensat(AT_FDCWD, ask.keeper.sun_path, times, 0);
}

/* One moment in which all are busy costs nobody much: every second one in vain halves it. */
static int patience_ms(unsigned vain)
{
        int ms = PATIENT_MS;
        for (; vain >= 2 && ms > SHORT_MS; vain -= 2)
                ms /= 2;
        return ms > SHORT_MS ? ms : SHORT_MS;
}

/* ---- the question ---- */

/* Whom a program may let look at it where only ancestors may (keeper.c): known before any answer is
 * there, as the keeper's own parent has made the socket. */
static void learn_peer(int fd)
{
        struct ucred who;
        socklen_t size = sizeof who;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0)
                ask.peer = who.pid;
}

static int connect_by(int fd, uint64_t until_ns)
{
        while (connect(fd, (const struct sockaddr *)&ask.keeper, sizeof ask.keeper) < 0) {
                if (errno != EAGAIN && errno != EINTR)
                        return -errno;
                if (left_ms(until_ns) == 0)
                        return -EAGAIN;
                (void)poll(NULL, 0, RETRY_MS);
        }
        return 0;
}

/* The connection; -EAGAIN: there is no room for one yet. */
static int put(uint64_t until_ns)
{
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct afz_book_wish wish = {.magic = AFZ_BOOK_MAGIC,
                                     .version = AFZ_BOOK_VERSION,
                                     .own_pid = (uint32_t)afz_pid()};
        memcpy(wish.program, ask.program, sizeof wish.program);
        int r = fd < 0 ? -errno : connect_by(fd, until_ns);
        if (r == 0 && send(fd, &wish, sizeof wish, MSG_NOSIGNAL) != (ssize_t)sizeof wish)
                r = -EPIPE;
        if (r == 0)
                learn_peer(fd);
        else if (fd >= 0)
                close(fd);
        return r < 0 ? r : fd;
}

/* The connection of the open question, or -1. The program may have closed all descriptors, and that
 * number may be another file's by now. */
static int find_open(void)
{
        struct stat about;
        int fd = ask.fd - 1;
        if (fd >= 0 && fstat(fd, &about) == 0 && about.st_dev == ask.device &&
            about.st_ino == ask.inode)
                return fd;
        ask.fd = 0;
        return -1;
}

static void leave_open(int fd)
{
        struct stat about;
        int high = fd >= HIGH_FD ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
        if (high >= 0) {
                close(fd);
                fd = high;
        }
        if (fstat(fd, &about) < 0) {
                close(fd);
                return;
        }
        ask.device = about.st_dev;
        ask.inode = about.st_ino;
        ask.fd = fd + 1;
}

void afz_ask_forget(void)
{
        int fd = afz_is_sealed() ? -1 : find_open(); /* then it stays open: no system call */
        if (fd >= 0)
                close(fd);
        ask.fd = 0;
}

/* ---- the answer ---- */

static int has_come(int fd, uint64_t until_ns)
{
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int r;
        while ((r = poll(&p, 1, left_ms(until_ns))) < 0 && errno == EINTR)
                ;
        return r == 1;
}

/* How many came; those that did not are -1. */
static int receive_fds(int fd, int ret[AFZ_GIVEN])
{
        char byte;
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(AFZ_GIVEN * sizeof(int))];
        } control = {0};
        struct iovec data = {.iov_base = &byte, .iov_len = 1};
        struct msghdr message = {.msg_iov = &data,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof control};
        ret[AFZ_GIVEN_BOOK] = ret[AFZ_GIVEN_ROOM] = -1;
        if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != 1)
                return 0;
        const struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        int got = 0;
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
                for (; got < AFZ_GIVEN && c->cmsg_len >= CMSG_LEN((size_t)(got + 1) * sizeof *ret);
                     got++)
                        memcpy(&ret[got], CMSG_DATA(c) + (size_t)got * sizeof *ret, sizeof *ret);
        return got;
}

int afz_ask(int waits, int ret[AFZ_GIVEN])
{
        unsigned vain = waits ? vain_waits() : 0;
        uint64_t until_ns = waits ? afz_now_ns() + (uint64_t)patience_ms(vain) * 1000000 : 0;
        int fd = find_open(), got = -EAGAIN;
        if (fd < 0)
                fd = put(until_ns);
        if (fd < 0 && fd != -EAGAIN)
                return fd;
        if (fd >= 0 && has_come(fd, until_ns)) {
                got = receive_fds(fd, ret);
                close(fd);
                ask.fd = 0;
                return got;
        }
        if (fd >= 0 && ask.fd == 0)
                leave_open(fd);
        if (waits)
                say_vain(vain + 1);
        return -EAGAIN;
}
