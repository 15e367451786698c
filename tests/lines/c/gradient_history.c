/* A trainer that remembers every gradient "for plotting later". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WEIGHTS = 64 * 1024 };

struct snapshot {
        float *gradient;
        struct snapshot *next;
};

static struct snapshot *remember(struct snapshot *head, const float *gradient)
{
        struct snapshot *s = malloc(sizeof *s);

        s->gradient = malloc(WEIGHTS * sizeof(float)); /* the line */
        memcpy(s->gradient, gradient, WEIGHTS * sizeof(float));
        s->next = head;
        return s;
}

int main(void)
{
        static float weights[WEIGHTS], gradient[WEIGHTS];
        struct snapshot *history = NULL;

        for (int step = 0; step < 1600; step++) {
                for (int i = 0; i < WEIGHTS; i++) {
                        gradient[i] = weights[i] * 0.1F + (float)(i % 7);
                        weights[i] -= 0.01F * gradient[i];
                }
                history = remember(history, gradient);
                if (step % 20 == 0)
                        printf("step %d weight %f\n", step, (double)weights[17]);
                fflush(stdout);
                usleep(20000);
        }
        printf("%p\n", (void *)history);
        return 0;
}
