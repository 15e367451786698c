/* Asks for memory that there may be no room for: `room MODE`. Prints what it got. No Python is in
 * it. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "antifreeze/step.h"

enum { MOST = 64, MIB = 1 << 20 };

void *take_aligned(size_t size); /* fake_umath.c: who looks at the answer */

static void *unheard(size_t size) /* as C++'s new does it: nobody here looks */
{
        void *at = NULL;
        errno = posix_memalign(&at, 64, size);
        return errno == 0 ? at : NULL;
}

static void *mapped(size_t size)
{
        void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return at == MAP_FAILED ? NULL : at;
}

/* How many of 64 MiB could be had, up to 16. */
static int count(void *(*take)(size_t))
{
        void *at[MOST];
        int n = 0;
        for (; n < 16; n++) {
                at[n] = take(64 * MIB);
                if (!at[n]) {
                        if (errno != ENOMEM)
                                n = -100;
                        break;
                }
                memset(at[n], 1, 64 * MIB);
        }
        for (int i = 0; i < n; i++)
                if (take == mapped)
                        munmap(at[i], 64 * MIB);
                else
                        free(at[i]);
        return n;
}

static int plain(void)
{
        printf("malloc %d\n", count(malloc));
        return 0;
}

static int armed(void)
{
        antifreeze_arm(1);
        printf("aligned %d\n", count(take_aligned));
        printf("unheard %d\n", count(unheard));
        printf("malloc %d\n", count(malloc));
        printf("mapped %d\n", count(mapped));
        antifreeze_arm(-1);
        printf("disarmed %d\n", count(take_aligned));
        return 0;
}

static _Atomic int refused, granted;

static void *worker(void *seed)
{
        unsigned x = (unsigned)(uintptr_t)seed;
        void *held[8] = {0};
        for (unsigned i = 0; i < 40; i++) {
                x = x * 1103515245 + 12345;
                void **slot = &held[(x >> 16) % 8];
                free(*slot);
                *slot = take_aligned((16 + (x >> 20) % 32) * MIB);
                if (*slot) {
                        memset(*slot, 1, 16 * MIB);
                        granted++;
                } else {
                        refused++;
                }
        }
        for (unsigned i = 0; i < 8; i++)
                free(held[i]);
        return NULL;
}

static int threads(void)
{
        pthread_t thread[8];
        antifreeze_arm(1);
        for (uintptr_t i = 0; i < 8; i++)
                if (pthread_create(&thread[i], NULL, worker, (void *)(i + 1)) != 0)
                        return 1;
        for (unsigned i = 0; i < 8; i++)
                pthread_join(thread[i], NULL);
        printf("granted %d refused %d\n", granted, refused);
        return 0;
}

/* A child that has what its parent has, and asks for more. */
static int forks(void)
{
        int status;
        antifreeze_arm(1);
        char *at = take_aligned(128 * MIB);
        if (!at)
                return 1;
        memset(at, 1, 128 * MIB);
        pid_t pid = fork();
        if (pid == 0) {
                printf("child %d\n", count(take_aligned));
                fflush(stdout);
                _exit(0);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
                return 1;
        printf("parent %d\n", count(take_aligned));
        free(at);
        return 0;
}

static int tells(void)
{
        const char *names[] = {"phase", "saved_step", "held_bytes"};
        for (unsigned i = 0; i < 3; i++)
                antifreeze_tell(antifreeze_told(names[i]), i);
        antifreeze_tell(antifreeze_told("batch_count"), 64);
        antifreeze_tell(antifreeze_told("micro_count"), 8);
        antifreeze_tell(antifreeze_told("micro_count"), UINT64_MAX); /* not any more */
        if (antifreeze_told("no such thing") != -1 || antifreeze_told("") != -1 ||
            antifreeze_told(NULL) != -1)
                return 1;
        antifreeze_tell(-1, 5);
        antifreeze_tell(1 << 20, 5);
        return 0;
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                int (*run)(void);
        } modes[] = {{"plain", plain},
                     {"armed", armed},
                     {"threads", threads},
                     {"forks", forks},
                     {"tells", tells}};
        for (unsigned i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
                if (strcmp(argv[1], modes[i].name) == 0)
                        return antifreeze_arm ? modes[i].run() : 3;
        return 2;
}
