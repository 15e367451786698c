#include "run_home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "dir.h"
#include "run_id.h"

/* flock() has no deadline of its own. */
#define LEDGER_POLL_NS (2 * AFZ_NS_PER_MS)

/* "/20261115-063745-kxqz.sock" */
enum { SOCKET_NAME = 1 + AFZ_RUN_ID_LENGTH + 5 };

int afz_run_why(char *why, int err, const char *format, ...)
{
        va_list args;
        char text[2 * AFZ_RUN_PATH_CAP];

        if (!why)
                return err;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        afz_span_copy(afz_span_str(text), why, AFZ_RUN_WHY_CAP);
        return err;
}

struct afz_run_roots afz_run_roots_live(void)
{
        return (struct afz_run_roots){
                .xdg_runtime = getenv("XDG_RUNTIME_DIR"),
                .xdg_state = getenv("XDG_STATE_HOME"),
                .home = getenv("HOME"),
                .run_user = "/run/user",
                .shm = "/dev/shm",
                .tmp = "/tmp",
                .uid = geteuid(),
        };
}

/* A folder to be ours alone, in a folder `parent` where others may make names, too. */
static int open_own(const char *parent, const char *name, uid_t uid, bool make, int *ret, char *why)
{
        struct stat st;
        int at = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (at < 0)
                return afz_run_why(why, -errno, "%s: %s", parent, strerror(errno));
        if (make && mkdirat(at, name, 0700) < 0 && errno != EEXIST) {
                int err = errno;
                close(at);
                return afz_run_why(why, -err, "%s/%s: %s", parent, name, strerror(err));
        }
        int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r = fd < 0 ? -errno : 0;
        close(at);
        if (r == -ENOTDIR || r == -ELOOP)
                return afz_run_why(why, -ENOTDIR, "%s/%s is not a folder", parent, name);
        if (r < 0)
                return afz_run_why(why, r, "%s/%s: %s", parent, name, strerror(-r));
        if (fstat(fd, &st) < 0)
                r = afz_run_why(why, -errno, "%s/%s: %s", parent, name, strerror(errno));
        else if (st.st_uid != uid)
                r = afz_run_why(why, -EPERM, "%s/%s belongs to another user", parent, name);
        else if ((st.st_mode & 07777) != 0700)
                r = afz_run_why(why, -EPERM, "%s/%s has mode %04o instead of 0700", parent, name,
                                (unsigned)st.st_mode & 07777);
        if (r < 0)
                close(fd);
        else
                *ret = fd;
        return r;
}

/* A folder of a session: its owner must be us, and nobody else may write there. */
static int check_session(const char *path, uid_t uid, char *why)
{
        struct stat st;
        if (path[0] != '/')
                return afz_run_why(why, -EINVAL, "XDG_RUNTIME_DIR is not an absolute path");
        if (stat(path, &st) < 0)
                return afz_run_why(why, -errno, "%s: %s", path, strerror(errno));
        if (!S_ISDIR(st.st_mode))
                return afz_run_why(why, -ENOTDIR, "%s is not a folder", path);
        if (st.st_uid != uid)
                return afz_run_why(why, -EPERM, "%s belongs to another user", path);
        if (st.st_mode & 022)
                return afz_run_why(why, -EPERM, "others may write to %s", path);
        return 0;
}

/* One row of the list in the header. */
static int add_home(const struct afz_run_roots *roots, struct afz_run_home *home,
                    const char *parent, const char *name, bool session, bool make, char *why)
{
        char *path = home->folder[home->folders].path;
        size_t cap = sizeof home->folder[0].path;
        int fd = -1, r = session ? check_session(parent, roots->uid, why) : 0;

        if (r == 0 && (size_t)snprintf(path, cap, "%s/%s", parent, name) + SOCKET_NAME >= cap)
                r = afz_run_why(why, -ENAMETOOLONG, "%s: the path is too long for a socket",
                                parent);
        if (r == 0)
                r = open_own(parent, name, roots->uid, make, &fd, why);
        if (r < 0)
                return r;
        home->folder[home->folders].fd = fd;
        home->folder[home->folders].lock_fd = -1;
        home->folders++;
        return 0;
}

int afz_run_home_open(const struct afz_run_roots *roots, bool make, struct afz_run_home *ret,
                      char *why)
{
        const char *xdg = roots->xdg_runtime && roots->xdg_runtime[0] ? roots->xdg_runtime : NULL;
        struct afz_run_home home = {0};
        char user[AFZ_RUN_SOCKET_CAP], shared[32];
        char reason[AFZ_RUN_WHY_CAP] = "", first[AFZ_RUN_WHY_CAP] = "";

        snprintf(user, sizeof user, "%.64s/%u", roots->run_user, (unsigned)roots->uid);
        snprintf(shared, sizeof shared, "antifreeze-%u", (unsigned)roots->uid);
        const struct {
                const char *parent, *name;
                bool session;
        } row[] = {
                {xdg && strcmp(xdg, user) != 0 ? xdg : NULL, "antifreeze", true},
                {user, "antifreeze", true},
                {roots->shm, shared, false},
                {roots->tmp, shared, false},
        };
        for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
                if (!row[i].parent)
                        continue;
                /* Made is only the first; the later ones are looked into if they are there. */
                int r = add_home(roots, &home, row[i].parent, row[i].name, row[i].session,
                                 make && home.folders == 0, reason);
                if (r < 0 && r != -ENOENT && !first[0])
                        memcpy(first, reason, sizeof first);
                /* A runtime folder of one's own is a world of its own, also before anything is in
                 * it. */
                if (i == 0 && (r == 0 || (r == -ENOENT &&
                                          check_session(row[i].parent, roots->uid, NULL) == 0)))
                        break;
        }
        if (home.folders == 0)
                return afz_run_why(why, -ENOENT, "no runtime folder: %s",
                                   first[0] ? first : reason);
        *ret = home;
        return 0;
}

static int lock_until(int fd, uint64_t until)
{
        while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK && errno != EINTR)
                        return -errno;
                if (afz_clock_ns(CLOCK_MONOTONIC) >= until)
                        return -ETIMEDOUT;
                nanosleep(&(struct timespec){.tv_nsec = LEDGER_POLL_NS}, NULL);
        }
        return 0;
}

static void unlock(struct afz_run_home *home)
{
        for (unsigned i = 0; i < home->folders; i++) {
                if (home->folder[i].lock_fd >= 0)
                        close(home->folder[i].lock_fd);
                home->folder[i].lock_fd = -1;
        }
}

int afz_run_home_lock(struct afz_run_home *home, uint64_t wait_ns, char *why)
{
        uint64_t until = afz_clock_ns(CLOCK_MONOTONIC) + wait_ns;

        for (unsigned i = 0; i < home->folders; i++) {
                const char *path = home->folder[i].path;
                int fd = openat(home->folder[i].fd, "ledger.lock",
                                O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
                int r = fd < 0 ? -errno : lock_until(fd, until);
                home->folder[i].lock_fd = fd;
                if (r == 0)
                        continue;
                unlock(home);
                if (r == -ETIMEDOUT)
                        return afz_run_why(
                                why, r, "another start has held %s/ledger.lock for too long", path);
                return afz_run_why(why, r, "%s/ledger.lock: %s", path, strerror(-r));
        }
        return 0;
}

void afz_run_home_done(struct afz_run_home *home)
{
        unlock(home);
        for (unsigned i = 0; i < home->folders; i++)
                close(home->folder[i].fd);
        home->folders = 0;
}

/* Whether a name is "ID.run"; the ID is copied. */
static bool page_id(const char *name, char ret[AFZ_RUN_ID_CAP])
{
        struct afz_span s = afz_span_str(name);
        if (s.n != AFZ_RUN_ID_LENGTH + 4 || !afz_span_ends(s, ".run"))
                return false;
        memcpy(ret, name, AFZ_RUN_ID_LENGTH);
        ret[AFZ_RUN_ID_LENGTH] = '\0';
        return afz_run_id_is(ret);
}

int afz_run_home_each(const struct afz_run_home *home,
                      int (*each)(void *ctx, const struct afz_run_entry *entry), void *ctx)
{
        for (unsigned i = 0; i < home->folders; i++) {
                struct afz_dir dir = {.fd = home->folder[i].fd};
                char id[AFZ_RUN_ID_CAP];
                int r = afz_dir_rewind(&dir);
                while (r >= 0 && (r = afz_dir_next(&dir)) > 0) {
                        if (!page_id(dir.name, id))
                                continue;
                        int fd = openat(dir.fd, dir.name,
                                        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
                        if (fd < 0)
                                continue;
                        int done = each(
                                ctx, &(struct afz_run_entry){dir.fd, home->folder[i].path, id, fd});
                        close(fd);
                        if (done != 0)
                                return done;
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

/* mkdir -p below `at` (taken over), 0700 for what is made. Opens the last. */
static int open_below(int at, const char *path, bool make)
{
        char name[256];
        while (*path) {
                size_t n = strcspn(path, "/");
                if (n >= sizeof name) {
                        close(at);
                        return -ENAMETOOLONG;
                }
                memcpy(name, path, n);
                name[n] = '\0';
                path += n + (path[n] == '/');
                if (n == 0)
                        continue;
                if (make && mkdirat(at, name, 0700) < 0 && errno != EEXIST) {
                        int err = errno;
                        close(at);
                        return -err;
                }
                int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                int err = errno;
                close(at);
                if (fd < 0)
                        return -err;
                at = fd;
        }
        return at;
}

int afz_run_state_open(const struct afz_run_roots *roots, bool make, char path[AFZ_RUN_PATH_CAP],
                       char *why)
{
        const char *base = roots->xdg_state, *below = "antifreeze/runs";
        if (!base || base[0] != '/') {
                base = roots->home;
                below = ".local/state/antifreeze/runs";
        }
        if (!base || base[0] != '/')
                return afz_run_why(why, -ENOENT, "no state folder: HOME is not set");
        if (afz_path(path, AFZ_RUN_PATH_CAP, "%s/%s", base, below) < 0)
                return afz_run_why(why, -ENAMETOOLONG, "no state folder: HOME is too long a path");
        int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : open_below(fd, path, make);
        if (r < 0)
                return afz_run_why(why, r, "%s: %s", path, strerror(-r));
        return r;
}
