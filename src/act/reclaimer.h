#ifndef AFZ_RECLAIMER_H
#define AFZ_RECLAIMER_H
/* Does the writes to a v2 cgroup that wait for the kernel to push pages out: memory.reclaim, and
 * memory.high and memory.max when they are lowered. On a slow disk such a write takes seconds, and
 * the guard's tick may not wait. (From 6.16 on, files opened with O_NONBLOCK do not wait; there is
 * no such thing before.)
 *
 * It is a process, forked when the hold is made, which ends when the pipe to it is closed, by us or
 * by our death. It takes orders between bites of BITE_BYTES, the newest counts. Where there is no
 * memory.reclaim (before 5.19), a bite is memory.high lowered below what is used and put back.
 */
#include <stdint.h>
#include <sys/types.h>

struct afz_reclaimer {
        pid_t pid; /* 0: none */
        int pidfd;
        int fd;
};

/* The cgroup's folder. It needs no descriptor of it afterwards. */
int afz_reclaimer_start(int dir_fd, struct afz_reclaimer *ret);

/* Orders; they return at once. -EPIPE: it is gone. */
int afz_reclaimer_squeeze(struct afz_reclaimer *r, uint64_t bytes);
int afz_reclaimer_high(struct afz_reclaimer *r, uint64_t bytes); /* UINT64_MAX: no limit */
int afz_reclaimer_max(struct afz_reclaimer *r, uint64_t bytes);

/* Ends it, also in the middle of a bite, and reaps it. Harmless twice. */
void afz_reclaimer_stop(struct afz_reclaimer *r);

#endif
