#ifndef AFZ_FIND_PYTHON_H
#define AFZ_FIND_PYTHON_H
/* Which Python is meant where none is named, and what a call of it is for. */
#include <stdbool.h>
#include <stddef.h>

/* How `antifreeze python` is called when it is to be an interpreter itself: a link of this name to
 * our program, best beside a Python (in the bin folder of a virtual environment). */
#define AFZ_PYTHON_NAME "antifreeze-python"

/* Whether we were started by that name. */
bool afz_python_is_link(const char *argv0);

/* Its path: the one beside the link `argv0` (NULL, or without a slash: none), the one of the active
 * virtual environment, or the first python3 or python on PATH; never ourselves. What the
 * environment's ANTIFREEZE_PYTHON says comes before all, and is taken as it is: who names one that
 * is not there is to hear that. -ENOENT: there is none. */
int afz_find_python(const char *argv0, char *ret, size_t cap);

/* Whether these arguments of Python's run a program that is worth a guard: a script, a module, or
 * the prompt. Not what IDEs ask an interpreter all day: its version, a line of code (-c), what pip
 * has. */
bool afz_python_is_program(const char *const *args);

#endif
