#ifndef AFZ_JOB_FS_H
#define AFZ_JOB_FS_H
/* Samples of the file systems that the job has files on (AFZ_KIND_FS).
 *
 * All of them come from the disk sense, the remote ones too, with NFS's own counters out of
 * mountstats; the net sense has the interfaces only. So one sense owns the kind.
 *
 * Space is asked of local file systems only, and only of those that our path really leads to: not
 * below a remote mount, nor of one that is hidden below another.
 */
#include "env.h"
#include "job_files.h"
#include "sample.h"

enum { AFZ_JOB_FS_MAX = 32 }; /* file systems that are shown */

struct afz_job_fs;

/* Borrows both for as long as it lives. */
int afz_job_fs_new(const struct afz_env *env, const struct afz_job_files *files,
                   struct afz_job_fs **ret);
void afz_job_fs_free(struct afz_job_fs *fs);

/* Begins a reading: what was learnt in the last one is forgotten. */
void afz_job_fs_start(struct afz_job_fs *fs);

/* Adds the sample of one mount; NULL when there is no room. The caller adds what it knows of the
 * device below. */
struct afz_sample *afz_job_fs_add(struct afz_job_fs *fs, const struct afz_job_mount *mount,
                                  struct afz_batch *out);

#endif
