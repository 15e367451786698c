/* A fixed amount of work, for bench/run_cost.py.
 *
 *   bench-run-job mark          says when it was started
 *   bench-run-job spin N        N million steps of arithmetic
 *   bench-run-job calls N       N thousand system calls: a byte through a pipe, and back
 *   bench-run-job faults N      N thousand pages touched, and given back in pieces of 1000
 *
 * Prints the monotonic clock at its start, and the processor time and the time its work took, all
 * in ns.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

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
        const size_t page = 4096, bytes = 1000 * page;
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

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                void (*work)(uint64_t n);
        } works[] = {{"spin", spin}, {"calls", calls}, {"faults", faults}};
        uint64_t begin = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        for (size_t i = 0; argc > 2 && i < sizeof works / sizeof works[0]; i++)
                if (strcmp(argv[1], works[i].name) == 0)
                        works[i].work(strtoull(argv[2], NULL, 10));
        printf("%llu %llu %llu\n", (unsigned long long)begin,
               (unsigned long long)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu),
               (unsigned long long)(now_ns(CLOCK_MONOTONIC) - begin));
        return 0;
}
