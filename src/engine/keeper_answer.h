#ifndef AFZ_KEEPER_ANSWER_H
#define AFZ_KEEPER_ANSWER_H
/* The keeper's answer to who asks which lines hold the memory just now (keeper_ask.h): its last
 * look, added up by line, with what each line grew by in about a minute.
 */
#include "keeper_ask.h"
#include "keeper_sites.h"

/* When what stands in afz_site.past[] was so. */
struct afz_past {
        uint64_t t_ns[AFZ_SITE_PAST]; /* 0: never */
        unsigned last;                /* the newest */
        bool full;                    /* what was at the very start is not in it any more */
};

/* After each look that was recorded. */
void afz_past_keep(struct afz_past *past, struct afz_sites *sites, uint64_t t_ns);

/* Adds what one process has told (enum afz_told); how many samples go through is of the last that
 * tells it. */
void afz_keeper_answer_told(const uint64_t *told, struct afz_keeper_answer *ret);

/* Fills in rows, live_bytes and growth_s; the rest is the caller's. From the sums of a look that
 * was recorded: sites without a name of their own are told as "everywhere else". */
void afz_keeper_answer(const struct afz_sites *sites, const struct afz_past *past, uint64_t t_ns,
                       struct afz_keeper_answer *ret);

#endif
