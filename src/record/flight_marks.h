#ifndef AFZ_FLIGHT_MARKS_H
#define AFZ_FLIGHT_MARKS_H
/* Old marks: they are kept as they are, unless there are so many steps that they would be most of
 * the file. */
#include "flight.h"

enum { AFZ_MARKS_MANY = 20000 };

/* With more marks than that, only every second, fourth, eighth, ... step stays (by its number, so
 * that what is left is even over the run however often this is done). */
void afz_marks_thin(struct afz_flight *flight);

/* The marks as packs; calls `put` with each. Returns what that does when it is below 0; -ENOMEM. */
int afz_marks_write(const struct afz_flight *flight,
                    int (*put)(void *ctx, const unsigned char *bytes, size_t len), void *ctx);

#endif
