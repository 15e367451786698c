/* Takes and gives back at every step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double step_run(int step)
{
        double *a = malloc(2000000), *b = malloc(1000000), sum = 0;

        memset(a, step, 2000000);
        memcpy(b, a, 1000000);
        for (int i = 0; i < 1000; i++)
                sum += b[i * 100];
        free(b);
        free(a);
        return sum;
}

int main(void)
{
        double sum = 0;

        for (int step = 0; step < 1000; step++) {
                sum += step_run(step);
                if (step % 25 == 0)
                        printf("step %d: %g\n", step, sum);
                fflush(stdout);
                usleep(18000);
        }
        return 0;
}
