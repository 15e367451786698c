#ifndef AFZ_CLOCK_H
#define AFZ_CLOCK_H
/* Time as this program counts it: nanoseconds in 64 bits. Senses and judges are given their time
 * (env.h); the clocks themselves are for those that wait and those that look at our own cost.
 */
#include <stdint.h>
#include <time.h>

#define AFZ_NS_PER_US UINT64_C(1000)
#define AFZ_NS_PER_MS (1000 * AFZ_NS_PER_US)
#define AFZ_NS_PER_S  (1000 * AFZ_NS_PER_MS)

static inline uint64_t afz_clock_ns(clockid_t clock)
{
        struct timespec ts;
        clock_gettime(clock, &ts);
        return (uint64_t)ts.tv_sec * AFZ_NS_PER_S + (uint64_t)ts.tv_nsec;
}

#endif
