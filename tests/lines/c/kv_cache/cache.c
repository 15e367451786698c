#include "cache.h"
#include <stdlib.h>

struct cache *cache_new(size_t tokens, size_t width)
{
        struct cache *cache = calloc(1, sizeof *cache);

        cache->tokens = tokens;
        cache->width = width;
        for (int layer = 0; layer < LAYERS; layer++) {
                cache->keys[layer] = calloc(tokens * width, sizeof(float));
                cache->values[layer] = calloc(tokens * width, sizeof(float)); /* the line */
                for (size_t i = 0; i < tokens * width; i++) {
                        cache->keys[layer][i] = (float)(i % 19);
                        cache->values[layer][i] = (float)(i % 23);
                }
        }
        return cache;
}

double cache_attend(const struct cache *cache, size_t token)
{
        double sum = 0;

        for (int layer = 0; layer < LAYERS; layer++)
                for (size_t i = 0; i < cache->width; i++)
                        sum += (double)(cache->keys[layer][token * cache->width + i] *
                                        cache->values[layer][token * cache->width + i]);
        return sum;
}

void cache_free(struct cache *cache)
{
        for (int layer = 0; layer < LAYERS; layer++)
                free(cache->keys[layer]);
        free(cache);
}
