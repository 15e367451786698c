/* A program for the probe to look at: `program MODE`. Ends with 0 when all was as it should be. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "antifreeze/step.h"
#include "program.h"

static void *volatile sink; /* so that no allocation is left out by the compiler */

void *keep(void *at)
{
        sink = at;
        return at;
}

/* ---- truth: who holds how much ---- */

#define HOLDER(name)                                                                               \
        static NOINLINE void *name(size_t size)                                                    \
        {                                                                                          \
                void *at = keep(malloc(size));                                                     \
                __asm__ volatile("" ::: "memory");                                                 \
                return at;                                                                         \
        }
HOLDER(hold_half)
HOLDER(hold_quarter)
HOLDER(hold_some)
HOLDER(hold_little)
HOLDER(pass_through)

static unsigned random_size(unsigned *seed, unsigned most)
{
        *seed = *seed * 1103515245 + 12345;
        return 16 + (*seed >> 8) % most;
}

static int truth(void)
{
        static const struct {
                const char *name;
                void *(*take)(size_t);
                unsigned most;
                size_t bytes;
        } holders[] = {
                {"hold_half", hold_half, 600, 24 << 20},
                {"hold_quarter", hold_quarter, 9000, 12 << 20},
                {"hold_some", hold_some, 100, 8 << 20},
                {"hold_little", hold_little, 2000, 4 << 20},
        };
        unsigned seed = 7, part = getenv("PART") ? (unsigned)atoi(getenv("PART")) : 1;
        for (size_t i = 0; i < sizeof holders / sizeof holders[0]; i++) {
                size_t sum = 0;
                while (sum < holders[i].bytes / part) {
                        unsigned size = random_size(&seed, holders[i].most);
                        holders[i].take(size);
                        sum += size;
                        free(pass_through(random_size(&seed, 3000)));
                }
                fprintf(stderr, "TRUTH %s %zu\n", holders[i].name, sum);
        }
        return 0;
}

static int killed(void)
{
        for (int i = 0; i < 20; i++)
                keep(malloc(2 << 20));
        kill(getpid(), SIGKILL);
        return 1;
}

/* ---- processes and threads ---- */

static _Atomic bool stop;

static void *churn(void *unused)
{
        unsigned seed = (unsigned)(uintptr_t)&unused;
        void *slot[64] = {0};
        while (!stop) {
                unsigned i = random_size(&seed, 1000) % 64;
                free(slot[i]);
                slot[i] = malloc(random_size(&seed, 20000));
        }
        for (int i = 0; i < 64; i++)
                free(slot[i]);
        return NULL;
}

static NOINLINE void allocate_in_child(void)
{
        for (int i = 0; i < 300; i++)
                keep(malloc(20000));
}

static int forks(void)
{
        pthread_t thread[8];
        for (int i = 0; i < 8; i++)
                CHECK(pthread_create(&thread[i], NULL, churn, NULL) == 0);
        for (int i = 0; i < 100; i++) {
                int status = 1;
                pid_t pid = fork();
                if (pid == 0) {
                        allocate_in_child();
                        _exit(0);
                }
                CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
        }
        stop = true;
        for (int i = 0; i < 8; i++)
                pthread_join(thread[i], NULL);
        return 0;
}

/* Processes, each with as many threads that use all of the family, and forks meanwhile: SECONDS. */
static void *crowd_thread(void *nth)
{
        unsigned seed = (unsigned)(uintptr_t)nth;
        void *slot[64] = {0};
        char *map = NULL;
        (void)!nice(15); /* a child that waits for the keeper waits for us */
        while (!stop) {
                unsigned i = random_size(&seed, 1000) % 64, size = random_size(&seed, 40000);
                switch (random_size(&seed, 64) % 8) {
                case 0:
                        slot[i] = realloc(slot[i], size);
                        continue;
                case 1:
                        if (map)
                                munmap(map, 3 << 20);
                        map = mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE,
                                   (size % 2 ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
                        continue;
                case 2:
                        free(slot[i]);
                        slot[i] = aligned_alloc(64, size & ~63u);
                        continue;
                case 3:
                        free(slot[i]);
                        slot[i] = calloc(size % 50, 2000);
                        continue;
                default:
                        free(slot[i]);
                        slot[i] = malloc(size % 200 == 0 ? 1 << 20 : size);
                }
        }
        for (int i = 0; i < 64; i++)
                free(slot[i]);
        return NULL;
}

static int crowd_process(unsigned nth, time_t until)
{
        pthread_t thread[16];
        for (unsigned i = 0; i < 16; i++)
                CHECK(pthread_create(&thread[i], NULL, crowd_thread,
                                     (void *)(uintptr_t)(nth * 100 + i)) == 0);
        while (time(NULL) < until) {
                int status = 1;
                pid_t pid = fork();
                if (pid == 0) {
                        alarm(120);
                        allocate_in_child();
                        _exit(0);
                }
                CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
        }
        stop = true;
        for (int i = 0; i < 16; i++)
                pthread_join(thread[i], NULL);
        return 0;
}

static int crowd(void)
{
        const char *seconds = getenv("SECONDS");
        time_t until = time(NULL) + (seconds ? atoi(seconds) : 2);
        int status, bad = 0;
        for (unsigned i = 0; i < 8; i++) {
                pid_t pid = fork();
                CHECK(pid >= 0);
                if (pid == 0)
                        exit(crowd_process(i, until));
        }
        while (wait(&status) > 0)
                bad |= status;
        CHECK(bad == 0);
        return 0;
}

/* By the bare system call libc is not told, nor are its handlers. */
static int clones(void)
{
        int status = 1;
        keep(malloc(4 << 20));
        long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (pid == 0) {
                allocate_in_child();
                keep(malloc(8 << 20));
                _exit(0);
        }
        CHECK(pid > 0 && waitpid((pid_t)pid, &status, 0) == pid && status == 0);
        return 0;
}

static int vforks(void)
{
        for (int i = 0; i < 20; i++) {
                int status = 1;
                pid_t pid = vfork();
                if (pid == 0) {
                        execl("/bin/true", "true", (char *)NULL);
                        _exit(1);
                }
                CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
                keep(malloc(1 << 20));
        }
        return 0;
}

static void *short_life(void *unused)
{
        for (int i = 0; i < 40; i++)
                free(keep(malloc(100000)));
        return unused;
}

static int threads(void)
{
        for (int i = 0; i < 200; i++) {
                pthread_t thread[4];
                for (int k = 0; k < 4; k++)
                        CHECK(pthread_create(&thread[k], NULL, short_life, NULL) == 0);
                for (int k = 0; k < 4; k++)
                        pthread_join(thread[k], NULL);
        }
        return 0;
}

/* ---- the loader ---- */

static int plugins(void)
{
        for (int i = 0; i < 50; i++) {
                void *handle = dlopen(i % 2 ? "libresolv.so.2" : "libthread_db.so.1", RTLD_NOW);
                keep(malloc(1 << 20));
                if (handle)
                        dlclose(handle);
                keep(malloc(1 << 20));
        }
        return 0;
}

/* ---- the edges of the functions ---- */

static int edges(void)
{
        volatile size_t huge = SIZE_MAX, half = SIZE_MAX / 2, none = 0;
        void *at, *other;
        errno = 0;
        CHECK(malloc(huge) == NULL && errno == ENOMEM);
        CHECK(malloc(half + 2) == NULL);
        errno = 0;
        CHECK(calloc(half, 3) == NULL && errno == ENOMEM);
        CHECK(reallocarray(NULL, half, 3) == NULL);
        at = malloc(none);
        free(at);
        at = calloc(none, 8);
        free(at);
        free(NULL);
        at = keep(malloc(3 << 20));
        memset(at, 7, 100);
        errno = 0;
        CHECK(realloc(at, half) == NULL && errno == ENOMEM); /* and at is as it was */
        CHECK(((char *)at)[99] == 7);
        at = realloc(at, 5 << 20);
        CHECK(at && ((char *)at)[99] == 7);
        at = realloc(at, 100);
        CHECK(at && ((char *)at)[99] == 7 && malloc_usable_size(at) >= 100);
        (void)!realloc(at, none);
        CHECK(posix_memalign(&other, 3, 100) == EINVAL);
        CHECK(posix_memalign(&other, 4096, 2 << 20) == 0 && (uintptr_t)other % 4096 == 0);
        free(other);
        other = keep(aligned_alloc(256, 2 << 20));
        CHECK((uintptr_t)other % 256 == 0);
        free(other);
        other = keep(memalign(1024, 2 << 20));
        CHECK((uintptr_t)other % 1024 == 0);
        free(other);
        errno = 1234;
        for (int i = 0; i < 100; i++)
                free(keep(malloc(2 << 20)));
        CHECK(errno == 1234);
        return 0;
}

static NOINLINE char *map_some(size_t mib)
{
        char *at =
                mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        __asm__ volatile("" ::: "memory");
        return at;
}

/* 64 MiB; less a head of 8, a middle of 16 and a tail of 4: 36 stay. 16 grow to 32. 40 are one
 * reservation and 24 belong to a file: no memory. */
static int maps(void)
{
        char *at = map_some(64), *other = map_some(16);
        CHECK(at != MAP_FAILED && other != MAP_FAILED);
        CHECK(munmap(at, 8 << 20) == 0);
        CHECK(munmap(at + (24 << 20), 16 << 20) == 0);
        CHECK(munmap(at + (60 << 20), 4 << 20) == 0);
        CHECK(munmap((void *)1, 4096) == -1 && errno == EINVAL);
        CHECK(mremap(other, 16 << 20, 32 << 20, MREMAP_MAYMOVE) != MAP_FAILED);
        CHECK(mremap((void *)0x1000, 4096, 8192, 0) == MAP_FAILED);
        CHECK(mmap(NULL, 40 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
        int fd = memfd_create("file", 0);
        CHECK(fd >= 0 && ftruncate(fd, 24 << 20) == 0);
        CHECK(mmap(NULL, 24 << 20, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
        return 0;
}

static NOINLINE char *share_some(size_t mib, int fd)
{
        char *at = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE,
                        MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
        __asm__ volatile("" ::: "memory");
        return at;
}

static int file_of(size_t mib, int fd)
{
        return fd >= 0 && ftruncate(fd, (off_t)(mib << 20)) == 0 ? fd : -1;
}

/* 24 MiB of a file without a name, less 8 at its end; 16 that a child could have, grown to 20. Of a
 * file on a disk nothing (FOLDER, which may be in memory, too: then it is not tried). */
static int shares(void)
{
        const char *folder = getenv("FOLDER");
        int named = file_of(24, memfd_create("file", 0));
        int disk = folder ? file_of(8, open(folder, O_TMPFILE | O_RDWR, 0600)) : -1;
        char *at = share_some(24, named), *other = share_some(16, -1);
        CHECK(named >= 0 && at != MAP_FAILED && other != MAP_FAILED);
        CHECK(munmap(at + (16 << 20), 8 << 20) == 0);
        CHECK(mremap(other, 16 << 20, 20 << 20, MREMAP_MAYMOVE) != MAP_FAILED);
        CHECK(mmap(NULL, 24 << 20, PROT_READ, MAP_SHARED, named, 0) != MAP_FAILED);
        CHECK(disk < 0 || share_some(8, disk) != MAP_FAILED);
        return 0;
}

/* ---- high water, and how full the heap is ---- */

static NOINLINE void *hold_for_a_while(size_t size)
{
        void *at = keep(malloc(size));
        __asm__ volatile("" ::: "memory");
        return at;
}

static int tides(void)
{
        void *at[10];
        for (int round = 0; round < 3; round++) {
                for (int i = 0; i < 10; i++)
                        at[i] = hold_for_a_while(4 << 20);
                for (int i = 0; i < 10; i++)
                        free(at[i]);
        }
        keep(hold_for_a_while(8 << 20));
        return 0;
}

/* Three of four blocks are given back, and malloc cannot give them to the kernel. By then it has
 * been asked once, and is asked again after two seconds. */
static int holes(void)
{
        enum { BLOCKS = 200000 };
        void **at = calloc(BLOCKS, sizeof *at);
        CHECK(at);
        for (int i = 0; i < BLOCKS; i++)
                at[i] = malloc(400);
        for (int i = 0; i < BLOCKS; i++)
                if (i % 4 != 0)
                        free(at[i]);
        usleep(2100000);
        if (getenv("BY_STEP") && antifreeze_step)
                antifreeze_step();
        else
                keep(malloc(2 << 20));
        return 0;
}

static int steps(void)
{
        keep(malloc(16 << 20));
        for (int i = 0; i < 5; i++) {
                if (antifreeze_step)
                        antifreeze_step();
                keep(malloc(2 << 20));
        }
        return 0;
}

/* Its library of CUDA's name is in a scope of its own, as torch's is. */
static int pinned(void)
{
        int (*pin)(size_t);
        const char *path = getenv("FAKE_TORCH");
        void *handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        CHECK(handle);
        void *found = dlsym(handle, "pin");
        memcpy(&pin, &found, sizeof found);
        CHECK(pin && pin(32 << 20) == 0 && pin(8 << 20) == 0);
        return 0;
}

static int inert(void)
{
        void *at[100];
        for (int i = 0; i < 100; i++)
                at[i] = keep(malloc(1 << 20));
        for (int i = 0; i < 100; i++)
                free(at[i]);
        return antifreeze_step ? (antifreeze_step(), 0) : 0;
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                int (*run)(void);
        } modes[] = {
                {"truth", truth},
                {"killed", killed},
                {"forks", forks},
                {"crowd", crowd},
                {"clones", clones},
                {"vforks", vforks},
                {"threads", threads},
                {"signals", signals},
                {"coroutines", coroutines},
                {"coroutine_threads", coroutine_threads},
                {"deep", deep},
                {"wild", wild},
                {"plugins", plugins},
                {"edges", edges},
                {"maps", maps},
                {"shares", shares},
                {"tides", tides},
                {"holes", holes},
                {"steps", steps},
                {"pinned", pinned},
                {"inert", inert},
                {"late", late},
                {"late_steps", late_steps},
                {"late_closed", late_closed},
                {"late_children", late_children},
                {"late_threads", late_threads},
                {"late_cancelled", late_cancelled},
                {"locked", locked},
                {"filtered", filtered},
        };
        for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++)
                if (strcmp(modes[i].name, argv[1]) == 0)
                        return modes[i].run();
        return 2;
}
