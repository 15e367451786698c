#ifndef AFZ_NOW_H
#define AFZ_NOW_H
/* Time for figures; nothing is decided by it that shows in the data. */
#include <stdint.h>
#include <time.h>

static inline uint64_t afz_now_ns(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

#endif
