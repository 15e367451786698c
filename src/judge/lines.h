#ifndef AFZ_LINES_H
#define AFZ_LINES_H
/* What a job may use, the lines that follow from it, and how often one must look to see it come
 * near one. Pure; every threshold stands in the table at the top of lines.c.
 *
 *      0 ........... act ....... stop .. hard      of need
 *        untouched       dosed,      stopped
 *                        asked to save
 */
#include <stdbool.h>
#include <stdint.h>

#include "hold.h"

struct afz_lines {
        uint64_t act_bytes;   /* of need: the ladder begins */
        uint64_t stop_bytes;  /* of need: no later look is certain to come in time */
        uint64_t hard_bytes;  /* of need: the budget, or with a swap allowance RAM less its headroom
                               * plus most of that:  pages on their way to a slow disk are still in
                               * RAM, and a job that  has its RAM full of them is killed at the limit
                               * with swap to spare */
        uint64_t low_bytes;   /* of MemAvailable: the machine is short; 0: never */
        uint64_t total_bytes; /* RAM of the machine; 0: not known */
        uint64_t slow_bytes;  /* of RAM: where the kernel begins to push out, and lets the job grow
                               * no faster than that; UINT64_MAX: it does not */
        uint64_t ram_bytes;   /* of RAM: the kernel's limit there */
};

/* act <= stop <= hard, always. */
struct afz_lines afz_lines_of(const struct afz_budget *budget, uint64_t ram_total_bytes);

/* Need as it counts against the lines: where the kernel pushes out (slow), RAM that fills faster
 * than swap takes it is as near to its limit as all of need is to hard. */
bool afz_lines_need(const struct afz_lines *lines, const struct afz_pulse *pulse, uint64_t *ret);

/* What a desktop, its services and the kernel need to stay quick. */
uint64_t afz_reserve_of(uint64_t ram_total_bytes);

/* What all runs together may still take: what is available beyond the reserve, and within the
 * container. `limit` is the container's limit less what is used there (UINT64_MAX: none). */
uint64_t afz_room_of(uint64_t ram_total_bytes, uint64_t available_bytes, uint64_t limit_bytes);

/* What a budget that was reckoned is never lowered below. */
uint64_t afz_budget_least(uint64_t need_bytes);

/* Default budget and allowance. `promised` is what other runs may still take; the rest is as in
 * afz_room_of(). Never below a floor that lets a small program run; *ret_tight says that the floor
 * was needed. */
struct afz_budget afz_budget_default(uint64_t ram_total_bytes, uint64_t available_bytes,
                                     uint64_t promised_bytes, uint64_t limit_bytes,
                                     uint64_t swap_free_bytes, bool *ret_tight);

/* The default allowance for a given budget: min(half of free swap, 25 % of the budget). */
uint64_t afz_swap_default(uint64_t ram_bytes, uint64_t swap_free_bytes);

/* A budget that was reckoned, reckoned anew because others grew or shrank: `first` is the one of
 * the start and the most it can become again. It never falls so low that the job, as it stands,
 * would be over its act line (or within 10 % of the kernel's limit). A given budget comes back as
 * it is. `need` and `swap` are of now; need includes swap. */
struct afz_budget afz_budget_again(const struct afz_budget *first, uint64_t ram_total_bytes,
                                   uint64_t available_bytes, uint64_t promised_bytes,
                                   uint64_t need_bytes, uint64_t swap_bytes);

/* How long until the next look: the distance to the nearest line over the fastest fill, halved,
 * from 2 to 100 ms. `fill` is bytes a second; 0: not measured. The ladder's own wish
 * (afz_decision.wake_ns) may be sooner; take the smaller. */
uint64_t afz_pace_ns(const struct afz_lines *lines, const struct afz_pulse *pulse,
                     uint64_t fill_bytes_per_s);

#endif
