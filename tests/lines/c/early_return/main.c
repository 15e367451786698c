/* Of images that do not pass a check, the function returns early, and nobody frees them. */
#include "image.h"
#include <stdio.h>
#include <unistd.h>

static int train_on(unsigned number, double *loss)
{
        struct image *image = image_read(512, 512, number);
        unsigned long sum = 0;

        for (size_t i = 0; i < image->width * image->height; i++)
                sum += image->pixels[i];
        if (sum % 5 != 3)
                return -1;
        *loss += (double)sum;
        image_free(image);
        return 0;
}

int main(void)
{
        double loss = 0;
        int bad = 0;

        for (unsigned n = 0; n < 1700; n++) {
                bad += train_on(n * 7 + 1, &loss) < 0;
                if (n % 40 == 0) {
                        printf("image %u, %d not good\n", n, bad);
                        fflush(stdout);
                }
                usleep(18000);
        }
        return 0;
}
