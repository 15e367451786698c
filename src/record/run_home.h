#ifndef AFZ_RUN_HOME_H
#define AFZ_RUN_HOME_H
/* Where runs are kept, and the ledger's lock.
 *
 * The runtime folder is the first of these that can be had:
 *
 *   $XDG_RUNTIME_DIR/antifreeze, /run/user/UID/antifreeze, /dev/shm/antifreeze-UID,
 *   /tmp/antifreeze-UID
 *
 * Anybody may make names in the last two, so a folder is believed only when it is a real folder (no
 * link), our own, and 0700; one that is not is passed over, with the reason. A run that was started
 * before the login that made /run/user/UID stands in a later one of the list: who looks for runs
 * looks into all that are there. An $XDG_RUNTIME_DIR other than /run/user/UID is a world of its
 * own: nothing else is looked at.
 *
 * The state folder is $XDG_STATE_HOME/antifreeze/runs, or ~/.local/state/antifreeze/runs.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "run.h"

/* The environment, as far as it matters here. NULL or "": not set. */
struct afz_run_roots {
        const char *xdg_runtime, *xdg_state, *home;
        const char *run_user, *shm, *tmp; /* "/run/user", "/dev/shm", "/tmp" */
        uid_t uid;
};

/* The only place that reads the environment. */
struct afz_run_roots afz_run_roots_live(void);

enum { AFZ_RUN_HOMES = 4 };

/* In a runtime folder: the ID of the last run, if that was not recorded. */
#define AFZ_RUN_UNRECORDED "unrecorded"

struct afz_run_home {
        unsigned folders; /* at least 1 */
        struct {
                int fd, lock_fd;
                char path[AFZ_RUN_SOCKET_CAP];
        } folder[AFZ_RUN_HOMES]; /* [0] is where new runs go */
};

/* Opens the runtime folder, making it if `make`; else only those that are there. -ENOENT: none. */
int afz_run_home_open(const struct afz_run_roots *roots, bool make, struct afz_run_home *ret,
                      char *why);

/* Who starts a run holds the ledger for a few ms, or for some hundred until others have made room;
 * many at once queue up. */
#define AFZ_LEDGER_WAIT_NS UINT64_C(10000000000)

/* Takes the ledger's lock of all its folders; -ETIMEDOUT when it is not to be had for so long. */
int afz_run_home_lock(struct afz_run_home *home, uint64_t wait_ns, char *why);

/* Lets go of locks and folders. */
void afz_run_home_done(struct afz_run_home *home);

/* Every file ID.run of the folders; `each` may remove it. Stops when `each` returns not 0, and
 * returns that. */
struct afz_run_entry {
        int home_fd;
        const char *home_path;
        const char *id;
        int fd; /* of the page, read-only; closed afterwards */
};
int afz_run_home_each(const struct afz_run_home *home,
                      int (*each)(void *ctx, const struct afz_run_entry *entry), void *ctx);

/* Opens the state folder "runs", making it (0700, with its parents) if `make`. Returns a
 * descriptor, and its path. */
int afz_run_state_open(const struct afz_run_roots *roots, bool make, char path[AFZ_RUN_PATH_CAP],
                       char *why);

/* For all who explain a failure: printf into why[AFZ_RUN_WHY_CAP], if there is one; returns err. */
int afz_run_why(char *why, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
