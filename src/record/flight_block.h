#ifndef AFZ_FLIGHT_BLOCK_H
#define AFZ_FLIGHT_BLOCK_H
/* Thinned columns as bytes: a column's points of one length of span, one kind of number after the
 * other (times, least values, widths, means), as differences, and what repeats as runs. A block
 * stands alone: whose columns these are is told in it.
 */
#include "flight.h"

/* What a block is of, from its first bytes. */
struct afz_block_about {
        uint32_t span_ms, from_ms, to_ms; /* its points are in [from, to) */
};
int afz_block_about(const unsigned char *bytes, size_t len, struct afz_block_about *ret);

/* Writes all columns of a flight, whose points all have this span, as blocks: calls `put` with each
 * (never more than AFZ_FRAME_MAX bytes). Returns what `put` does when that is below 0; -ENOMEM. */
int afz_block_write(const struct afz_flight *flight, uint32_t span_ms,
                    int (*put)(void *ctx, const unsigned char *bytes, size_t len), void *ctx);

#endif
