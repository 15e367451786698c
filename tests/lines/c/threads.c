/* Four workers hand their results to a list that only grows. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct result {
        struct result *next;
        double values[8000];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct result *results;

static struct result *simulate(unsigned seed)
{
        struct result *r = malloc(sizeof *r); /* the line */

        for (int i = 0; i < 8000; i++)
                r->values[i] = (double)(seed = seed * 1664525U + 1013904223U) / 4e9;
        return r;
}

static void *work(void *arg)
{
        unsigned seed = (unsigned)(size_t)arg;

        for (int i = 0; i < 1600; i++) {
                struct result *r = simulate(seed + (unsigned)i);
                double *sorted = malloc(sizeof r->values);

                memcpy(sorted, r->values, sizeof r->values);
                free(sorted);
                pthread_mutex_lock(&lock);
                r->next = results;
                results = r;
                pthread_mutex_unlock(&lock);
                usleep(20000);
        }
        return NULL;
}

int main(void)
{
        pthread_t threads[4];

        for (size_t i = 0; i < 4; i++)
                pthread_create(&threads[i], NULL, work, (void *)i);
        for (int s = 0; s < 30; s++) {
                printf("simulating, %d s\n", s);
                fflush(stdout);
                sleep(1);
        }
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        return 0;
}
