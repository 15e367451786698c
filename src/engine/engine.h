#ifndef AFZ_ENGINE_H
#define AFZ_ENGINE_H
/* The tick: reads the senses that are due, shows what they saw in a window, and asks the judges.
 *
 * The engine owns the senses' states and three batches for each (the newest, the one before, and
 * one to fill, so that a sense with nothing new takes nothing away), all of which are made at
 * birth; a tick allocates nothing. It has no clock and no thread of its own: who calls
 * afz_engine_tick() decides when.
 */
#include "sense.h"
#include "window.h"

struct afz_engine;

/* Opens every sense of the table. Senses that this machine does not offer are left out, and the
 * window says why. -ESRCH: the target does not exist. The env is borrowed. */
int afz_engine_new(const struct afz_env *env, const struct afz_target *target,
                   struct afz_engine **ret);
void afz_engine_free(struct afz_engine *engine);

/* One tick, now. */
void afz_engine_tick(struct afz_engine *engine);

/* The next tick reads every sense, due or not: for a last look. */
void afz_engine_hurry(struct afz_engine *engine);

/* Waits, at most so long, until slow starters (the GPU's helper) have something to tell: for
 * commands that look only once. */
void afz_engine_settle(struct afz_engine *engine, uint64_t timeout_ns);

/* Valid until the engine is freed; its contents until the next tick. */
const struct afz_window *afz_engine_window(const struct afz_engine *engine);

/* The state of a sense by its name, for doctor and capture; NULL when it is not open. */
void *afz_engine_sense(const struct afz_engine *engine, const char *name);

/* Whether any process of the job lived at the last tick (true without a job). */
bool afz_engine_job_alive(const struct afz_engine *engine);

#endif
