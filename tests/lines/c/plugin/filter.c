#include <stdlib.h>
#include <string.h>

struct window {
        float *samples;
        struct window *before;
};

static struct window *windows;

double filter(const float *samples, int n);

double filter(const float *samples, int n)
{
        struct window *w = malloc(sizeof *w);
        double sum = 0;

        w->samples = malloc((size_t)n * sizeof(float)); /* the line */
        memcpy(w->samples, samples, (size_t)n * sizeof(float));
        w->before = windows;
        windows = w;
        for (const struct window *at = w; at && at != w->before; at = at->before)
                sum += (double)at->samples[n / 2];
        return sum;
}
