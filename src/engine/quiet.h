#ifndef AFZ_QUIET_H
#define AFZ_QUIET_H
/* What a process does first that was forked by the guard to help it: it lives in the caller's
 * process group, and nobody is to notice.
 */
#include <stddef.h>

/* Hears no signal (those of the terminal are meant for the job), has this name, runs as any
 * program does (behind the guard), leaves no core file, and no folder in use. */
void afz_quiet_process(const char *name);

/* Nothing of the guard's stays open but these (none of them below 3): its lock on the run would
 * outlive it, and whoever reads the job's output would wait for us. */
void afz_quiet_fds(const int *keep, size_t n);

#endif
