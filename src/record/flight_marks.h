#ifndef AFZ_FLIGHT_MARKS_H
#define AFZ_FLIGHT_MARKS_H
/* Old marks: they are kept as they are. There are few: what happens with every step is a counter
 * (AFZ_INSIDE_STEP). */
#include "flight.h"

/* The marks as packs; calls `put` with each. Returns what that does when it is below 0; -ENOMEM. */
int afz_marks_write(const struct afz_flight *flight,
                    int (*put)(void *ctx, const unsigned char *bytes, size_t len), void *ctx);

#endif
