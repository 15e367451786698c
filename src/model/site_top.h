#ifndef AFZ_SITE_TOP_H
#define AFZ_SITE_TOP_H
/* Which lines of the program hold its memory: the sites of a recording (AFZ_KIND_SITE) added up by
 * the line of the user's own code, at an instant or as they grew. Estimates (docs/sampling.md).
 */
#include <stdbool.h>
#include <stdint.h>

#include "flight.h"
#include "verdict.h"

enum { AFZ_SITE_ROWS = 12, AFZ_SITE_PARTS = 8 };

/* What AFZ_SITE_MEMORY tells. */
enum afz_site_memory {
        AFZ_MEMORY_UNKNOWN,
        AFZ_MEMORY_HEAP,
        AFZ_MEMORY_MAPPED,
        AFZ_MEMORY_OBJECTS, /* Python's own */
        AFZ_MEMORY_PINNED,  /* for a GPU */
        AFZ_MEMORY_SHARED,
        AFZ_MEMORIES
};

struct afz_site_row {
        const struct afz_track *track; /* its largest; name, where and stack are told of it */
        double bytes, blocks, early_bytes, counted_bytes;
        /* Of afz_site_growth() alone: */
        double age_ms, age_steps; /* of what is live, on the mean; 0: not known */
        unsigned parts; /* of AFZ_SITE_PARTS equal parts of that time (of its own, where it began in
                           the earlier half): in so many it rose */
};

struct afz_site_top {
        uint32_t t_ms;
        double seen_bytes;                 /* of all lines, told or not */
        double memory_bytes[AFZ_MEMORIES]; /* afz_site_growth(): of that, by kind */
        unsigned rows;                     /* largest first */
        struct afz_site_row row[AFZ_SITE_ROWS];
};

/* What was held at t; false: no site was ever seen, or none held anything then. */
bool afz_site_top_at(const struct afz_flight *flight, uint32_t t_ms, struct afz_site_top *ret);

/* When all sites together held most; false: none was ever seen. */
bool afz_site_peak(const struct afz_flight *flight, uint32_t *ret_ms);

/* The last instant that is known; of a program that gives all back as it ends, which may take many
 * looks, the one before that. */
bool afz_site_end(const struct afz_flight *flight, uint32_t *ret_ms);

/* By how much each line grew over [from, to]; seen_bytes is the growth of all that grew. */
bool afz_site_growth(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms,
                     struct afz_site_top *ret);

/* By how much one site grew over [from, to]; below 0: it shrank. */
double afz_site_grown(const struct afz_track *site, uint32_t from_ms, uint32_t to_ms);

/* In how many parts of that time it rose, as afz_site_row.parts. */
unsigned afz_site_parts(const struct afz_track *site, uint32_t from_ms, uint32_t to_ms);

enum afz_site_memory afz_site_memory_of(const struct afz_track *site);

/* "/home/me/train.py", 33, "load"; of a program that was built without lines "server", 0, "load";
 * nothing is set where it is not known. */
void afz_site_where(const struct afz_track *site, struct afz_where *ret);

/* Whether two sites are one line of the program, reached in two ways. Those of the same name in
 * another file are not. */
bool afz_site_same_line(const struct afz_track *a, const struct afz_track *b);

/* The stack of a site, innermost first, a frame a line; "" where it is not known. */
const char *afz_site_stack(const struct afz_flight *flight, uint64_t id);

/* What is said of the probe itself ("it was in 3 processes"); "": nothing is known of it. */
const char *afz_site_probe(const struct afz_flight *flight);

#endif
