#ifndef AFZ_PROBE_TRIAL_H
#define AFZ_PROBE_TRIAL_H
/* Tries the probe on small programs of our own: whether it is loaded, asks for a book, and writes
 * down what they allocate; and whether stacks and memory of a process can be read from outside.
 *
 * The programs are dd and what PATH has as python3 and python, each with its standard streams
 * elsewhere and gone when this returns, whatever it does: no stage takes more than two seconds.
 * Nothing is left but for what a Python caches by itself. It forks, so it is not for a program with
 * threads.
 */
#include "probe_facts.h"

/* `library`: where the probe lies; NULL: it was not found. `path`: folders with programs, as PATH
 * has them; NULL: none. Whatever comes out is an answer. */
void afz_probe_trial(const char *library, const char *path, struct afz_probe_facts *ret);

#endif
