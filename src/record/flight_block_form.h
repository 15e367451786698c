#ifndef AFZ_FLIGHT_BLOCK_FORM_H
#define AFZ_FLIGHT_BLOCK_FORM_H
/* What the two sides of a block agree on (docs/flight-format.md). */
#include <stdint.h>

#include "flight.h"

enum { AFZ_BLOCK_ROWS = 4096 }; /* points in one column of a block; more are told in several */

/* The tags of records. */
enum { AFZ_BLOCK_SUBJECT = 1, AFZ_BLOCK_COLUMN = 2 };

/* Flags of a column. */
enum {
        AFZ_COLUMN_WIDE = 1,   /* it has widths and means; else all three values are the same */
        AFZ_COLUMN_SECOND = 2, /* its least values are told by second differences */
        AFZ_COLUMN_TIMES = 4,  /* its times are those of the column before it */
        AFZ_COLUMN_FINE = 8,   /* its means are told in 255ths of the width, not in 15ths */
};

/* Where in the width the mean lies, in so many parts: exact where the width is no more than that.
 */
static inline unsigned afz_block_parts(unsigned flags, uint64_t width)
{
        unsigned parts = flags & AFZ_COLUMN_FINE ? 255 : 15;
        return width < parts ? (unsigned)width : parts;
}

static inline uint64_t afz_block_part(uint64_t offset, uint64_t width, unsigned parts)
{
        if (width > UINT64_MAX / 512)
                return offset / (width / parts + 1);
        return (offset * parts + width / 2) / width;
}

static inline uint64_t afz_block_offset(uint64_t part, uint64_t width, unsigned parts)
{
        if (width > UINT64_MAX / 512)
                return width / parts * part;
        uint64_t scaled = width * part + parts / 2;
        return parts == 15 ? scaled / 15 : scaled / parts; /* by a constant, mostly: it is faster */
}

#endif
