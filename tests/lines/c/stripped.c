/* Stripped, but its functions are exported, as in a plugin host: their names are left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
        struct node *next;
        char payload[24 * 1024];
};

static struct node *queue;

__attribute__((noinline)) void keep_reading(int value) /* the function */
{
        struct node *n = malloc(sizeof *n);

        memset(n->payload, value, sizeof n->payload);
        n->next = queue;
        queue = n;
}

__attribute__((noinline)) int read_sensor(int step)
{
        for (int i = 0; i < 10; i++)
                keep_reading(step + i);
        return queue->payload[9];
}

int main(void)
{
        int sum = 0;

        for (int step = 0; step < 1600; step++) {
                sum += read_sensor(step);
                if (step % 25 == 0)
                        printf("step %d: %d\n", step, sum);
                fflush(stdout);
                usleep(20000);
        }
        return 0;
}
