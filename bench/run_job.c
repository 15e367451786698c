/* A fixed amount of work, for bench/run_cost.py.
 *
 *   bench-run-job mark          says when it was started
 *   bench-run-job spin N        N million steps of arithmetic
 *   bench-run-job calls N       N thousand system calls: a byte through a pipe, and back
 *   bench-run-job faults N      N thousand pages touched, and given back in pieces of 1000
 *   bench-run-job lively N      N processes that compute, read, write and breathe, until killed
 *   bench-run-job growing N     the same, and each grows by 1 MB a second, to 64 MB
 *
 * Prints the monotonic clock at its start, and the processor time and the time its work took, all
 * in ns.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, GROWN_MOST = 64 << 20, BREATH = 256 << 10, TURN_MS = 20 };

static uint64_t now_ns(clockid_t clock)
{
        struct timespec ts;
        clock_gettime(clock, &ts);
        return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

static void spin(uint64_t n)
{
        volatile uint64_t kept;
        uint64_t x = 88172645463325252U;
        for (uint64_t i = 0; i < n * 1000000; i++) {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
        }
        kept = x;
        (void)kept;
}

static void calls(uint64_t n)
{
        int fd[2];
        char byte = 'x';
        if (pipe(fd) < 0)
                exit(1);
        for (uint64_t i = 0; i < n * 500; i++)
                if (write(fd[1], &byte, 1) != 1 || read(fd[0], &byte, 1) != 1)
                        exit(1);
}

static void faults(uint64_t n)
{
        const size_t page = PAGE, bytes = 1000 * page;
        for (uint64_t i = 0; i < n; i++) {
                char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                 -1, 0);
                if (map == MAP_FAILED || madvise(map, bytes, MADV_NOHUGEPAGE) < 0)
                        exit(1);
                for (size_t k = 0; k < bytes; k += page)
                        map[k] = 1;
                munmap(map, bytes);
        }
}

/* One turn of a process that lives: some arithmetic, a little I/O, memory that comes and goes. */
static void live(int zero_fd, unsigned turn)
{
        static char buf[16 << 10];
        char *breath =
                mmap(NULL, BREATH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (size_t k = 0; breath != MAP_FAILED && k < BREATH; k += (1 + turn % 3) * PAGE)
                breath[k] = 1;
        if (read(zero_fd, buf, sizeof buf) < 0)
                exit(1);
        for (uint64_t i = 0, x = turn + 1; i < 30000; i++)
                buf[i % sizeof buf] = (char)(x = x * 6364136223846793005U + 1);
        if (breath != MAP_FAILED)
                munmap(breath, BREATH);
}

_Noreturn static void live_on(bool grows)
{
        const struct timespec pause = {0, TURN_MS * 1000000L};
        int zero_fd = open("/dev/zero", O_RDONLY);
        size_t grown = 0;
        char *held =
                mmap(NULL, GROWN_MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (zero_fd < 0 || held == MAP_FAILED)
                exit(1);
        (void)madvise(held, GROWN_MOST, MADV_NOHUGEPAGE);
        for (unsigned turn = 0;; turn++) {
                live(zero_fd, turn);
                for (int i = 0; grows && i < TURN_MS / 4 && grown < GROWN_MOST; i++, grown += PAGE)
                        held[grown] = 1;
                nanosleep(&pause, NULL);
        }
}

static void tree(uint64_t n, bool grows)
{
        pid_t root = getpid();
        for (uint64_t i = 1; i < n; i++)
                if (fork() == 0) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        if (getppid() != root)
                                exit(1);
                        live_on(grows);
                }
        live_on(grows);
}

static void lively(uint64_t n)
{
        tree(n, false);
}

static void growing(uint64_t n)
{
        tree(n, true);
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                void (*work)(uint64_t n);
        } works[] = {{"spin", spin},
                     {"calls", calls},
                     {"faults", faults},
                     {"lively", lively},
                     {"growing", growing}};
        uint64_t begin = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        for (size_t i = 0; argc > 2 && i < sizeof works / sizeof works[0]; i++)
                if (strcmp(argv[1], works[i].name) == 0)
                        works[i].work(strtoull(argv[2], NULL, 10));
        printf("%llu %llu %llu\n", (unsigned long long)begin,
               (unsigned long long)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu),
               (unsigned long long)(now_ns(CLOCK_MONOTONIC) - begin));
        return 0;
}
