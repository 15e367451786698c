/* Built without -g: the function is all that can be named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
        struct node *next;
        char payload[24 * 1024];
};

static struct node *queue;

__attribute__((noinline)) void enqueue_sample(int value) /* the function */
{
        struct node *n = malloc(sizeof *n);

        memset(n->payload, value, sizeof n->payload);
        n->next = queue;
        queue = n;
}

__attribute__((noinline)) int process_samples(int step)
{
        for (int i = 0; i < 10; i++)
                enqueue_sample(step + i);
        return queue->payload[9];
}

int main(void)
{
        int sum = 0;

        for (int step = 0; step < 1600; step++) {
                sum += process_samples(step);
                if (step % 25 == 0)
                        printf("step %d: %d\n", step, sum);
                fflush(stdout);
                usleep(20000);
        }
        return 0;
}
