/* Pictures become larger from lesson to lesson; in the second half they have their full size. */
#include <antifreeze/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 150, LESSONS = 5 };

int main(void)
{
        float *batch = NULL;
        size_t side = 0;
        double sum = 0;

        for (int step = 0; step < 480; step++) {
                int lesson = step / 48;
                size_t wanted = 160 + 80 * (size_t)(lesson < LESSONS ? lesson : LESSONS - 1);

                if (antifreeze_step)
                        antifreeze_step();
                if (wanted != side) {
                        side = wanted;
                        batch = realloc(batch, BATCH * side * side * sizeof *batch);
                        memset(batch, 0, BATCH * side * side * sizeof *batch);
                        printf("pictures of %zu by %zu\n", side, side);
                }
                for (size_t i = (size_t)step % 8; i < BATCH * side * side; i += 8)
                        batch[i] += 0.5F;
                sum += (double)batch[(size_t)step * 97 % (BATCH * side * side)];
                if (step % 24 == 0)
                        printf("step %d: %f\n", step, sum);
                fflush(stdout);
                nanosleep(&(struct timespec){.tv_nsec = 33000000}, NULL);
        }
        free(batch);
        return 0;
}
