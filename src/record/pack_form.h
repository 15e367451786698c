#ifndef AFZ_PACK_FORM_H
#define AFZ_PACK_FORM_H
/* What the two sides of a pack agree on (docs/flight-format.md). */
#include <stdint.h>

#include "metric.h"

enum { AFZ_PACK_FORM = 1 }; /* the first byte of a pack */

/* In what steps a unit usually moves: pages, the kernel's clock ticks, degrees. A change by whole
 * steps takes fewer bytes; others are no less exact. */
static inline int64_t afz_pack_grain(enum afz_unit unit)
{
        switch (unit) {
        case AFZ_UNIT_BYTES:
                return 4096;
        case AFZ_UNIT_NS:
                return 10 * 1000 * 1000;
        case AFZ_UNIT_MILLICELSIUS:
                return 1000;
        case AFZ_UNIT_HZ:
                return 1000 * 1000;
        default:
                return 1;
        }
}

#endif
