/* Which words are seen beside which: a row for each word, and all rows grow all the time. */
#include <antifreeze/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WORDS = 6000 };

struct pair {
        unsigned other;
        float weight;
};

static struct row {
        struct pair *pairs;
        unsigned used, room;
} rows[WORDS];

static void row_add(struct row *row, unsigned other)
{
        if (row->used == row->room) {
                row->room += 64;
                row->pairs = realloc(row->pairs, row->room * sizeof *row->pairs); /* the line */
        }
        row->pairs[row->used++] = (struct pair){other, 1.0F / (float)(other % 5 + 1)};
}

int main(void)
{
        unsigned long random = 4711;

        for (int document = 0; document < 780; document++) {
                if (antifreeze_step)
                        antifreeze_step();
                for (int i = 0; i < 65000; i++) {
                        random = random * 6364136223846793005UL + 1442695040888963407UL;
                        row_add(&rows[(random >> 33) % WORDS], (unsigned)(random >> 20) % WORDS);
                }
                if (document % 25 == 0)
                        printf("document %d: %u beside the first word\n", document, rows[0].used);
                fflush(stdout);
                nanosleep(&(struct timespec){.tv_nsec = 22000000}, NULL);
        }
        return 0;
}
