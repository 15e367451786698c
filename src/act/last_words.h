#ifndef AFZ_LAST_WORDS_H
#define AFZ_LAST_WORDS_H
/* A process that is to be ended is told why where its user looks, and kept from growing meanwhile.
 *
 * A notebook's kernel reads its own stdout and stderr and shows what comes there in the cell that
 * runs. So its user sees what we write there, without a word of code of ours in it.
 *
 * The caller knows the process: that it is of the job, and not another with the same number.
 */
#include <sys/types.h>

#include "env.h"

/* Writes the text, whole or not at all, to the process's stderr if that is a pipe; never waits.
 * -ENODATA: it is something else (a file, a terminal, what is read by nobody). */
int afz_last_words(const struct afz_env *env, pid_t pid, const char *text);

/* From now on what it asks of the system beyond a few MiB is refused; most programs then stop with
 * words of their own (Python: MemoryError). What it has mapped already it can still touch. */
int afz_refuse_more(const struct afz_env *env, pid_t pid);

#endif
