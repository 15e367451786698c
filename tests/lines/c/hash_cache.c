/* A cache with no limit: each key is new, nothing is ever found in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUCKETS = 4096, FEATURES = 2000 };

struct entry {
        unsigned long key;
        struct entry *next;
        float features[FEATURES];
};

static struct entry *buckets[BUCKETS];

static const float *features_of(unsigned long key)
{
        struct entry **bucket = &buckets[key % BUCKETS], *e;

        for (e = *bucket; e; e = e->next)
                if (e->key == key)
                        return e->features;
        e = malloc(sizeof *e); /* the line */
        e->key = key;
        for (int i = 0; i < FEATURES; i++)
                e->features[i] = (float)(key % 97) * (float)i;
        e->next = *bucket;
        *bucket = e;
        return e->features;
}

int main(void)
{
        double sum = 0;
        unsigned long user = 12345;

        for (int request = 0; request < 50000; request++) {
                user = user * 6364136223846793005UL + 1442695040888963407UL;
                sum += (double)features_of(user >> 16)[3];
                if (request % 1000 == 0) {
                        printf("%d requests, %f\n", request, sum);
                        fflush(stdout);
                }
                if (request % 10 == 0)
                        usleep(5000);
        }
        return 0;
}
