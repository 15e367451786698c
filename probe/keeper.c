/* How a process comes by its book. One thread asks (ask.c), once in a process; whoever allocates
 * meanwhile goes without. If there is no answer in time, one looks for it later, between two
 * allocations or steps.
 *
 * The child of a fork must not write into its parent's book. fork() tells us (pthread_atfork), a
 * bare clone() does not: so the word that says "this is our book" lies in a page that the kernel
 * empties in every child (MADV_WIPEONFORK). A vfork() child shares the parent's memory and writes,
 * rightly, into the parent's book. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "module.h"
#include "probe.h"

enum {
        LOOK_NS = 20000000, /* between two looks whether a book has come after all */
        SEAL_TURNS = 1000,  /* of waiting for threads that are in the probe just now */
};

/* Whether this process is to have a book that it has not. */
enum {
        NOT_WANTED,
        TO_ASK, /* and to wait for it, for some time */
        ASKED,  /* and not answered yet */
};

/* In the page that is empty in a child. */
struct life {
        _Atomic int pid;  /* 0: not known in this process */
        _Atomic int owns; /* afz_book_now is this process's, or what is ASKED */
};

static _Atomic uint8_t no_filter[AFZ_BOOK_FILTER];

struct afz_book *_Atomic afz_book_now;
_Atomic uint8_t *_Atomic afz_filter_now = no_filter;

static struct {
        struct life *life;
        int wipes; /* the kernel empties it */
        void (*on_new)(struct afz_book *book);
        _Atomic int wanted;
        _Atomic int busy; /* a thread asks */
        _Atomic uint64_t due_ns;
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

/* ---- the book ---- */

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

/* -EAGAIN: it may come later. */
static int open_book(int waits, struct afz_book **ret)
{
        struct afz_book *book = NULL;
        int fd[AFZ_GIVEN], got = afz_ask(waits, fd);
        if (got > AFZ_GIVEN_BOOK)
                book = map_book(fd[AFZ_GIVEN_BOOK]);
        if (book && got > AFZ_GIVEN_ROOM)
                afz_room_open(fd[AFZ_GIVEN_ROOM]);
        for (int i = 0; i < got; i++)
                close(fd[i]);
        if (!book)
                return got < 0 ? got : -ENOENT;
        book->own_pid = (uint32_t)afz_pid();
        book->opened_ns = afz_now_ns();
        afz_book_prepare(book);
        afz_module_fill(book);
        atomic_store(&book->state, AFZ_BOOK_OPEN);
        *ret = book;
        return 0;
}

/* ---- who may look ---- */

/* Where Yama lets only ancestors read a process, the one that shows its stacks has to be named, in
 * each process anew. Right at the start of a program and of a child: whom the program itself names
 * (crash handlers, MPI) comes later, and holds. */
static void let_look(void)
{
        if (afz_ask_peer() > 0 && !afz_is_sealed())
                (void)prctl(PR_SET_PTRACER, (unsigned long)afz_ask_peer(), 0UL, 0UL, 0UL);
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
        if (socket && state.life) /* for programs that are started from here */
                socket[0] = on ? '\0' : '/';
        /* Other threads may be locked in with this one. */
        for (int turn = 0; on && turn < SEAL_TURNS; turn++) {
                if (!atomic_load(&state.busy) && !(book && atomic_load(&book->inside) > 0))
                        break;
                (void)sched_yield();
        }
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
        atomic_store(&state.wanted, TO_ASK);
        atomic_store(&state.busy, 0);
        afz_ask_forget();
}

static void before_fork(void)
{
        if (afz_book_seen() && !afz_book_is_mine())
                afz_heap_leave_out(); /* as below, of a child that has not allocated much yet */
}

static void forked(void)
{
        if (afz_book_hoped()) /* who is to have none has none to give: ask no more */
                after_fork();
        afz_room_forget();
        afz_module_after_fork();
        let_look();
}

int afz_book_hoped(void)
{
        return afz_book_seen() || atomic_load(&state.wanted) != NOT_WANTED;
}

int afz_book_asked(void)
{
        return atomic_load_explicit(&state.wanted, memory_order_relaxed) == ASKED;
}

/* Before any thread can see it: what was remembered for the book before is void. */
static void show(struct afz_book *book)
{
        if (state.on_new)
                state.on_new(book);
        atomic_store(&state.life->owns, afz_pid());
        atomic_store(&afz_filter_now, book->filter);
        atomic_store(&afz_book_now, book);
}

/* By one thread at a time. malloc() is no cancellation point, though we may wait in it here. */
static struct afz_book *get_book(int wanted)
{
        struct afz_book *book = NULL;
        int saved = errno, cancels = PTHREAD_CANCEL_ENABLE;
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
        int r = open_book(wanted == TO_ASK, &book);
        (void)pthread_setcancelstate(cancels, &cancels);
        if (r == 0)
                show(book);
        else if (r == -EAGAIN)
                atomic_store(&state.life->owns, afz_pid());
        atomic_store(&state.due_ns, afz_now_ns() + LOOK_NS);
        atomic_store(&state.wanted, r == -EAGAIN ? ASKED : NOT_WANTED);
        errno = saved;
        return book;
}

struct afz_book *afz_book_mine(int *ret_new)
{
        struct afz_book *book = afz_book_seen();
        int wanted = atomic_load(&state.wanted);
        if (book && afz_book_is_mine())
                return book;
        if (!book && wanted == NOT_WANTED)
                return NULL;
        /* A child that was not made by fork(): nobody let go of malloc's locks. */
        if ((book || wanted == ASKED) && !afz_book_is_mine()) {
                afz_heap_leave_out();
                after_fork();
                afz_room_forget();
                afz_module_after_fork();
        } else if (wanted == ASKED && afz_now_ns() < atomic_load(&state.due_ns)) {
                return NULL;
        }
        if (atomic_exchange(&state.busy, 1))
                return NULL;
        wanted = atomic_load(&state.wanted); /* what another thread has left of it */
        book = wanted == NOT_WANTED ? NULL : get_book(wanted);
        atomic_store(&state.busy, 0);
        *ret_new = book != NULL;
        return book;
}

void afz_keeper_start(void (*on_new)(struct afz_book *book))
{
        const char *path = secure_getenv(AFZ_BOOK_SOCKET);
        long page = sysconf(_SC_PAGESIZE);
        if (!path || afz_ask_start(path) < 0)
                return;
        void *life = (void *)syscall(SYS_mmap, NULL, (size_t)page, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, (off_t)0);
        if (life == MAP_FAILED)
                return;
        state.wipes = madvise(life, (size_t)page, MADV_WIPEONFORK) == 0;
        state.life = life;
        state.on_new = on_new;
        atomic_store(&state.wanted, TO_ASK);
        int new_one = 0;
        (void)afz_book_mine(&new_one);
        if (!afz_book_hoped())
                return;
        (void)pthread_atfork(before_fork, NULL, forked);
        let_look();
}

void afz_keeper_end(void)
{
        struct afz_book *book = afz_book_seen();
        if (book && afz_book_is_mine())
                atomic_store(&book->state, AFZ_BOOK_CLOSED);
}
