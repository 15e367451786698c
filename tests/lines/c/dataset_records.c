/* A table in memory, each of its cells a string of its own; a step looks at a few of its rows. */
#define _GNU_SOURCE
#include <antifreeze/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 500000, CELLS = 8 };

struct record {
        char *cells[CELLS];
};

static FILE *table(void)
{
        FILE *file = tmpfile();

        for (int i = 0; i < ROWS; i++)
                fprintf(file, "person-%d,%d,street number %d,town-%d,%d.5,%d,kind-%d,%d\n", i,
                        i % 90, i % 777, i % 3001, i % 4001, i % 1009, i % 12, i % 2);
        rewind(file);
        return file;
}

static struct record *table_read(FILE *file)
{
        struct record *records = calloc(ROWS, sizeof *records);
        char line[256];

        for (int row = 0; row < ROWS && fgets(line, sizeof line, file); row++) {
                char *rest = line;

                for (int i = 0; i < CELLS; i++)
                        records[row].cells[i] = strdup(strsep(&rest, ",\n")); /* the line */
        }
        return records;
}

int main(void)
{
        FILE *file = table();
        struct record *records = table_read(file);
        double weight = 0;

        fclose(file);
        for (int step = 0; step < 500; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                for (int i = 0; i < 600; i++) {
                        const struct record *r = &records[(step * 600 + i) % ROWS];

                        weight += 1e-6 * (atof(r->cells[4]) - weight) * atoi(r->cells[7]);
                }
                if (step % 25 == 0)
                        printf("step %d: %f\n", step, weight);
                fflush(stdout);
                nanosleep(&(struct timespec){.tv_nsec = 28000000}, NULL);
        }
        return 0;
}
