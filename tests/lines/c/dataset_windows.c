/* Every window of a series, cut out ahead of time: each number is there many times. */
#include <antifreeze/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HOURS = 300000, WINDOW = 168 };

static float *series_read(void)
{
        float *series = malloc(HOURS * sizeof *series);

        for (int i = 0; i < HOURS; i++)
                series[i] = (float)(i % 24) + 0.01F * (float)(i % 8760);
        return series;
}

static float *windows_cut(const float *series, size_t count)
{
        float *windows = malloc(count * WINDOW * sizeof *windows); /* the line */

        for (size_t i = 0; i < count; i++)
                memcpy(windows + i * WINDOW, series + i, WINDOW * sizeof *windows);
        return windows;
}

int main(void)
{
        float *series = series_read(), *windows = windows_cut(series, HOURS - WINDOW);
        float w[WINDOW] = {0};

        for (size_t step = 0; step < 600; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                for (size_t i = 0; i < 128; i++) {
                        size_t at = (step * 128 + i) * 3 % (HOURS - WINDOW);
                        const float *window = windows + at * WINDOW;
                        float guess = 0;

                        for (int j = 0; j < WINDOW - 1; j++)
                                guess += w[j] * window[j];
                        for (int j = 0; j < WINDOW - 1; j++)
                                w[j] -= 1e-7F * (guess - window[WINDOW - 1]) * window[j];
                }
                if (step % 25 == 0)
                        printf("step %zu: %g\n", step, (double)w[100]);
                fflush(stdout);
                nanosleep(&(struct timespec){.tv_nsec = 24000000}, NULL);
        }
        return 0;
}
