#ifndef AFZ_RECORDER_H
#define AFZ_RECORDER_H
/* The flight recorder of a run: guard and scout put what they see into slots of shared memory, and
 * a writer process takes them to flight.afz. Who puts never waits and never writes to a disk; what
 * is in a slot survives the one who put it, and the writer survives guard and job: it takes what is
 * left, and closes the file.
 *
 *   guard  ──► 8 slots of 8 KiB ───┐  twice a second
 *   scout  ──► 8 slots of 256 KiB ─┼──► afz-writer ──► flight.afz
 *   keeper ──► 8 slots of 256 KiB ─┘
 *
 * The writer ends by itself when the guard has said so or is gone. It holds neither the run's lock
 * nor any descriptor of the caller's, hears no signals, and sits in no cgroup of the job's. A disk
 * that is full or slow costs records and nothing else: it goes on trying, and what was lost is told
 * in the recording (AFZ_MARK_GAP).
 *
 * Times that are given are CLOCK_MONOTONIC, as the guard and its senses count; in the recording
 * they are CLOCK_BOOTTIME since the run's start. NULL as recorder is fine in all of these.
 */
#include <stdint.h>
#include <sys/types.h>

#include "flight.h"
#include "run.h"
#include "window.h"

struct afz_recorder; /* of the process that made it and of those that it forks later */

/* Makes the slots and forks the writer, which waits for afz_recorder_go() before it makes a file in
 * the run's folder. Borrowed until this returns: the head, whose `git` is looked up by the writer.
 * From a process with one thread. -ENOENT: there is no folder to record in. */
int afz_recorder_start(struct afz_run *run, const struct afz_flight_head *head,
                       struct afz_recorder **ret);
pid_t afz_recorder_pid(const struct afz_recorder *recorder); /* 0: there is none */

/* The job runs, in this tier: from here on there is something to record. */
void afz_recorder_go(struct afz_recorder *recorder, enum afz_tier tier);

/* The guard's side: allocates nothing, waits for nothing. The sample's own time counts. */
void afz_recorder_pulse(struct afz_recorder *recorder, const struct afz_sample *hold);
void afz_recorder_mark(struct afz_recorder *recorder, uint64_t t_ns, enum afz_mark_kind kind,
                       int64_t code, const char *text);

/* Why nothing gets onto the disk at present: 0 (all is well) or -errno. */
int afz_recorder_trouble(const struct afz_recorder *recorder);
uint64_t afz_recorder_cpu_ns(const struct afz_recorder *recorder); /* that the writer has used */

/* The scout's side, in its own process. First, before it closes its descriptors: */
int afz_recorder_join(struct afz_recorder *recorder);
/* What is new in the window since the last call. */
void afz_recorder_window(struct afz_recorder *recorder, const struct afz_window *window);
/* Where a thread of the job stood; code: its pid << 32 | tid. */
void afz_recorder_stack(struct afz_recorder *recorder, uint64_t t_ns, int64_t code,
                        const char *text);

/* The keeper's side, in its own process; here times are CLOCK_BOOTTIME. Joined first, before it
 * closes its descriptors; from then until it leaves, a writer whose guard is gone waits for it a
 * moment. A stack is told once, with its site's first sample (NULL later). What is said is about
 * the probe itself: a sentence for who asks whether it was there. -ENOENT: nothing is recorded. */
int afz_recorder_join_sites(struct afz_recorder *recorder);
void afz_recorder_sites_begin(struct afz_recorder *recorder, uint64_t t_ns);
void afz_recorder_site(struct afz_recorder *recorder, const struct afz_sample *site,
                       const char *stack);
void afz_recorder_sites_say(struct afz_recorder *recorder, uint64_t t_ns, const char *text);
void afz_recorder_sites_end(struct afz_recorder *recorder);
void afz_recorder_leave_sites(struct afz_recorder *recorder);

/* Everything is in; waits (at most so long; 0: not at all) until the file can be read to its end.
 * It is on the disk soon after. May be called again to wait. */
void afz_recorder_stop(struct afz_recorder *recorder, uint64_t timeout_ns);
void afz_recorder_free(struct afz_recorder *recorder); /* stops it, if nobody has */

#endif
