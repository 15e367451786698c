#ifndef AFZ_FLIGHT_STREAM_H
#define AFZ_FLIGHT_STREAM_H
/* Many numbers that are mostly alike, in few bytes: chunks of 64, each with its own number of plain
 * bits (Rice's code: what is above them is counted in ones), or one value for all of it. Noise
 * takes a bit or two more than it has, what stands still next to nothing.
 */
#include "flight_bytes.h"

enum { AFZ_STREAM_CHUNK = 64, AFZ_STREAM_WORST = 11 }; /* values; bytes a value at the very worst */

void afz_stream_put(struct afz_put *put, const uint64_t *v, size_t n);

/* Exactly n values; false: they are not there. */
bool afz_stream_take(struct afz_take *take, uint64_t *v, size_t n);

#endif
