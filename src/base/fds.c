#include "fds.h"

#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9; the same number everywhere */
#endif

/* More descriptors than a program of ours ever has, for kernels without close_range. */
#define MOST 65536

static void close_from_to(unsigned first, unsigned last)
{
        if (first > last || syscall(SYS_close_range, first, last, 0U) == 0)
                return;
        for (unsigned fd = first; fd <= last && fd < MOST; fd++)
                close((int)fd);
}

void afz_fds_close_but(const int *keep, size_t n)
{
        int from = 0;
        for (;;) { /* the kept ones in rising order, and what lies between them closed */
                int next = -1;
                for (size_t i = 0; i < n; i++)
                        if (keep[i] >= from && (next < 0 || keep[i] < next))
                                next = keep[i];
                if (next < 0)
                        break;
                if (next > from)
                        close_from_to((unsigned)from, (unsigned)next - 1);
                from = next + 1;
        }
        close_from_to((unsigned)from, ~0U);
}
