/* A simulated field of cells that can be wound back to any moment, though nobody ever does. */
#include <antifreeze/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 360, MOMENTS = 900 };

static float **field_copy(float **from)
{
        float **to = malloc(SIDE * sizeof *to);

        for (int y = 0; y < SIDE; y++) {
                to[y] = malloc(SIDE * sizeof **to); /* the line */
                memcpy(to[y], from[y], SIDE * sizeof **to);
        }
        return to;
}

static void diffuse(float **field)
{
        for (int y = 1; y < SIDE - 1; y++)
                for (int x = 1; x < SIDE - 1; x++)
                        field[y][x] += 0.2F * (field[y - 1][x] + field[y + 1][x] + field[y][x - 1] +
                                               field[y][x + 1] - 4 * field[y][x]);
}

int main(void)
{
        static float *rows[SIDE], cells[SIDE][SIDE];
        static float **moments[MOMENTS];

        for (int y = 0; y < SIDE; y++)
                rows[y] = cells[y];
        cells[SIDE / 2][SIDE / 2] = 1e6F;
        for (int step = 0; step < MOMENTS; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                diffuse(rows);
                moments[step] = field_copy(rows);
                if (step % 30 == 0)
                        printf("step %d: %g\n", step, (double)moments[step][SIDE / 2][3]);
                fflush(stdout);
                nanosleep(&(struct timespec){.tv_nsec = 28000000}, NULL);
        }
        return 0;
}
