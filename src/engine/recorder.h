#ifndef AFZ_RECORDER_H
#define AFZ_RECORDER_H
/* The flight recorder of a run: guard and scout put what they see into slots of shared memory, and
 * a writer process takes them to flight.afz. Who puts never waits and never writes to a disk; what
 * is in a slot survives the one who put it, and the writer survives guard and job: it takes what is
 * left, and closes the file.
 *
 *   guard ──► 8 slots of 8 KiB ──┐
 *                                ├──► writer ──► flight.afz
 *   scout ──► 8 slots of 256 KiB ┘
 */
#include <stdint.h>
#include <sys/types.h>

#include "flight.h"
#include "window.h"

struct afz_recorder; /* in memory that is shared by all who were forked after it was made */

/* Makes the slots and forks the writer, which makes flight.afz in the run's folder (dir_fd is
 * duplicated). From a process with one thread. -ENOENT: there is no folder to record in. */
int afz_recorder_start(int dir_fd, const struct afz_flight_head *head, uint64_t start_ns,
                       struct afz_recorder **ret);
pid_t afz_recorder_pid(const struct afz_recorder *recorder);

/* The guard's side; NULL as recorder is fine in all of these. */
void afz_recorder_pulse(struct afz_recorder *recorder, const struct afz_sample *hold);
void afz_recorder_mark(struct afz_recorder *recorder, uint64_t t_ns, enum afz_mark_kind kind,
                       int64_t code, const char *text);
/* The scout's side: what is new in the window since the last call. */
void afz_recorder_window(struct afz_recorder *recorder, const struct afz_window *window);

/* Everything is in; waits (at most so long) until the writer has closed the file. */
void afz_recorder_stop(struct afz_recorder *recorder, uint64_t timeout_ns);

#endif
