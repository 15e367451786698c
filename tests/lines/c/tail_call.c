/* The wrapper ends in a call, so that with -O2 no frame of it is left: its caller's line is as
 * good. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static void *buffer_new(size_t bytes)
{
        return malloc(bytes + 64); /* the line */
}

static char *shown[2000];

int main(void)
{
        for (int step = 0; step < 1600; step++) {
                char *b = buffer_new(250000); /* the line */

                memset(b, step & 0xff, 250000);
                shown[step] = b;
                if (step % 25 == 0)
                        printf("step %d: %d\n", step, b[7]);
                fflush(stdout);
                usleep(20000);
        }
        return shown[7] == NULL;
}
