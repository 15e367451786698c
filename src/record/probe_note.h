#ifndef AFZ_PROBE_NOTE_H
#define AFZ_PROBE_NOTE_H
/* Commands that the probe may have harmed: noted in the state folder (probe-left-out, a line each),
 * so that their next runs go without it. A note counts for the version that made it; who removes
 * its line, or the file, tries again.
 */
#include <stdbool.h>
#include <stddef.h>

#define AFZ_PROBE_NOTES "probe-left-out" /* beside the folder "runs" */

/* A command is its program and the first argument that is no option, as seen from the folder cwd:
 * "python3 /home/me/train.py". */
bool afz_probe_note_has(const char *version, const char *cwd, char *const *argv);
int afz_probe_note_add(const char *version, const char *cwd, char *const *argv);

/* Where they are, for people: "~/.local/state/antifreeze/probe-left-out". Returns buf. */
const char *afz_probe_note_path(char *buf, size_t cap);

#endif
