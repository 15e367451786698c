#ifndef AFZ_SHARE_H
#define AFZ_SHARE_H
/* How runs without --budget share the machine, so that no two are promised the same memory.
 *
 *   pool  = room + what the sharing ones have taken - what the fixed ones may still take
 *   share = what it keeps (afz_budget_least, never more than it has) + an even part of the rest
 *
 * Pure. One that joins stands in the table with budget_bytes 0. */
#include "stake.h"

/* Sets share_bytes of all that share. `room` is afz_room_of(). Where the pool is too small for what
 * they keep, they keep it all the same. */
void afz_share_divide(struct afz_stake *stake, unsigned count, uint64_t room_bytes);

/* What of the pool nobody was promised. */
uint64_t afz_share_left(const struct afz_stake *stake, unsigned count, uint64_t room_bytes);

/* After afz_share_divide(), and after those who have too much were asked to give: raises
 * budget_bytes towards share_bytes, the last of the table first, by no more than what is left.
 * Who has more than its share keeps it in the table. */
void afz_share_grant(struct afz_stake *stake, unsigned count, uint64_t room_bytes);

#endif
