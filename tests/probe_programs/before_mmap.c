/* A library that stands before libc's mmap(), and says when it was asked. */
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
        static void *(*next)(void *, size_t, int, int, int, off_t);
        static const char word[] = "mmap of 64 MiB\n";
        if (!next) {
                void *found = dlsym(RTLD_NEXT, "mmap");
                memcpy(&next, &found, sizeof found);
        }
        if (size == 64 << 20)
                (void)!write(STDERR_FILENO, word, sizeof word - 1);
        return next(at, size, protection, flags, fd, offset);
}
