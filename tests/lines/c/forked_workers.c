/* Three forked workers; each remembers all it has seen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct seen {
        struct seen *next;
        char frame[96 * 1024];
};

static void work(int me)
{
        struct seen *all = NULL;

        for (int i = 0; i < 1200; i++) {
                struct seen *s = malloc(sizeof *s); /* the line */

                memset(s->frame, i, sizeof s->frame);
                s->next = all;
                all = s;
                if (i % 50 == 0) {
                        printf("worker %d: frame %d\n", me, i);
                        fflush(stdout);
                }
                usleep(25000);
        }
        _exit(all == NULL);
}

int main(void)
{
        for (int i = 0; i < 3; i++)
                if (fork() == 0)
                        work(i);
        while (wait(NULL) > 0)
                continue;
        return 0;
}
