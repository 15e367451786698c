/* A cache of keys and values for each conversation; when one ends, only its keys are freed. */
#include "cache.h"
#include <antifreeze/step.h>
#include <stdio.h>
#include <time.h>

int main(void)
{
        double sum = 0;

        for (int conversation = 0; conversation < 750; conversation++) {
                struct cache *cache;

                if (antifreeze_step)
                        antifreeze_step();
                cache = cache_new(192 + (size_t)conversation % 7 * 32, 96);
                for (size_t token = 0; token < cache->tokens; token++)
                        sum += cache_attend(cache, token);
                cache_free(cache);
                if (conversation % 25 == 0)
                        printf("conversation %d: %f\n", conversation, sum);
                fflush(stdout);
                nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
        }
        return 0;
}
