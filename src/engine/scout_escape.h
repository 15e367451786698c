#ifndef AFZ_SCOUT_ESCAPE_H
#define AFZ_SCOUT_ESCAPE_H
/* Commands whose work is done elsewhere: by a daemon, another machine, another session. What they
 * start is not below the job's root, and nothing we do holds it. Pure: texts in, a name out.
 */
#include <stdbool.h>
#include <stddef.h>

/* command: the words of the command line with blanks between them, perhaps cut at the end. parent:
 * the name of the process above, or NULL. On a hit `ret_name` is like "docker run" or "sbatch". */
bool afz_scout_escape(const char *command, const char *parent, char *ret_name, size_t cap);

#endif
