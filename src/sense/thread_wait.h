#ifndef AFZ_THREAD_WAIT_H
#define AFZ_THREAD_WAIT_H
/* What a thread waits for, in one line that a judge can read:
 *
 *      futex_do_wait, slept 16 times
 *      do_poll of a socket with a deadline, slept 120 times
 *      anon_pipe_read of a pipe from outside
 *      futex_do_wait perhaps with a deadline     (its call may not be seen)
 *
 * First the kernel's function (or the system call, where that is not told); of what, where it waits
 * for descriptors; whether a clock will wake it; and how often it has gone to sleep, so that two
 * looks tell who has not moved in between.
 */
#include "thread_look.h"

/* The pipes of a job, by the ends that it holds itself. */
struct afz_job_pipes {
        size_t count;
        struct {
                uint64_t inode;
                bool reads, writes;
        } pipe[512]; /* what is more is taken for somebody else's */
};

/* Adds those of a process, which may be gone. Of one with thousands of descriptors, the first ones.
 */
void afz_job_pipes_add(const struct afz_env *env, pid_t pid, struct afz_job_pipes *pipes);

/* The line; "" where nothing is known. Its memory is asked for what it polls. */
void afz_thread_wait_line(const struct afz_env *env, pid_t pid, const struct afz_thread_look *look,
                          const struct afz_job_pipes *pipes, char *buf, size_t cap);

/* Whether a clock wakes it, by the call and its arguments alone. */
bool afz_thread_has_deadline(const struct afz_thread_look *look);

#endif
