/* Loaded as NumPy's own library, by its name: one that looks at the answer, and so may be told that
 * there is no memory. */
#include <errno.h>
#include <stdlib.h>

void *take(size_t size);
void *take_zeroed(size_t size);
void *take_aligned(size_t size);
void *grow(void *at, size_t size);

/* None is the last thing that is done: who jumps to malloc is not on the stack. */
void *take(size_t size)
{
        void *volatile at = malloc(size);
        return at;
}

void *take_zeroed(size_t size)
{
        void *volatile at = calloc(1, size);
        return at;
}

void *grow(void *at, size_t size)
{
        void *volatile to = realloc(at, size);
        return to;
}

void *take_aligned(size_t size)
{
        void *at = NULL;
        errno = posix_memalign(&at, 64, size);
        return errno == 0 ? at : NULL;
}
