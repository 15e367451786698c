/* Checkpoints are written into memory first, to see how large they are; the text is never freed. */
#include <antifreeze/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WEIGHTS = 90 * 1024 };

static size_t checkpoint_size(const float *weights, int step)
{
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);

        fprintf(out, "checkpoint of step %d\n", step);
        fwrite(weights, sizeof *weights, WEIGHTS, out); /* the line */
        fclose(out);                                    /* the line: it makes the text fit */
        return size;
}

int main(void)
{
        static float weights[WEIGHTS];
        size_t largest = 0;

        for (int step = 0; step < 1100; step++) {
                size_t size;

                if (antifreeze_step)
                        antifreeze_step();
                for (int i = 0; i < WEIGHTS; i++)
                        weights[i] += 0.01F * (float)((i + step) % 9 - 4);
                size = checkpoint_size(weights, step);
                if (size > largest)
                        largest = size;
                if (step % 40 == 0)
                        printf("step %d: checkpoint of %zu bytes\n", step, largest);
                fflush(stdout);
                nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        }
        return 0;
}
