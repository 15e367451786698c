/* Has the name and the one function of CUDA's library. */
#include <stdlib.h>

int cudaHostAlloc(void **ret, size_t size, unsigned flags);
int cudaFreeHost(void *at);

int cudaHostAlloc(void **ret, size_t size, unsigned flags)
{
        (void)flags;
        *ret = aligned_alloc(4096, size);
        return *ret ? 0 : 2;
}

int cudaFreeHost(void *at)
{
        free(at);
        return 0;
}
