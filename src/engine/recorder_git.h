#ifndef AFZ_RECORDER_GIT_H
#define AFZ_RECORDER_GIT_H
/* Which revision a folder is at, read from the files of its repository: git itself is not
 * started. */
#include <stddef.h>

#define AFZ_GIT_CAP 72 /* a name of 40 or 64 hex digits */

/* "" where the folder is in no repository, or nothing was committed there, or it cannot be told.
 * Reads files of the caller's, so it may block. */
void afz_git_revision(const char *folder, char ret[AFZ_GIT_CAP]);

/* The same, asked by a child: a folder on a network mount that does not answer costs `wait_ms` and
 * the revision, not the recording. */
void afz_git_revision_soon(const char *folder, int wait_ms, char ret[AFZ_GIT_CAP]);

#endif
