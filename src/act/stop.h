#ifndef AFZ_STOP_H
#define AFZ_STOP_H
/* The polite part of a stop: a signal to CMD that it can handle.
 *
 * To CMD alone; if CMD is a shell, also to its direct children, for a shell that waits for its
 * command puts the signal off until that has ended. Never to anybody further down: a loader worker
 * that dies of SIGTERM makes its trainer fail before it has saved.
 *
 * Processes are signalled by descriptor, after their start time was found to be the same before and
 * behind its opening. Not for the tick: it opens and lists files.
 */
#include <stdbool.h>
#include <sys/types.h>

#include "env.h"

/* pidfd: CMD's own where there is one, else -1 and it is opened here. start_ticks: CMD's start as
 * its stat has it; 0: not known (it is our own child and not reaped). Returns how many were
 * signalled; -ESRCH: CMD is gone (its children are then not signalled either). */
int afz_stop_signal(const struct afz_env *env, pid_t pid, int pidfd, uint64_t start_ticks,
                    int signal);

/* The same for a signal that asks for something else than an end: a shell itself would die of it,
 * so only its children get it. */
int afz_stop_ask(const struct afz_env *env, pid_t pid, int pidfd, int signal);

/* Whether the process runs a shell, by its program's file and by its own name. */
bool afz_stop_is_shell(const struct afz_env *env, pid_t pid);

#endif
