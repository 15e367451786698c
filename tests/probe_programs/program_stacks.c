/* Stacks for the probe to walk: coroutines, signal handlers, deep ones, and some that are nothing
 * but rubbish. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "program.h"

static ucontext_t back, there;

static void coroutine(void)
{
        for (int i = 0; i < 50; i++) {
                free(keep(malloc(60000)));
                swapcontext(&there, &back);
        }
}

int coroutines(void)
{
        static int round; /* not in a register, across swapcontext() */
        for (round = 0; round < 40; round++) {
                size_t size = (size_t)(8 + round % 3 * 28) << 10;
                char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                   -1, 0);
                CHECK(stack != MAP_FAILED && getcontext(&there) == 0);
                there.uc_stack.ss_sp = stack;
                there.uc_stack.ss_size = size;
                there.uc_link = &back;
                makecontext(&there, coroutine, 0);
                for (int i = 0; i < 51; i++)
                        swapcontext(&back, &there);
                munmap(stack, size);
        }
        return 0;
}

static void *coroutines_in_thread(void *ret)
{
        *(int *)ret = coroutines();
        return NULL;
}

int coroutine_threads(void)
{
        pthread_attr_t small;
        pthread_t thread;
        int r = 1;
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 64 << 10);
        pthread_attr_setguardsize(&small, 0);
        for (int i = 0; i < 3; i++) {
                CHECK(pthread_create(&thread, &small, coroutines_in_thread, &r) == 0);
                pthread_join(thread, NULL);
                CHECK(r == 0);
        }
        return 0;
}

static void handler(int number)
{
        (void)number;
        for (int i = 0; i < 40; i++)
                free(keep(malloc(60000)));
}

int signals(void)
{
        static char room[16 << 10];
        stack_t small = {.ss_sp = room, .ss_size = sizeof room};
        struct sigaction act = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
        CHECK(sigaltstack(&small, NULL) == 0 && sigaction(SIGUSR1, &act, NULL) == 0);
        for (int i = 0; i < 100; i++)
                raise(SIGUSR1);
        return 0;
}

static NOINLINE int recurse(int depth)
{
        volatile int here = depth;
        if (depth == 0) {
                for (int i = 0; i < 100; i++)
                        free(keep(malloc(100000)));
                return 0;
        }
        return recurse(depth - 1) + here - here;
}

int deep(void)
{
        return recurse(50000);
}

/* Code without tables, made at run time, with anything for a frame pointer: f(FRAME_POINTER, SIZE,
 * malloc). */
#if defined(__x86_64__)
static const unsigned char made[] = {0x55, 0x48, 0x89, 0xfd, 0x48, 0x89,
                                     0xf7, 0xff, 0xd2, 0x5d, 0xc3};
#elif defined(__aarch64__)
static const unsigned made[] = {0xa9bf7bfd, 0xaa0003fd, 0xaa0103e0,
                                0xd63f0040, 0xa8c17bfd, 0xd65f03c0};
#endif

int wild(void)
{
        char *page = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        void *(*run)(uintptr_t, size_t, void *(*)(size_t));
        CHECK(page != MAP_FAILED && mprotect(page + 2 * 4096, 4096, PROT_NONE) == 0);
        memcpy(page, made, sizeof made);
        memcpy(&run, &page, sizeof run);
        /* Frames that never end: upwards over more than a page, and in a circle. */
        uintptr_t frames[2000], circle[4], end = (uintptr_t)page + 2 * 4096;
        uintptr_t code = (uintptr_t)&wild + 8, here = (uintptr_t)frames;
        for (size_t i = 0; i < 2000; i += 2) {
                frames[i] = here + (i + 2) * sizeof frames[0];
                frames[i + 1] = code;
        }
        circle[0] = (uintptr_t)&circle[2];
        circle[2] = (uintptr_t)&circle[0];
        circle[1] = circle[3] = code;
        const uintptr_t anything[] = {
                0,
                1,
                7,
                8,
                4096,
                here,
                here + 1,
                here - 4096,
                here + (64 << 20),
                end - 8,
                end - 16,
                end - 1,
                end,
                (uintptr_t)circle,
                (uintptr_t)&circle[2],
                1ull << 47,
                0xdeadbeefdeadbeef,
                UINTPTR_MAX,
                UINTPTR_MAX - 7,
        };
        for (size_t i = 0; i < sizeof anything / sizeof anything[0]; i++)
                for (int k = 0; k < 20; k++)
                        free(keep(run(anything[i], 60000, malloc)));
        return 0;
}
