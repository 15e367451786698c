#ifndef AFZ_FIND_AGENT_H
#define AFZ_FIND_AGENT_H
/* The agent (python/antifreeze): how Python programs of a job come by it (docs/agent.md). */
#include <stddef.h>

/* The folder that has to be ahead on PYTHONPATH, without links and dots. -ENOENT: it is nowhere, or
 * where PYTHONPATH cannot name it. */
int afz_find_agent(char *ret, size_t cap);

/* What PYTHONPATH is to be, with what it was before (NULL or "": nothing) behind; the same as
 * before if the folder is ahead already. -ENAMETOOLONG: it does not fit. */
int afz_agent_path(const char *folder, const char *before, char *ret, size_t cap);

/* An option of Python's in the command that keeps the agent out ("-I"), NULL: none. Of a command
 * that does not begin with Python nothing can be said: NULL, too. */
const char *afz_agent_kept_out(const char *const *argv);

#endif
