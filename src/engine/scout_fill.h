#ifndef AFZ_SCOUT_FILL_H
#define AFZ_SCOUT_FILL_H
/* How fast this machine can fill memory: the pace of the guard's looks follows from it. */
#include <stdbool.h>
#include <stdint.h>

/* Touches a few megabytes of fresh memory, with small and with huge pages, and takes the best of a
 * few rounds times the cores that would do so at once. Takes 40 ms at most and gives all back. Asks
 * `go_on` about every millisecond and ends when it says no. 0: not measured. */
uint64_t afz_scout_fill_measure(uint64_t available_bytes, unsigned cores, bool (*go_on)(void *ctx),
                                void *ctx);

#endif
