/* A program that brings its own malloc, as those do that have jemalloc linked in. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static _Alignas(16) char room[1 << 20];
static size_t used;

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *at, size_t size);
void free(void *at);

void *malloc(size_t size)
{
        size_t need = ((size + 15) & ~(size_t)15) + 16;
        if (need > sizeof room - used)
                return NULL;
        char *at = room + used + 16;
        memcpy(at - 16, &size, sizeof size);
        used += need;
        return at;
}

void *calloc(size_t count, size_t size)
{
        return malloc(count * size);
}

void *realloc(void *at, size_t size)
{
        size_t had = 0;
        void *to = malloc(size);
        if (at)
                memcpy(&had, (char *)at - 16, sizeof had);
        if (to && at)
                memcpy(to, at, had < size ? had : size);
        return to;
}

void free(void *at)
{
        (void)at;
}

int main(void)
{
        void *volatile at = malloc(1000);
        void *map = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return at && map != MAP_FAILED ? 0 : 1;
}
