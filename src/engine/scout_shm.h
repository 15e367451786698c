#ifndef AFZ_SCOUT_SHM_H
#define AFZ_SCOUT_SHM_H
/* Files in /dev/shm that came since the job began: what it wrote there and does not map shows in no
 * process. Names that were there before, and other users' files, are not counted.
 */
#include "env.h"
#include "scout.h"

struct afz_scout_shm;

int afz_scout_shm_new(const struct afz_env *env, struct afz_scout_shm **ret);
void afz_scout_shm_free(struct afz_scout_shm *shm);

/* Notes what is there as not the job's; before the job runs. */
void afz_scout_shm_begin(struct afz_scout_shm *shm);

/* Lists again and raises shm.job_bytes of the report to what has come since. */
void afz_scout_shm_take(struct afz_scout_shm *shm, struct afz_scout_report *report);

#endif
