#ifndef AFZ_PIDFD_H
#define AFZ_PIDFD_H
/* Processes by descriptor, so that a pid that is used again is never signalled. Straight to the
 * kernel: the C library has these calls only since 2.36.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* The same numbers on every architecture since 5.1. */
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif

/* For waitid(); 5.4 and later. */
#define AFZ_P_PIDFD 3

/* The descriptor (close-on-exec), or -errno: -ESRCH, -ENOSYS before 5.3. */
static inline int afz_pidfd_open(pid_t pid)
{
        long fd = syscall(SYS_pidfd_open, pid, 0U);
        return fd >= 0 ? (int)fd : -errno;
}

/* Signal 0 only asks whether it lives (a zombie does). */
static inline int afz_pidfd_signal(int pidfd, int signal)
{
        return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0U) == 0 ? 0 : -errno;
}

/* Frees the memory of a process that is dying, without waiting for it to get to that itself. 5.15
 * and later. */
static inline int afz_pidfd_release_memory(int pidfd)
{
        return syscall(SYS_process_mrelease, pidfd, 0U) == 0 ? 0 : -errno;
}

#endif
