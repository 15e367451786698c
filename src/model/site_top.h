#ifndef AFZ_SITE_TOP_H
#define AFZ_SITE_TOP_H
/* Which lines of the program hold its memory: the sites of a recording (AFZ_KIND_SITE) added up by
 * the line of the user's own code, at an instant or as they grew. Estimates (docs/sampling.md).
 */
#include <stdbool.h>
#include <stdint.h>

#include "flight.h"
#include "verdict.h"

enum { AFZ_SITE_ROWS = 12 };

struct afz_site_row {
        const struct afz_track *track; /* its largest; name, where and stack are told of it */
        double bytes, blocks, early_bytes, counted_bytes;
};

struct afz_site_top {
        uint32_t t_ms;
        double seen_bytes; /* of all lines, told or not */
        unsigned rows;     /* largest first */
        struct afz_site_row row[AFZ_SITE_ROWS];
};

/* What was held at t; false: no site was ever seen, or none held anything then. */
bool afz_site_top_at(const struct afz_flight *flight, uint32_t t_ms, struct afz_site_top *ret);

/* When all sites together held most; false: none was ever seen. */
bool afz_site_peak(const struct afz_flight *flight, uint32_t *ret_ms);

/* The last instant that is known, before a program that ends by itself has given all back. */
bool afz_site_end(const struct afz_flight *flight, uint32_t *ret_ms);

/* By how much each line grew over [from, to]; seen_bytes is the growth of all that grew. */
bool afz_site_growth(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms,
                     struct afz_site_top *ret);

/* "/home/me/train.py", 33, "load"; nothing is set where it is not known. */
void afz_site_where(const struct afz_track *site, struct afz_where *ret);

/* The stack of a site, innermost first, a frame a line; "" where it is not known. */
const char *afz_site_stack(const struct afz_flight *flight, uint64_t id);

/* What is said of the probe itself ("it was in 3 processes"); "": nothing is known of it. */
const char *afz_site_probe(const struct afz_flight *flight);

#endif
