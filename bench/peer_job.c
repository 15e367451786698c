/* A job in C of bench/peers.py: blocks of work as it is told, and what each took.
 *
 * usage: bench-peer-job malloc-THREADS|trainer   (PEER_ORDERS and PEER_ANSWERS name two FIFOs)
 *        bench-peer-job calibrate               (prints what PEER_WORK is to be)
 *
 * PEER_WORK is how much a thread does beside each malloc and free, so that it makes 10 M a second.
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "net.h"
#include "optim.h"

enum { ROUND = 10000, SLOTS = 64, MOST_THREADS = 64, BATCH = 256, PAIR_NS = 100 };

static unsigned work;

static long now_ns(clockid_t clock)
{
        struct timespec t;
        clock_gettime(clock, &t);
        return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void fail(void)
{
        perror("bench-peer-job");
        exit(1);
}

static void *allocate(void *rounds)
{
        void *slot[SLOTS] = {0};
        unsigned seed = 1;
        volatile unsigned sink = 0;
        for (long i = 0; i < *(long *)rounds * ROUND; i++) {
                seed = seed * 1103515245 + 12345;
                unsigned k = seed >> 16 & (SLOTS - 1);
                free(slot[k]);
                slot[k] = malloc(16 + (seed >> 8 & 255));
                for (unsigned n = 0; n < work; n++)
                        sink += n;
        }
        for (int i = 0; i < SLOTS; i++)
                free(slot[i]);
        return NULL;
}

static void in_threads(int threads, long rounds)
{
        pthread_t thread[MOST_THREADS];
        for (int i = 0; i < threads; i++)
                if (pthread_create(&thread[i], NULL, allocate, &rounds))
                        fail();
        for (int i = 0; i < threads; i++)
                pthread_join(thread[i], NULL);
}

/* The least of several tries: what disturbs only makes it longer. */
static long pair_ns(void)
{
        long least = LONG_MAX, rounds = 20;
        for (int i = 0; i < 9; i++) {
                long began = now_ns(CLOCK_PROCESS_CPUTIME_ID);
                allocate(&rounds);
                long took = (now_ns(CLOCK_PROCESS_CPUTIME_ID) - began) / (rounds * ROUND);
                least = took < least ? took : least;
        }
        return least;
}

static int calibrate(void)
{
        while (pair_ns() < PAIR_NS)
                work++;
        printf("%u\n", work);
        return 0;
}

/* Steps as the demo's trainer makes them: what a batch needs is allocated and freed in each. */
static void train(long steps)
{
        static struct afz_net net;
        static struct afz_optim adam;
        struct afz_pass pass;
        if (!net.params && (afz_net_init(&net, 1) < 0 ||
                            afz_optim_init(&adam, AFZ_OPTIM_ADAM, 0, AFZ_NET_PARAMS) < 0))
                fail();
        for (; steps > 0; steps--) {
                if (afz_pass_init(&pass, BATCH) < 0)
                        fail();
                memset(pass.input, 0, BATCH * AFZ_NET_INPUTS * sizeof *pass.input);
                memset(pass.labels, 0, BATCH);
                afz_net_forward(&net, &pass, NULL);
                afz_net_backward(&net, &pass, NULL);
                afz_optim_step(&adam, net.params, net.grads, NULL);
                afz_pass_done(&pass);
        }
}

int main(int argc, char **argv)
{
        const char *job = argc > 1 ? argv[1] : "", *from = getenv("PEER_ORDERS"),
                   *to = getenv("PEER_ANSWERS");
        if (strcmp(job, "calibrate") == 0)
                return calibrate();
        work = getenv("PEER_WORK") ? (unsigned)atoi(getenv("PEER_WORK")) : 0;
        int threads = strncmp(job, "malloc-", 7) == 0 ? atoi(job + 7) : 0;
        FILE *orders = from ? fopen(from, "r") : NULL, *answers = to ? fopen(to, "w") : NULL;
        long order;
        if (!orders || !answers || threads > MOST_THREADS)
                fail();
        fprintf(answers, "%d\n", (int)getpid());
        fflush(answers);
        while (fscanf(orders, "%ld", &order) == 1) {
                long wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
                if (threads > 0)
                        in_threads(threads, order);
                else
                        train(order);
                fprintf(answers, "%ld %ld\n", now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu,
                        now_ns(CLOCK_MONOTONIC) - wall);
                fflush(answers);
        }
        return 0;
}
