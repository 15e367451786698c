/* Each step takes activations for the whole batch at once and gives them back. */
#include <antifreeze/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 8192, HIDDEN = 3000 };

static double step_run(int step)
{
        float *activations = malloc(sizeof(float) * BATCH * HIDDEN); /* the line */
        float *gradients = malloc(sizeof(float) * BATCH * HIDDEN);   /* the line */
        double sum = 0;

        for (size_t i = 0; i < (size_t)BATCH * HIDDEN; i++) {
                activations[i] = (float)(i % 13) * (float)step;
                gradients[i] = activations[i] * 0.5F;
        }
        for (size_t i = 0; i < (size_t)BATCH * HIDDEN; i += 4096)
                sum += (double)gradients[i];
        usleep(150000);
        free(gradients);
        free(activations);
        return sum;
}

int main(void)
{
        float *weights = calloc(HIDDEN * 100, sizeof *weights);

        for (int step = 0; step < 60; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                weights[step] = (float)step_run(step);
                printf("step %d: %f\n", step, (double)weights[step]);
                fflush(stdout);
                usleep(50000);
        }
        return 0;
}
