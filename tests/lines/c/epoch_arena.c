/* An arena for what one batch needs; starting it anew forgets all of its chunks but the first. */
#include <antifreeze/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHUNK = 128 * 1024 };

struct chunk {
        struct chunk *next;
        size_t used;
        char bytes[];
};

struct arena {
        struct chunk *first, *last;
};

static struct chunk *chunk_new(void)
{
        struct chunk *c = aligned_alloc(64, CHUNK); /* the line */

        c->next = NULL;
        c->used = 0;
        return c;
}

static void *arena_take(struct arena *a, size_t bytes)
{
        void *p;

        if (a->last->used + bytes > CHUNK - sizeof *a->last)
                a->last = a->last->next = chunk_new();
        p = a->last->bytes + a->last->used;
        a->last->used += bytes;
        return p;
}

static void arena_reset(struct arena *a)
{
        a->first->next = NULL;
        a->first->used = 0;
        a->last = a->first;
}

int main(void)
{
        struct arena arena;
        double loss = 0;

        arena.first = arena.last = chunk_new();
        for (int step = 0; step < 800; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                for (int layer = 0; layer < 40; layer++) {
                        float *activations = arena_take(&arena, 16000);

                        memset(activations, layer, 16000);
                        loss += (double)activations[layer];
                }
                arena_reset(&arena);
                if (step % 40 == 0)
                        printf("step %d: %g\n", step, loss);
                fflush(stdout);
                nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
        }
        return 0;
}
