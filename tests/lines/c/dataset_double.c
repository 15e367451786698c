/* The whole set of samples as double, where each is used as float, and a shuffled copy of all of
 * it. */
#include <antifreeze/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 20000, FEATURES = 500 };

static double *load(void)
{
        double *all = malloc(sizeof(double) * SAMPLES * FEATURES); /* the line */

        for (size_t i = 0; i < (size_t)SAMPLES * FEATURES; i++)
                all[i] = (double)(i % 251) / 251;
        return all;
}

static double *shuffled(const double *from)
{
        double *to = malloc(sizeof(double) * SAMPLES * FEATURES); /* the line */

        for (size_t i = 0; i < SAMPLES; i++)
                memcpy(to + i * FEATURES, from + i * 7919 % SAMPLES * FEATURES,
                       FEATURES * sizeof *to);
        return to;
}

int main(void)
{
        double *all = load(), *data = shuffled(all);
        float w[FEATURES] = {0};

        for (int step = 0; step < 700; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                for (size_t i = 0; i < 64; i++)
                        for (size_t j = 0; j < FEATURES; j++)
                                w[j] += 0.001F *
                                        (float)data[((size_t)step * 64 + i) % SAMPLES * FEATURES +
                                                    j];
                if (step % 50 == 0)
                        printf("step %d: %f\n", step, (double)w[3]);
                fflush(stdout);
                usleep(20000);
        }
        return all[0] > 2;
}
