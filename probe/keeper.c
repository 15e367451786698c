/* How a process comes by its book. One thread asks, once in a process; whoever allocates meanwhile
 * goes without.
 *
 * The child of a fork must not write into its parent's book. fork() tells us (pthread_atfork), a
 * bare clone() does not: so the word that says "this is our book" lies in a page that the kernel
 * empties in every child (MADV_WIPEONFORK). A vfork() child shares the parent's memory and writes,
 * rightly, into the parent's book. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "module.h"
#include "probe.h"

enum {
        HANDOVER_MS = 1000, /* that the keeper may take on a machine that is all busy; it is 1 as a
                               rule. Then the process goes without */
        SHORT_MS = 20,      /* the same at least, where others have waited in vain */
        SLOW_S = 5,         /* so lately */
        MOST_VAIN = 999,    /* of them are counted */
        RETRY_MS = 5,       /* when it has not come to accepting others yet */
        SEAL_TURNS = 1000,  /* of waiting for threads that are in the probe just now */
};

/* In the page that is empty in a child. */
struct life {
        _Atomic int pid;  /* 0: not known in this process */
        _Atomic int owns; /* afz_book_now is this process's */
};

static _Atomic uint8_t no_filter[AFZ_BOOK_FILTER];

struct afz_book *_Atomic afz_book_now;
_Atomic uint8_t *_Atomic afz_filter_now = no_filter;

static struct {
        struct life *life;
        int wipes; /* the kernel empties it */
        void (*on_new)(struct afz_book *book);
        _Atomic int wanted; /* there is a keeper, and this process has not asked it */
        struct sockaddr_un keeper;
        char program[64];
        unsigned long looker; /* afz_book.looker_pid */
        _Atomic int sealed;
} state;

uint64_t afz_now_ns(void)
{
        struct timespec t;
        clock_gettime(CLOCK_BOOTTIME, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int afz_pid(void)
{
        int pid = state.wipes ? atomic_load_explicit(&state.life->pid, memory_order_relaxed) : 0;
        if (pid == 0) {
                pid = (int)syscall(SYS_getpid);
                if (state.wipes)
                        atomic_store_explicit(&state.life->pid, pid, memory_order_relaxed);
        }
        return pid;
}

/* ---- asking ---- */

static int left_ms(uint64_t until_ns)
{
        uint64_t now = afz_now_ns();
        return now >= until_ns ? 0 : (int)((until_ns - now) / 1000000) + 1;
}

static int connect_by(int fd, uint64_t until_ns)
{
        while (connect(fd, (const struct sockaddr *)&state.keeper, sizeof state.keeper) < 0) {
                if ((errno != EAGAIN && errno != EINTR) || left_ms(until_ns) == 0)
                        return -1;
                (void)poll(NULL, 0, RETRY_MS);
        }
        return 0;
}

static int wait_by(int fd, uint64_t until_ns)
{
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ms = left_ms(until_ns), r = -1;
        while (ms > 0 && (r = poll(&p, 1, ms)) < 0 && errno == EINTR)
                ms = left_ms(until_ns);
        return r == 1 ? 0 : -1;
}

/* The book, and perhaps the room. */
enum { BOOK, ROOM, FDS };

/* How many came; those that did not are -1. */
static int receive_fds(int fd, int ret[FDS])
{
        char byte;
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(FDS * sizeof(int))];
        } control = {0};
        struct iovec data = {.iov_base = &byte, .iov_len = 1};
        struct msghdr message = {.msg_iov = &data,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof control};
        ret[BOOK] = ret[ROOM] = -1;
        if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != 1)
                return 0;
        const struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        int got = 0;
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
                for (; got < FDS && c->cmsg_len >= CMSG_LEN((size_t)(got + 1) * sizeof *ret); got++)
                        memcpy(&ret[got], CMSG_DATA(c) + (size_t)got * sizeof *ret, sizeof *ret);
        return got;
}

/* A keeper that hangs must not hold up each of a thousand short programs: who has waited for it in
 * vain leaves word for the next ones, in the time of the socket's file; its nanoseconds, which are
 * never so few by themselves, say how many did so one soon after the other. */
static unsigned vain_waits(void)
{
        struct stat about;
        struct timespec now;
        if (stat(state.keeper.sun_path, &about) < 0 || about.st_mtim.tv_nsec > MOST_VAIN)
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
        (void)utimensat(AT_FDCWD, state.keeper.sun_path, times, 0);
}

/* One moment in which all are busy costs nobody a book: every second one in vain halves it. */
static int patience_ms(unsigned vain)
{
        int ms = HANDOVER_MS;
        for (; vain >= 2 && ms > SHORT_MS; vain -= 2)
                ms /= 2;
        return ms > SHORT_MS ? ms : SHORT_MS;
}

static int ask_keeper(int fd, int ret[FDS])
{
        unsigned vain = vain_waits();
        uint64_t until_ns = afz_now_ns() + (uint64_t)patience_ms(vain) * 1000000;
        struct afz_book_wish wish = {.magic = AFZ_BOOK_MAGIC,
                                     .version = AFZ_BOOK_VERSION,
                                     .own_pid = (uint32_t)afz_pid()};
        memcpy(wish.program, state.program, sizeof wish.program);
        if (connect_by(fd, until_ns) < 0 ||
            send(fd, &wish, sizeof wish, MSG_NOSIGNAL) != (ssize_t)sizeof wish ||
            wait_by(fd, until_ns) < 0) {
                if (left_ms(until_ns) == 0)
                        say_vain(vain + 1);
                return 0;
        }
        return receive_fds(fd, ret);
}

/* By the system call: our own mmap() counts. A file that can shrink under us is refused, as
 * touching what was cut off is a SIGBUS. */
static struct afz_book *map_book(int fd)
{
        struct stat about;
        int seals = fcntl(fd, F_GET_SEALS);
        if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &about) < 0 ||
            about.st_size < (off_t)AFZ_BOOK_BYTES)
                return NULL;
        struct afz_book *book = (struct afz_book *)syscall(
                SYS_mmap, NULL, AFZ_BOOK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)0);
        if (book == MAP_FAILED)
                return NULL;
        if (book->magic == AFZ_BOOK_MAGIC && book->mean_bytes != 0)
                return book;
        (void)syscall(SYS_munmap, book, AFZ_BOOK_BYTES);
        return NULL;
}

static struct afz_book *open_book(void)
{
        struct afz_book *book = NULL;
        int asks = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (asks < 0)
                return NULL;
        int fd[FDS], got = ask_keeper(asks, fd);
        close(asks);
        if (got > BOOK)
                book = map_book(fd[BOOK]);
        if (book && got > ROOM)
                afz_room_open(fd[ROOM]);
        while (got > 0)
                close(fd[--got]);
        if (!book)
                return NULL;
        book->own_pid = (uint32_t)afz_pid();
        book->opened_ns = afz_now_ns();
        afz_book_prepare(book);
        afz_module_fill(book);
        atomic_store(&book->state, AFZ_BOOK_OPEN);
        return book;
}

/* ---- who may look ---- */

/* Where Yama lets only ancestors read a process, the one that shows its stacks has to be named, in
 * each process anew. Right at the start of a program and of a child: whom the program itself names
 * (crash handlers, MPI) comes later, and holds. */
static void let_look(void)
{
        if (state.looker != 0 && !afz_is_sealed())
                (void)prctl(PR_SET_PTRACER, state.looker, 0UL, 0UL, 0UL);
}

static void learn_looker(const struct afz_book *book)
{
        if (book->pid == book->own_pid) /* else its numbers are not ours: a container */
                state.looker = book->looker_pid;
}

/* ---- who locks itself in ---- */

int afz_is_sealed(void)
{
        return atomic_load_explicit(&state.sealed, memory_order_relaxed);
}

int afz_seal(int on)
{
        const struct afz_book *book = afz_book_seen();
        char *socket = getenv(AFZ_BOOK_SOCKET);
        int was = atomic_exchange(&state.sealed, on);
        if (socket && state.keeper.sun_path[0]) /* for programs that are started from here */
                socket[0] = on ? '\0' : '/';
        /* Other threads may be locked in with this one. */
        for (int turn = 0; on && book && atomic_load(&book->inside) > 0 && turn < SEAL_TURNS;
             turn++)
                (void)sched_yield();
        return was;
}

/* ---- whose it is ---- */

int afz_book_is_mine(void)
{
        if (!state.life)
                return 0;
        if (!state.wipes)
                return atomic_load(&state.life->owns) == afz_pid();
        return atomic_load_explicit(&state.life->owns, memory_order_relaxed) != 0;
}

/* In the child. The parent's book stays mapped: a signal handler may have forked right out of it.
 */
static void after_fork(void)
{
        if (!state.life)
                return;
        atomic_store(&afz_filter_now, no_filter);
        atomic_store(&afz_book_now, NULL);
        atomic_store(&state.life->owns, 0);
        atomic_store(&state.wanted, 1);
}

static void before_fork(void)
{
        if (afz_book_seen() && !afz_book_is_mine())
                afz_heap_leave_out(); /* as below, of a child that has not allocated much yet */
}

static void forked(void)
{
        if (atomic_load(&afz_book_now)) /* a parent without a book has none to give: ask no more */
                after_fork();
        afz_room_forget();
        afz_module_after_fork();
        let_look();
}

struct afz_book *afz_book_mine(int *ret_new)
{
        struct afz_book *book = afz_book_seen();
        if (book && afz_book_is_mine())
                return book;
        if (book) { /* a child that was not made by fork(): nobody let go of malloc's locks */
                afz_heap_leave_out();
                after_fork();
                afz_room_forget();
                afz_module_after_fork();
        }
        int one = 1; /* thread does it, once */
        if (!atomic_compare_exchange_strong(&state.wanted, &one, 0))
                return NULL;
        int saved = errno;
        book = open_book();
        errno = saved;
        if (!book)
                return NULL;
        /* Before any thread can see it: what was remembered for the book before is void. */
        if (state.on_new)
                state.on_new(book);
        atomic_store(&state.life->owns, afz_pid());
        atomic_store(&afz_filter_now, book->filter);
        atomic_store(&afz_book_now, book);
        *ret_new = 1;
        return book;
}

void afz_keeper_start(void (*on_new)(struct afz_book *book))
{
        const char *path = secure_getenv(AFZ_BOOK_SOCKET);
        long page = sysconf(_SC_PAGESIZE);
        if (!path || path[0] != '/' || strlen(path) >= sizeof state.keeper.sun_path)
                return;
        void *life = (void *)syscall(SYS_mmap, NULL, (size_t)page, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, (off_t)0);
        if (life == MAP_FAILED)
                return;
        state.wipes = madvise(life, (size_t)page, MADV_WIPEONFORK) == 0;
        state.life = life;
        state.on_new = on_new;
        state.keeper.sun_family = AF_UNIX;
        strcpy(state.keeper.sun_path, path);
        strncpy(state.program, program_invocation_short_name, sizeof state.program - 1);
        atomic_store(&state.wanted, 1);
        int new_one = 0;
        const struct afz_book *book = afz_book_mine(&new_one);
        if (!book)
                return;
        (void)pthread_atfork(before_fork, NULL, forked);
        learn_looker(book);
        let_look();
}

void afz_keeper_end(void)
{
        struct afz_book *book = afz_book_seen();
        if (book && afz_book_is_mine())
                atomic_store(&book->state, AFZ_BOOK_CLOSED);
}
