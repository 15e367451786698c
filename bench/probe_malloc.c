/* What the probe costs a program that does nothing but allocate: A (libc's own malloc, past the
 * probe) and B (malloc, through the probe) in turns inside one process, so that the machine's moods
 * hit both. Processor time of the thread, ns a malloc and free.
 *
 * usage: probe_malloc [THREADS] [sample]
 *
 * With "sample": what one sample costs, by depth of the stack; run it with a mean of 1 byte, so
 * that every allocation is one. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *at);

enum { ROUNDS = 60, PAIRS = 200000, SLOTS = 64, MOST_THREADS = 64 };

struct result {
        double plain[ROUNDS], hooked[ROUNDS];
};

static double now_ns(void)
{
        struct timespec t;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The same pairs either way. */
#define TURN(take, give)                                                                           \
        void *slot[SLOTS] = {0};                                                                   \
        unsigned seed = 1;                                                                         \
        double began = now_ns();                                                                   \
        for (int i = 0; i < PAIRS; i++) {                                                          \
                seed = seed * 1103515245 + 12345;                                                  \
                unsigned k = seed >> 16 & (SLOTS - 1);                                             \
                give(slot[k]);                                                                     \
                slot[k] = take(16 + (seed >> 8 & 255));                                            \
        }                                                                                          \
        double took = (now_ns() - began) / PAIRS;                                                  \
        for (int i = 0; i < SLOTS; i++)                                                            \
                give(slot[i]);                                                                     \
        return took

static double plain(void)
{
        TURN(__libc_malloc, __libc_free);
}

static double hooked(void)
{
        TURN(malloc, free);
}

static void *work(void *data)
{
        struct result *r = data;
        for (int i = 0; i < ROUNDS; i++) {
                r->plain[i] = plain();
                r->hooked[i] = hooked();
        }
        return NULL;
}

static int by_size(const void *a, const void *b)
{
        double d = *(const double *)a - *(const double *)b;
        return d < 0 ? -1 : d > 0;
}

/* The median of the differences with the range that holds it in 95 of 100 cases (by ranks). */
static void report(int threads, struct result *r)
{
        int n = threads * ROUNDS;
        double *off = calloc((size_t)n, sizeof *off), *base = calloc((size_t)n, sizeof *base);
        for (int i = 0; i < n; i++) {
                base[i] = r[i / ROUNDS].plain[i % ROUNDS];
                off[i] = r[i / ROUNDS].hooked[i % ROUNDS] - base[i];
        }
        qsort(off, (size_t)n, sizeof *off, by_size);
        qsort(base, (size_t)n, sizeof *base, by_size);
        int half = (int)(0.98 * sqrt(n)) + 1;
        printf("threads=%d plain_ns=%.2f more_ns=%.2f low_ns=%.2f high_ns=%.2f\n", threads,
               base[n / 2], off[n / 2], off[n / 2 - half], off[n / 2 + half]);
        free(off);
        free(base);
}

__attribute__((noinline)) static void *at_depth(int depth)
{
        void *at = depth == 0 ? malloc(100) : at_depth(depth - 1);
        __asm__ volatile("" ::: "memory");
        return at;
}

static void time_samples(void)
{
        static const int depths[] = {2, 10, 20, 40};
        enum { TURNS = 20000 };
        for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
                double began = now_ns();
                free(at_depth(depths[i]));
                double cold = now_ns() - began;
                began = now_ns();
                for (int k = 0; k < TURNS; k++)
                        free(at_depth(depths[i]));
                printf("depth=%d cold_ns=%.0f warm_ns=%.0f\n", depths[i], cold,
                       (now_ns() - began) / TURNS);
        }
}

int main(int argc, char **argv)
{
        int threads = argc > 1 ? atoi(argv[1]) : 1;
        pthread_t thread[MOST_THREADS];
        if (threads < 1 || threads > MOST_THREADS)
                return 2;
        if (argc > 2 && strcmp(argv[2], "sample") == 0) {
                time_samples();
                return 0;
        }
        struct result *r = calloc((size_t)threads, sizeof *r);
        for (int i = 0; i < threads; i++)
                if (!r || pthread_create(&thread[i], NULL, work, &r[i]) != 0)
                        return 1;
        for (int i = 0; i < threads; i++)
                pthread_join(thread[i], NULL);
        report(threads, r);
        free(r);
        return 0;
}
