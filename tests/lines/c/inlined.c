/* Small helpers that the compiler folds into their caller. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COLUMNS = 4096 };

struct row {
        float *cells;
        struct row *below;
};

static inline float *cells_new(size_t n)
{
        float *cells = calloc(n, sizeof *cells); /* the line */

        for (size_t i = 0; i < n; i++)
                cells[i] = (float)i * 0.5F;
        return cells;
}

static inline struct row *row_new(struct row *below)
{
        struct row *row = malloc(sizeof *row);

        row->cells = cells_new(COLUMNS);
        row->below = below;
        return row;
}

int main(void)
{
        struct row *table = NULL;
        double sum = 0;

        for (int step = 0; step < 1600; step++) {
                for (int i = 0; i < 16; i++) {
                        table = row_new(table);
                        sum += (double)table->cells[i];
                }
                if (step % 25 == 0)
                        printf("step %d: %f\n", step, sum);
                fflush(stdout);
                usleep(20000);
        }
        return 0;
}
