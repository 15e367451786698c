/* Tiles of a map are made when they are first looked at; after a while all of them are there. */
#include <antifreeze/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TILES = 3200, CELLS = 12 * 1024 };

static float *tiles[TILES];

static const float *tile_at(unsigned n)
{
        if (!tiles[n]) {
                tiles[n] = malloc(CELLS * sizeof **tiles);
                for (int i = 0; i < CELLS; i++)
                        tiles[n][i] = (float)(n * 17U + (unsigned)i) * 0.001F;
        }
        return tiles[n];
}

int main(void)
{
        unsigned long random = 31337;
        double height = 0;

        for (int step = 0; step < 700; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                for (int i = 0; i < 60; i++) {
                        random = random * 6364136223846793005UL + 1442695040888963407UL;
                        height += (double)tile_at((unsigned)(random >> 40) % TILES)[i];
                }
                if (step % 25 == 0)
                        printf("step %d: %f\n", step, height);
                fflush(stdout);
                nanosleep(&(struct timespec){.tv_nsec = 25000000}, NULL);
        }
        return 0;
}
