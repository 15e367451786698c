/* Programs whose keeper answers when they have given up waiting: their book comes later. Each ends
 * with 0 once it is there. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "antifreeze/step.h"
#include "program.h"

enum { OTHERS = 300, PATIENCE_S = 60 };

static bool has_book(void)
{
        char line[512];
        bool found = false;
        FILE *maps = fopen("/proc/self/maps", "re");
        while (maps && !found && fgets(line, sizeof line, maps))
                found = strstr(line, "memfd:book") != NULL;
        if (maps)
                fclose(maps);
        return found;
}

static void allocate(void)
{
        free(keep(malloc(1 << 20)));
}

static int wait_for_book(void (*turn)(void))
{
        time_t until = time(NULL) + PATIENCE_S;
        while (!has_book()) {
                CHECK(time(NULL) < until);
                turn();
                usleep(2000);
        }
        return 0;
}

static NOINLINE void *hold_late(size_t size)
{
        void *at = keep(malloc(size));
        __asm__ volatile("" ::: "memory");
        return at;
}

/* What was told before is told. */
int late(void)
{
        CHECK(antifreeze_step && antifreeze_told && !has_book());
        for (int i = 0; i < 3; i++)
                antifreeze_step();
        antifreeze_tell(antifreeze_told("batch_count"), 64);
        antifreeze_wait(5000);
        CHECK(wait_for_book(allocate) == 0);
        return hold_late(16 << 20) ? 0 : 1;
}

/* One that has all its memory and allocates no more. */
int late_steps(void)
{
        CHECK(!has_book());
        return wait_for_book(antifreeze_step);
}

/* All descriptors are closed, as a daemon does it, and their numbers used for others, in which a
 * word waits to be read. */
int late_closed(void)
{
        int other[OTHERS][2];
        char word = 0;
        for (int fd = 3; fd < 1024; fd++)
                close(fd);
        for (int i = 0; i < OTHERS; i++) {
                CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, other[i]) == 0);
                CHECK(send(other[i][0], "w", 1, 0) == 1 && send(other[i][1], "w", 1, 0) == 1);
        }
        CHECK(wait_for_book(allocate) == 0);
        for (int i = 0; i < OTHERS; i++)
                for (int end = 0; end < 2; end++)
                        CHECK(recv(other[i][end], &word, 1, MSG_DONTWAIT) == 1 && word == 'w');
        return 0;
}

/* It waits for the answer, too, and for as long. */
static int be_child(void)
{
        CHECK(wait_for_book(allocate) == 0);
        keep(hold_late(8 << 20));
        return 0;
}

/* Children are made while the question is open, by fork() and past it; each asks for itself. */
int late_children(void)
{
        int status[2] = {1, 1};
        CHECK(!has_book());
        pid_t forked = fork();
        if (forked == 0)
                _exit(be_child());
        pid_t cloned = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (cloned == 0)
                _exit(be_child());
        CHECK(forked > 0 && cloned > 0 && wait_for_book(allocate) == 0);
        CHECK(waitpid(forked, &status[0], 0) == forked && status[0] == 0);
        CHECK(waitpid(cloned, &status[1], 0) == cloned && status[1] == 0);
        keep(hold_late(4 << 20));
        return 0;
}

static _Atomic bool stop;

static void *allocates(void *unused)
{
        void *slot[32] = {0};
        (void)unused;
        for (unsigned i = 0; !stop; i++) {
                free(slot[i % 32]);
                slot[i % 32] = malloc(1000 + i % 5000);
                if (i % 1000 == 0)
                        usleep(1000);
        }
        for (unsigned i = 0; i < 32; i++)
                free(slot[i]);
        return NULL;
}

static _Atomic bool is_cancelled, outlived;

static void *mallocs_on(void *unused)
{
        (void)unused;
        while (!is_cancelled)
                ;
        for (clock_t end = clock() + CLOCKS_PER_SEC / 4; clock() < end;)
                free(keep(malloc(3 << 20)));
        outlived = true;
        pthread_testcancel();
        return NULL;
}

/* A thread that was cancelled ends where POSIX says so, and not in malloc(). */
int late_cancelled(void)
{
        pthread_t thread;
        void *end = NULL;
        CHECK(!has_book() && pthread_create(&thread, NULL, mallocs_on, NULL) == 0);
        CHECK(pthread_cancel(thread) == 0);
        is_cancelled = true;
        CHECK(pthread_join(thread, &end) == 0 && end == PTHREAD_CANCELED && outlived);
        return wait_for_book(allocate);
}

int late_threads(void)
{
        pthread_t thread[8];
        for (int i = 0; i < 8; i++)
                CHECK(pthread_create(&thread[i], NULL, allocates, NULL) == 0);
        CHECK(wait_for_book(allocate) == 0);
        usleep(100000);
        stop = true;
        for (int i = 0; i < 8; i++)
                CHECK(pthread_join(thread[i], NULL) == 0);
        return 0;
}
