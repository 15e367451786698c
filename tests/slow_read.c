/* A disk that gives SLOW_READ bytes a second, preloaded into a program: whoever reads much at once
 * waits for its turn. */
#undef _FILE_OFFSET_BITS /* else pread() would be another name for pread64() */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { LARGE_BYTES = 16 << 10 }; /* less is no data */

typedef ssize_t read_at(int fd, void *to, size_t bytes, off_t at);

static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;

static ssize_t slowly(const char *name, int fd, void *to, size_t bytes, off_t at)
{
        const char *rate = getenv("SLOW_READ");
        if (rate && bytes >= LARGE_BYTES) {
                double s = (double)bytes / strtod(rate, NULL);
                struct timespec t = {.tv_sec = (time_t)s};
                t.tv_nsec = (long)((s - (double)t.tv_sec) * 1e9);
                pthread_mutex_lock(&disk);
                nanosleep(&t, NULL);
                pthread_mutex_unlock(&disk);
        }
        read_at *real;
        *(void **)&real = dlsym(RTLD_NEXT, name);
        return real(fd, to, bytes, at);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t at)
{
        return slowly("pread", fd, to, bytes, at);
}

ssize_t pread64(int fd, void *to, size_t bytes, off_t at);
ssize_t pread64(int fd, void *to, size_t bytes, off_t at)
{
        return slowly("pread64", fd, to, bytes, at);
}
