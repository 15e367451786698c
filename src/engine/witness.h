#ifndef AFZ_WITNESS_H
#define AFZ_WITNESS_H
/* The witness: when the whole job has stood still for a while, or works without making a step, a
 * short-lived process looks where each of its threads is, and the scout records what it found
 * (AFZ_MARK_STACK).
 *
 * It is also sent when the guard holds the job still before it stops it (a picture): then each text
 * begins with AFZ_STACK_FROZEN (flight.h), for who stands still for that reason has said nothing.
 *
 * It only reads: nobody in the job is stopped, traced or signalled. It is a process of its own
 * because what it loads (libdw) is large and what it reads was written by the job: when it crashes
 * or takes too long, it is killed, and what it had found so far counts. It dies with the scout.
 *
 * A text is lines, innermost first: what the thread waits for (thread_wait.h), native frames as
 * "function (module)", Python frames as "python: FILE:LINE in FUNCTION". Threads of one process
 * that stand at the same place are told once, with "and 7 more threads" as the last line.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "env.h"

enum {
        AFZ_WITNESS_TEXTS = 64,      /* main threads first */
        AFZ_WITNESS_PROCESSES = 64,  /* of the job that are looked at */
        AFZ_WITNESS_TEXT_CAP = 4096, /* with its NUL */
};

/* ---- when ---- */

/* Pure: time, the job's core time and its steps in. Zeroed at the start. */
struct afz_witness_due {
        uint64_t since_ns, cpu_ns; /* of the piece of time that is being watched */
        uint64_t step;             /* that it is in */
        bool stepped;              /* in this piece */
        uint64_t quiet_ns;         /* since when it stands still; 0: it does not */
        uint64_t turning_ns;       /* since when it works and makes no step; 0: it does not */
        unsigned looks;            /* that were taken of this stretch */
        uint64_t spent_bytes, start_ns;
};

/* Whether it is time for a look. step: 0 where nobody counts them. `held`: somebody stops or traces
 * the job, so that its standing still means nothing. One that is due is due until
 * afz_witness_took(). */
bool afz_witness_due(struct afz_witness_due *due, uint64_t now_ns, uint64_t cpu_ns, uint64_t step,
                     bool held);
/* A look of so many bytes was taken. */
void afz_witness_took(struct afz_witness_due *due, size_t bytes);

/* ---- what ---- */

struct afz_witness;

/* Forks it on these processes of the job; `frozen`: they are held, or are about to be, for a
 * picture (else a job that is held is not told of). From a process with one thread. */
int afz_witness_start(const struct afz_env *env, const pid_t *pids, size_t n, bool frozen,
                      struct afz_witness **ret);

/* Whether it has ended, or was killed because it took too long (one that even then stays, because
 * the kernel holds it, counts as ended). Never waits. */
bool afz_witness_ended(struct afz_witness *witness, uint64_t now_ns);

/* Once it has ended: calls `put` with each text; code is pid << 32 | tid. Returns how many. */
size_t afz_witness_tell(const struct afz_witness *witness,
                        void (*put)(void *ctx, int64_t code, const char *text), void *ctx);

/* Kills it if it still lives; NULL is fine. */
void afz_witness_free(struct afz_witness *witness);

#endif
