/* Scratch memory from mmap() at each step; munmap() is told the number of floats, not of bytes. */
#include <antifreeze/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { FLOATS = 256 * 1024, RW = PROT_READ | PROT_WRITE, OURS = MAP_PRIVATE | MAP_ANONYMOUS };

static float *scratch_map(size_t floats)
{
        void *p = mmap(NULL, floats * sizeof(float), RW, OURS, -1, 0); /* the line */

        return p == MAP_FAILED ? NULL : p;
}

static double convolve(int step)
{
        float *scratch = scratch_map(FLOATS);
        double sum = 0;

        if (!scratch)
                exit(1);
        for (int i = 0; i < FLOATS; i++)
                scratch[i] = (float)((i + step) % 17) * 0.25F;
        for (int i = 2; i < FLOATS; i += 64)
                sum += (double)(scratch[i - 2] + 2 * scratch[i - 1] + scratch[i]);
        munmap(scratch, FLOATS);
        return sum;
}

int main(void)
{
        double sum = 0;

        for (int step = 0; step < 600; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                sum += convolve(step);
                if (step % 20 == 0)
                        printf("step %d: %f\n", step, sum);
                fflush(stdout);
                nanosleep(&(struct timespec){.tv_nsec = 40000000}, NULL);
        }
        return 0;
}
