#include "image.h"
#include <stdlib.h>
#include <string.h>

struct image *image_read(size_t width, size_t height, unsigned seed)
{
        struct image *image = malloc(sizeof *image);

        image->width = width;
        image->height = height;
        image->pixels = malloc(width * height); /* the line */
        memset(image->pixels, (int)(seed & 0xff), width * height);
        return image;
}

void image_free(struct image *image)
{
        free(image->pixels);
        free(image);
}
