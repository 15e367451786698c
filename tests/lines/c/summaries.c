/* Histograms of all weights as lines of text, to be written when the run is over. */
#define _GNU_SOURCE
#include <antifreeze/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct summaries {
        char **lines;
        size_t used, room;
};

static void summary_add(struct summaries *s, const char *tag, int step, const char *bins)
{
        char *line;

        if (asprintf(&line, "%s at step %d: [%s]", tag, step, bins) < 0) /* the line */
                exit(1);
        if (s->used == s->room) {
                s->room = s->room ? s->room * 2 : 1024;
                s->lines = realloc(s->lines, s->room * sizeof *s->lines);
        }
        s->lines[s->used++] = line;
}

int main(void)
{
        struct summaries summaries = {0};
        char tag[64], bins[200];

        for (int step = 0; step < 750; step++) {
                if (antifreeze_step)
                        antifreeze_step();
                for (int unit = 0; unit < 2600; unit++) {
                        size_t end = 0;

                        for (int i = 0; i < 12; i++)
                                end += (size_t)snprintf(bins + end, sizeof bins - end, " %.9f",
                                                        (unit + i) * (step + 1) % 997 / 997.0);
                        snprintf(tag, sizeof tag, "layer_%d/unit_%d/weights", unit / 512, unit);
                        summary_add(&summaries, tag, step, bins);
                }
                if (step % 25 == 0)
                        printf("step %d: %zu summaries\n", step, summaries.used);
                fflush(stdout);
                nanosleep(&(struct timespec){.tv_nsec = 25000000}, NULL);
        }
        return 0;
}
