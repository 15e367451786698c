/* An event log in one array that is made larger when it is full, and is never written out. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct event {
        double when;
        char what[248];
};

struct journal {
        struct event *events;
        size_t used, room;
};

static void journal_add(struct journal *j, double when, const char *what)
{
        if (j->used == j->room) {
                j->room += 2048;
                j->events = realloc(j->events, j->room * sizeof *j->events); /* the line */
        }
        j->events[j->used].when = when;
        snprintf(j->events[j->used].what, sizeof j->events[j->used].what, "%s", what);
        j->used++;
}

int main(void)
{
        struct journal journal = {0};

        for (int tick = 0; tick < 3000; tick++) {
                char what[200];

                for (int i = 0; i < 500; i++) {
                        snprintf(what, sizeof what, "tick %d: sensor %d reads %d", tick, i,
                                 i * tick % 1000);
                        journal_add(&journal, tick * 0.01, what);
                }
                if (tick % 100 == 0)
                        printf("tick %d\n", tick);
                fflush(stdout);
                usleep(10000);
        }
        return 0;
}
