/* All memory comes from one helper, as in many C programs; most of it is given back. */
#include "util.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct result {
        double *scores;
        struct result *next;
};

static double *scratch_take(int n)
{
        return memset(must_have((size_t)n * sizeof(double)), 1, (size_t)n * sizeof(double));
}

static struct result *evaluate(struct result *all, int n)
{
        double *scratch = scratch_take(n * 4);
        struct result *r = must_have(sizeof *r);

        r->scores = must_have((size_t)n * sizeof(double)); /* the line: and this is who keeps it */
        for (int i = 0; i < n; i++)
                r->scores[i] = scratch[i * 4] + i;
        r->next = all;
        free(scratch);
        return r;
}

int main(void)
{
        struct result *all = NULL;

        for (int step = 0; step < 1600; step++) {
                all = evaluate(all, 30000);
                if (step % 25 == 0)
                        printf("step %d: %f\n", step, all->scores[5]);
                fflush(stdout);
                usleep(20000);
        }
        return 0;
}
