#ifndef AFZ_SCOUT_SHM_H
#define AFZ_SCOUT_SHM_H
/* The job's files in /dev/shm (shm_sweep.h), of the members that are in the window: what it wrote
 * there and does not map shows in no process.
 */
#include "env.h"
#include "scout.h"
#include "shm_sweep.h"
#include "window.h"

struct afz_scout_shm;

int afz_scout_shm_new(const struct afz_env *env, struct afz_scout_shm **ret);
void afz_scout_shm_free(struct afz_scout_shm *shm);

/* Notes what is there as not the job's; before the job runs. */
void afz_scout_shm_begin(struct afz_scout_shm *shm);

/* /dev/shm fills: a look is due, whatever the pace. */
bool afz_scout_shm_fills(const struct afz_scout_shm *shm);

/* Looks again where that is due (asking many processes is dear), sets shm.unmapped_bytes of the
 * report, and raises shm.job_bytes to what the job's files hold. */
void afz_scout_shm_take(struct afz_scout_shm *shm, const struct afz_window *window,
                        struct afz_scout_report *report);

/* Sets `swept` of the report. */
void afz_scout_shm_sweep(struct afz_scout_shm *shm, const struct afz_shm_end *end,
                         struct afz_scout_report *report);

#endif
