/* Many processes with many threads that allocate, free and fork at the same time, each process with
 * a book that it asked for, and a keeper that reads and resets meanwhile: nobody waits for ever,
 * nothing is lost, and every book adds up in the end.
 *
 * usage: test_probe_stress [SECONDS]
 *
 * The blocks are addresses and nothing else, as the sanitizers' malloc hangs in the child of a
 * process with threads; the probe is told of them as its hooks do it. Built with the thread
 * sanitizer this says whether threads race. Whole programs with the library before them are in
 * test_probe.py and probe_stress.py. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "hooks.h"
#include "probe_hand.h"

enum {
        PROCESSES = 8,
        THREADS = 16,
        BOOKS = 64,         /* at the same time */
        SLOTS = 32,         /* blocks that a thread holds */
        CHILD_TURNS = 3000, /* of a child that was forked meanwhile */
        MEAN_BYTES = 20000, /* some two allocations of the sizes here */
        PATIENCE_S = 100,   /* longer than what is asked for: somebody waits for ever */
        LOOK_MS = 100,      /* of the keeper */
        PAUSE_TURNS = 256,
        PAUSE_MS = 10,
        DEEPEST = 40, /* calls */
};

#define FIRST_ADDRESS UINT64_C(0x10000000) /* where nothing is */

static unsigned seconds = 2;

/* ---- a process of the job ---- */

static _Atomic bool stop;

static unsigned next_random(unsigned *seed)
{
        *seed = *seed * 1103515245 + 12345;
        return *seed >> 8;
}

/* The blocks that a thread holds. */
struct hold {
        unsigned seed, nth, turns;
        void *slot[SLOTS];
};

/* In one of the places that are this thread's alone, as malloc would give it: near those of others
 * and soon again. */
static void take(struct hold *h, unsigned i)
{
        size_t size = 16 + next_random(&h->seed) % 20000;
        uintptr_t at =
                FIRST_ADDRESS + ((uintptr_t)h->nth * SLOTS * 2 + i * 2 + h->turns++ % 2) * 64;
        h->slot[i] = (void *)at; /* NOLINT */
        if (afz_count(size))
                (void)afz_count_slowly(AFZ_SITE_HEAP, h->slot[i], size);
}

static void give(struct hold *h, unsigned i)
{
        if (h->slot[i] && afz_may_have(h->slot[i]))
                (void)afz_take_out(h->slot[i]);
        h->slot[i] = NULL;
}

/* From stacks of many kinds. */
__attribute__((noinline)) static void turn(struct hold *h, unsigned depth)
{
        if (depth > 0) {
                turn(h, depth - 1);
        } else {
                unsigned i = next_random(&h->seed) % SLOTS;
                give(h, i);
                take(h, i);
        }
        __asm__ volatile("" ::: "memory");
}

static void clear(struct hold *h)
{
        for (unsigned i = 0; i < SLOTS; i++)
                give(h, i);
}

static void *churn(void *data)
{
        struct hold *h = data;
        (void)!nice(19); /* of this thread: the keeper has 1 s to answer who forks */
        for (unsigned i = 1; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
                turn(h, next_random(&h->seed) % DEEPEST);
                if (i % PAUSE_TURNS == 0)
                        (void)poll(NULL, 0, PAUSE_MS);
        }
        clear(h);
        return NULL;
}

static void child(unsigned seed)
{
        struct hold h = {.seed = seed, .nth = THREADS};
        alarm(seconds + PATIENCE_S);
        for (int i = 0; i < CHILD_TURNS; i++)
                turn(&h, next_random(&h.seed) % DEEPEST);
        clear(&h);
        _exit(0);
}

static void forget_parent(struct afz_book *book)
{
        afz_stack_new_book(book);
        afz_heap_forget();
}

static uint64_t now_ms(void)
{
        return afz_now_ns() / 1000000;
}

/* 0: all went as it should. */
static int process(unsigned nth)
{
        static struct hold hold[THREADS];
        pthread_t thread[THREADS];
        uint64_t until = now_ms() + seconds * UINT64_C(1000);
        unsigned threads = 0;
        int bad = 0;
        alarm(seconds + PATIENCE_S);
        afz_stack_start();
        afz_keeper_start(forget_parent);
        afz_heap_start();
        for (; threads < THREADS; threads++) {
                hold[threads] = (struct hold){.seed = nth * 100 + threads, .nth = threads};
                if (pthread_create(&thread[threads], NULL, churn, &hold[threads]) != 0)
                        break;
        }
        for (unsigned i = 0; !bad && now_ms() < until; i++) {
                int status = 1;
                pid_t pid = fork();
                if (pid == 0)
                        child(i);
                bad = pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
        }
        stop = true;
        for (unsigned i = 0; i < threads; i++)
                pthread_join(thread[i], NULL);
        afz_keeper_end();
        return bad || threads != THREADS;
}

/* ---- the keeper ---- */

static struct {
        struct afz_book *book[BOOKS], *spare; /* the one who asks next need not wait for it */
        int spare_fd;
        unsigned given, whole, unused;
        const char *fault;
} keeper;

static void serve(int listener)
{
        struct afz_book_wish wish;
        uint32_t pid;
        int fd = hand_accept(listener, &pid, &wish);
        if (fd < 0)
                return;
        for (unsigned i = 0; i < BOOKS && keeper.spare; i++) {
                if (keeper.book[i])
                        continue;
                keeper.spare->pid = pid;
                hand_seal(keeper.spare_fd);
                hand_send(fd, keeper.spare_fd, -1);
                close(keeper.spare_fd);
                keeper.book[i] = keeper.spare;
                keeper.spare = NULL;
                keeper.given++;
        }
        close(fd);
}

/* One whose process has ended. It may have waited in vain and never opened it. */
static void finish(struct afz_book *book)
{
        const char *fault = book->state == AFZ_BOOK_NEW ? NULL : hand_fault(book);
        if (book->state == AFZ_BOOK_NEW)
                keeper.unused++;
        else if (book->live_bytes != 0)
                fault = "something was lost: all was freed";
        else if (book->samples == 0)
                fault = "nothing was written";
        if (!fault)
                keeper.whole++;
        else
                keeper.fault = fault;
        (void)munmap(book, AFZ_BOOK_BYTES);
}

static void look(void)
{
        for (unsigned i = 0; i < BOOKS; i++) {
                struct afz_book *book = keeper.book[i];
                if (!book)
                        continue;
                hand_reset_marks(book);
                if (kill((pid_t)book->pid, 0) == 0 || errno != ESRCH)
                        continue;
                finish(book);
                keeper.book[i] = NULL;
        }
}

static void test_many(void **state)
{
        char path[64];
        unsigned running = 0;
        int status, failed = 0;
        (void)state;
        snprintf(path, sizeof path, "/tmp/afz-stress-%d", (int)getpid());
        setenv(AFZ_BOOK_SOCKET, path, 1);
        int listener = hand_listen(path);
        assert_true(listener >= 0);
        for (; running < PROCESSES; running++) {
                pid_t pid = fork();
                if (pid == 0)
                        _exit(process(running));
                assert_true(pid > 0);
        }
        for (uint64_t due = 0; running > 0;) {
                struct pollfd p = {.fd = listener, .events = POLLIN};
                if (!keeper.spare)
                        keeper.spare = hand_make(0, MEAN_BYTES, 0, &keeper.spare_fd);
                if (poll(&p, 1, LOOK_MS) > 0)
                        serve(listener);
                while (waitpid(-1, &status, WNOHANG) > 0) {
                        running--;
                        failed = failed ? failed : status;
                }
                if (now_ms() < due)
                        continue;
                due = now_ms() + LOOK_MS;
                look();
        }
        look();
        close(listener);
        unlink(path);
        printf("%u books, %u whole, %u asked for in vain\n", keeper.given, keeper.whole,
               keeper.unused);
        assert_int_equal(failed, 0);
        if (keeper.fault)
                fail_msg("%s", keeper.fault);
        assert_int_equal(keeper.whole, keeper.given);
        assert_true(keeper.given > keeper.unused);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_many)};
        if (argc > 1)
                seconds = (unsigned)atoi(argv[1]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
