#ifndef AFZ_PROC_READ_H
#define AFZ_PROC_READ_H
/* One process, asked once: for those who do not keep its files open.
 */
#include "env.h"
#include "proc_stat.h"

#define AFZ_PROC_STAT_CAP 1024 /* the name is 64 bytes at most, all else are numbers */

/* Reads and parses /proc/PID/stat; ret->comm points into buf. -ESRCH: there is no such process. */
int afz_proc_stat_read(const struct afz_env *env, uint64_t pid, char buf[AFZ_PROC_STAT_CAP],
                       struct afz_proc_stat *ret);

/* The same of the process that has this start; -ESRCH when the number is another's by now. */
int afz_proc_stat_check(const struct afz_env *env, uint64_t pid, uint64_t start_ticks,
                        char buf[AFZ_PROC_STAT_CAP], struct afz_proc_stat *ret);

/* A pidfd of the process that has this start: opened first and checked then, so that it is
 * certainly of that one. -ESRCH; -ENOSYS before Linux 5.3. */
int afz_proc_open(const struct afz_env *env, uint64_t pid, uint64_t start_ticks);

#endif
