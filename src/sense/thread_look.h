#ifndef AFZ_THREAD_LOOK_H
#define AFZ_THREAD_LOOK_H
/* The threads of a process, as the kernel tells of them: where each sleeps, and in which system
 * call with which arguments. All of it is read from /proc/PID/task: nobody is stopped or traced for
 * it, for a thread that is stopped may find its epoll_wait() interrupted afterwards.
 *
 * A file that may not be read (another user's, Yama) leaves its part unknown.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "env.h"

enum { AFZ_THREADS_MAX = 64, AFZ_SYSCALL_ARGS = 6 };

struct afz_thread_look {
        pid_t tid;
        char state;    /* as in stat */
        char wait[48]; /* the kernel's function that it sleeps in; "": not known, or it runs */
        bool has_switches;
        uint64_t switches; /* how often it has gone to sleep so far: who stands still has none */

        bool in_call; /* it waits in a system call, and these are known */
        int64_t call; /* its number on this machine */
        uint64_t arg[AFZ_SYSCALL_ARGS];
        bool placed;     /* it stands, and this is where: it called, or is held there */
        uint64_t sp, pc; /* of the program */
};

/* All of them, the main thread first, at most cap; returns how many. -ESRCH: the process is gone.
 */
int afz_threads_look(const struct afz_env *env, pid_t pid, struct afz_thread_look *ret, size_t cap);

/* One line of /proc/PID/task/TID/syscall into in_call, call, arg, placed, sp and pc; "running" and
 * garbage leave in_call and placed false. Pure. */
void afz_thread_call_parse(struct afz_span text, struct afz_thread_look *ret);

/* "futex", "poll", ... of those in which threads wait; NULL: another one. */
const char *afz_call_name(int64_t call);

#endif
