#ifndef AFZ_SCOUT_OTHERS_H
#define AFZ_SCOUT_OTHERS_H
/* Which program outside of the job has grown since we began: a walk over /proc now and then, added
 * up by name (a browser is many processes). Only memory that cannot be dropped is counted: what is
 * resident less what is shared.
 *
 * The first walk is what all others are held against. A program that was not there then counts
 * with all it has.
 */
#include "env.h"
#include "scout.h"

struct afz_scout_others;

int afz_scout_others_new(const struct afz_env *env, struct afz_scout_others **ret);
void afz_scout_others_free(struct afz_scout_others *others);

/* Whether it is time for a walk: seldom on a quiet machine, soon when memory goes. has_available:
 * whether the figure is known. */
bool afz_scout_others_due(const struct afz_scout_others *others, uint64_t now_ns,
                          bool has_available, uint64_t available_bytes);

/* Walks. `is_ours` names processes that are not looked at: the job's and Antifreeze's own. */
void afz_scout_others_walk(struct afz_scout_others *others, uint64_t now_ns,
                           uint64_t available_bytes, bool (*is_ours)(void *ctx, uint64_t pid),
                           void *ctx);

/* The one that grew most, as of the last walk, into `other`; zeros when none did. */
void afz_scout_others_tell(const struct afz_scout_others *others, struct afz_scout_report *report);

#endif
