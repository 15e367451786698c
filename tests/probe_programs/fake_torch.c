#include <stddef.h>

int cudaHostAlloc(void **ret, size_t size, unsigned flags);
int cudaFreeHost(void *at);
int pin(size_t size);

/* Pins two and gives one back. */
int pin(size_t size)
{
        void *at = NULL, *other = NULL;
        int r = cudaHostAlloc(&at, size, 0);
        if (r == 0)
                r = cudaHostAlloc(&other, size, 0);
        return r == 0 ? cudaFreeHost(other) : r;
}
