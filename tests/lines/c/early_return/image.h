#ifndef IMAGE_H
#define IMAGE_H
#include <stddef.h>

struct image {
        size_t width, height;
        unsigned char *pixels;
};

struct image *image_read(size_t width, size_t height, unsigned seed);
void image_free(struct image *image);
#endif
