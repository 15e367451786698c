/* A library that does not expect a no, as most. */
#include <stdlib.h>
#include <string.h>

void deaf(size_t size);

void deaf(size_t size)
{
        char *volatile at = malloc(size);
        if (!at)
                abort();
        memset(at, 1, 1 << 20);
        free(at);
}
