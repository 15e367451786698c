#ifndef AFZ_FIXTURE_H
#define AFZ_FIXTURE_H
/* A small machine for a test: a tree of files declared as a table and written into a temporary
 * folder, with an env that is rooted there and a clock that only the test moves.
 *
 *      static const struct afz_fixture_row machine[] = {
 *              {"proc/meminfo", "MemTotal: 1024 kB\n"},
 *              {"proc/self", "-> 42"},              a symbolic link
 *              {"sys/block/", NULL},                an empty folder
 *              {"proc/42/cmdline", "a\0b", 4},      bytes, where a NUL must be in the text
 *              {0},
 *      };
 *      struct afz_fixture *f = afz_fixture_new(machine);
 *      ... afz_fixture_env(f) ...
 *      afz_fixture_free(f);
 *
 * Paths are relative to the fixture's folder and begin with "proc", "sys", "cgroup" or "dev", or
 * are one of the env's own files, "fs_space" and "machine". Folders in between are made. The env is
 * opened after the rows are written: a root that no row mentions does not exist (its descriptor is
 * -1), and a "machine" set later is not seen.
 *
 * Nothing here returns an error: a fixture that cannot be written ends the test program at once.
 */
#include <stddef.h>
#include <stdint.h>

#include "env.h"

struct afz_fixture_row {
        const char *path; /* ends in '/': an empty folder; NULL: end of the table */
        const char *text; /* "-> target": a symbolic link */
        size_t size;      /* bytes of the text; 0: up to its NUL */
};

struct afz_fixture;

struct afz_fixture *afz_fixture_new(const struct afz_fixture_row *rows);
void afz_fixture_free(struct afz_fixture *f);

/* Owned by the fixture. The clock starts at AFZ_FIXTURE_START_NS. */
#define AFZ_FIXTURE_START_NS UINT64_C(1000000000)
struct afz_env *afz_fixture_env(struct afz_fixture *f);
void afz_fixture_advance(struct afz_fixture *f, uint64_t ns);
const char *afz_fixture_dir(const struct afz_fixture *f);

/* Writes a file anew, in place: a descriptor that a sense keeps open sees the new text, as it does
 * in the kernel's files. A folder or a link that stands there is replaced. */
void afz_fixture_set(struct afz_fixture *f, const char *path, const char *text);
void afz_fixture_set_bytes(struct afz_fixture *f, const char *path, const void *bytes, size_t n);
void afz_fixture_append(struct afz_fixture *f, const char *path, const char *text);

/* Removes a file, or a folder with all below it: a process that vanishes. No error when it is not
 * there. */
void afz_fixture_remove(struct afz_fixture *f, const char *path);

/* Puts a folder in the file's place: it can be opened, and every read fails with -EISDIR. Works for
 * root too, for whom no mode bits are in the way. */
void afz_fixture_break(struct afz_fixture *f, const char *path);

/* How many descriptors this process has open: a test compares before and after. */
size_t afz_fixture_open_fds(void);

#endif
