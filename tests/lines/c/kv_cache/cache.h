#ifndef CACHE_H
#define CACHE_H
#include <stddef.h>

enum { LAYERS = 6 };

/* Keys and values of all tokens of one conversation, for each layer. */
struct cache {
        float *keys[LAYERS];
        float *values[LAYERS];
        size_t tokens, width;
};

struct cache *cache_new(size_t tokens, size_t width);
double cache_attend(const struct cache *cache, size_t token);
void cache_free(struct cache *cache);
#endif
