/* Two threads a step, each returns its part of the sums; of the second, nobody takes the result. */
#include <antifreeze/step.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BINS = 110 * 1024 };

static void *front_half(void *arg)
{
        double *sums = malloc(BINS * sizeof *sums);

        for (int i = 0; i < BINS; i++)
                sums[i] = (double)(i % *(const int *)arg);
        return sums;
}

static void *back_half(void *arg)
{
        double *sums = malloc(BINS * sizeof *sums); /* the line */

        for (int i = 0; i < BINS; i++)
                sums[i] = (double)((BINS - i) % *(const int *)arg);
        return sums;
}

int main(void)
{
        double total = 0;

        for (int step = 1; step < 700; step++) {
                pthread_t front, back;
                void *sums;

                if (antifreeze_step)
                        antifreeze_step();
                pthread_create(&front, NULL, front_half, &step);
                pthread_create(&back, NULL, back_half, &step);
                pthread_join(front, &sums);
                pthread_join(back, NULL);
                total += ((double *)sums)[BINS / 2];
                free(sums);
                if (step % 20 == 0)
                        printf("step %d: %f\n", step, total);
                fflush(stdout);
                nanosleep(&(struct timespec){.tv_nsec = 35000000}, NULL);
        }
        return 0;
}
