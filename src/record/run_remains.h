#ifndef AFZ_RUN_REMAINS_H
#define AFZ_RUN_REMAINS_H
/* What a run's folder says without run.state: whose it is, and what is known of a run of which
 * nothing but the recording is left (its verdict was removed, or only flight.afz was copied). */
#include <stdbool.h>

#include "run.h"

/* The ID in the first line of verdict.txt, or else in the recording. False: no run was here. */
bool afz_run_id_in_folder(int dir_fd, char ret[AFZ_RUN_ID_CAP]);

/* From flight.afz alone: its head, and that it was stopped where that stands there, or that this
 * machine went down while it was written; else how it ended is not known. -ENOENT: there is no
 * recording of that run. */
int afz_run_recall_recording(const struct afz_run_ref *ref, struct afz_run_known *ret);

#endif
