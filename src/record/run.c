#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "dir.h"
#include "run_home.h"
#include "run_id.h"
#include "run_remains.h"
#include "run_state.h"

enum { ID_TRIES = 100, FIRST_TURN = 1 };

/* What is being made; `ret` of afz_run_new() once it is whole. */
struct making {
        struct afz_run run;
        struct afz_run_page page;
        const char *run_dir;
        int runs_fd; /* the state folder, or -1 */
        char runs[AFZ_RUN_PATH_CAP];
        bool made_dir, made_link, made_page;
        char *why;
};

/* What may stand in a run's folder: everything else is somebody's work, and stays untouched. */
static bool is_ours(const char *name)
{
        static const char *const ours[] = {
                "verdict.json",    "verdict.txt",     AFZ_RUN_STATE, "verdict.json.new",
                "verdict.txt.new", "run.state.new",   "flight.afz",  "flight.afz.new",
                "report.html",     "report.html.new",
        };
        for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
                if (strcmp(name, ours[i]) == 0)
                        return true;
        return false;
}

/* A folder that was there: empty, or with an ended run of ours in it. */
static int check_old_dir(int dir_fd, const char *path, char *why)
{
        struct afz_run_state state;
        struct afz_dir dir = {.fd = dir_fd};
        struct stat st;
        bool has_state = false;
        int r = fstat(dir_fd, &st) < 0 ? -errno : afz_dir_rewind(&dir);

        if (r == 0 && st.st_uid != geteuid())
                return afz_run_why(why, -EPERM, "%s belongs to another user", path);
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0) {
                if (!is_ours(dir.name))
                        return afz_run_why(why, -ENOTEMPTY,
                                           "%s has other things in it (%s); a run wants a folder "
                                           "of its own",
                                           path, dir.name);
                has_state |= strcmp(dir.name, AFZ_RUN_STATE) == 0;
        }
        if (r < 0)
                return afz_run_why(why, r, "%s: %s", path, strerror(-r));
        if (!has_state)
                return 0;
        int fd = openat(dir_fd, AFZ_RUN_STATE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        bool held = fd >= 0 && afz_run_is_held(fd);
        bool elsewhere = fd >= 0 && afz_run_state_read(fd, &state) == 0 &&
                         !afz_run_state_is_here(&state) && state.outcome.end.how == AFZ_END_RUNNING;
        if (fd >= 0)
                close(fd);
        if (held || elsewhere)
                return afz_run_why(why, -EBUSY, "a run lives in %s%s%s", path,
                                   elsewhere ? ", on " : "", elsewhere ? state.host : "");
        return 0;
}

/* A run that was lost here is recorded as that first: should this one come to nothing, it stands.
 */
static void settle_old(const struct making *m)
{
        struct afz_run_state state;
        int fd = afz_run_state_find(m->run.dir_fd, &state);
        if (fd < 0)
                return;
        close(fd);
        (void)afz_run_settle(m->page.dir, state.page.id, NULL);
}

static int make_given_dir(struct making *m)
{
        char *why = m->why, path[PATH_MAX];
        m->made_dir = mkdir(m->run_dir, 0700) == 0;
        if (!m->made_dir && errno != EEXIST)
                return afz_run_why(why, -errno, "%s: %s", m->run_dir, strerror(errno));
        m->run.dir_fd = open(m->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (m->run.dir_fd < 0)
                return afz_run_why(why, -errno, "%s: %s", m->run_dir, strerror(errno));
        if (!realpath(m->run_dir, path))
                return afz_run_why(why, -errno, "%s: %s", m->run_dir, strerror(errno));
        if (afz_path(m->page.dir, sizeof m->page.dir, "%s", path) < 0)
                return afz_run_why(why, -ENAMETOOLONG, "%s: too long a path", m->run_dir);
        int r = m->made_dir ? 0 : check_old_dir(m->run.dir_fd, m->page.dir, why);
        if (r < 0)
                return r;
        settle_old(m);
        if (!m->made_dir)
                (void)afz_run_id_in_folder(m->run.dir_fd, m->run.replaces);
        /* How it is found by its ID; a run that is not found so is found by its path. */
        if (m->runs_fd >= 0)
                m->made_link = symlinkat(m->page.dir, m->runs_fd, m->page.id) == 0;
        return 0;
}

static int make_usual_dir(struct making *m)
{
        if (m->runs_fd < 0)
                return -ENOENT; /* the reason stands in why */
        if (afz_path(m->page.dir, sizeof m->page.dir, "%s/%s", m->runs, m->page.id) < 0)
                return afz_run_why(m->why, -ENAMETOOLONG, "%s: too long a path", m->runs);
        if (mkdirat(m->runs_fd, m->page.id, 0700) < 0)
                return afz_run_why(m->why, -errno, "%s: %s", m->page.dir, strerror(errno));
        m->made_dir = true;
        m->run.dir_fd = openat(m->runs_fd, m->page.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return m->run.dir_fd < 0
                       ? afz_run_why(m->why, -errno, "%s: %s", m->page.dir, strerror(errno))
                       : 0;
}

static int write_first_state(struct making *m)
{
        struct afz_run_state state;
        struct afz_outcome outcome = {.end = {AFZ_END_RUNNING, -1}};
        int r = afz_run_state_make(m->run.dir_fd);
        if (r >= 0) {
                m->run.state_fd = r;
                afz_run_state_set(&state, &m->page, &outcome, 0);
                r = afz_run_state_write(m->run.state_fd, &state);
        }
        return r < 0 ? afz_run_why(m->why, r, "%s: %s", m->page.dir, strerror(-r)) : 0;
}

static void unmake_dir(struct making *m)
{
        struct afz_run *run = &m->run;
        if (run->state_fd >= 0) {
                unlinkat(run->dir_fd, AFZ_RUN_STATE, 0);
                close(run->state_fd);
        }
        if (run->dir_fd >= 0)
                close(run->dir_fd);
        if (m->made_dir && m->run_dir)
                rmdir(m->run_dir);
        else if (m->made_dir)
                unlinkat(m->runs_fd, m->page.id, AT_REMOVEDIR);
        if (m->made_link)
                unlinkat(m->runs_fd, m->page.id, 0);
        run->dir_fd = run->state_fd = -1;
        m->made_dir = m->made_link = false;
        m->page.dir[0] = '\0';
}

static int make_dir(struct making *m)
{
        int r = m->run_dir ? make_given_dir(m) : make_usual_dir(m);
        if (r == 0)
                r = write_first_state(m);
        if (r < 0)
                unmake_dir(m);
        return r;
}

/* The page under a temporary name, locked and filled, and then under its own. */
static int make_page(struct making *m, const struct afz_run_home *home)
{
        struct afz_run *run = &m->run;
        const char *path = home->folder[0].path;
        struct afz_run_name name = afz_run_name(m->page.id, ".run");
        struct afz_run_name temporary = afz_run_name(m->page.id, ".new");
        int r = 0, at = home->folder[0].fd;

        run->home_fd = fcntl(at, F_DUPFD_CLOEXEC, 3);
        if (run->home_fd < 0)
                return afz_run_why(m->why, -errno, "%s: %s", path, strerror(errno));
        run->page_fd = openat(at, temporary.text,
                              O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (run->page_fd < 0)
                return afz_run_why(m->why, -errno, "%s: %s", path, strerror(errno));
        m->made_page = true;
        if (flock(run->page_fd, LOCK_EX | LOCK_NB) < 0)
                r = -errno;
        /* Written, not only made long: a full tmpfs says so now, and not as SIGBUS in the tick. */
        if (r == 0)
                r = afz_write_all(run->page_fd, &m->page, sizeof m->page);
        if (r == 0) {
                run->page = mmap(NULL, sizeof m->page, PROT_READ | PROT_WRITE, MAP_SHARED,
                                 run->page_fd, 0);
                if (run->page == MAP_FAILED)
                        r = -errno;
        }
        if (r == 0 && renameat(at, temporary.text, at, name.text) < 0)
                r = -errno;
        if (r < 0)
                return afz_run_why(m->why, r, "%s: %s", path, strerror(-r));
        afz_path(run->socket, sizeof run->socket, "%s/%s", path,
                 afz_run_name(m->page.id, ".sock").text);
        afz_path(run->page_path, sizeof run->page_path, "%s/%s", path, name.text);
        return 0;
}

/* Nobody else sees this one; the guard needs not know. */
static int make_private_page(struct making *m)
{
        struct afz_run *run = &m->run;
        if (run->page && run->page != MAP_FAILED)
                munmap(run->page, sizeof m->page);
        if (m->made_page) {
                unlinkat(run->home_fd, afz_run_name(m->page.id, ".new").text, 0);
                unlinkat(run->home_fd, afz_run_name(m->page.id, ".run").text, 0);
        }
        if (run->page_fd >= 0)
                close(run->page_fd);
        if (run->home_fd >= 0)
                close(run->home_fd);
        run->page_fd = run->home_fd = -1;
        run->socket[0] = run->page_path[0] = '\0';
        run->page = mmap(NULL, sizeof m->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                         -1, 0);
        if (run->page == MAP_FAILED)
                return afz_run_why(m->why, -errno, "a page of memory: %s", strerror(errno));
        *run->page = m->page;
        return 0;
}

static bool id_is_taken(const struct making *m, const struct afz_run_home *home)
{
        struct stat st;
        if (m->runs_fd >= 0 && fstatat(m->runs_fd, m->page.id, &st, AT_SYMLINK_NOFOLLOW) == 0)
                return true;
        for (unsigned i = 0; home && i < home->folders; i++)
                if (fstatat(home->folder[i].fd, afz_run_name(m->page.id, ".run").text, &st,
                            AT_SYMLINK_NOFOLLOW) == 0)
                        return true;
        return false;
}

static void set_first(struct making *m, const struct afz_run_page *first,
                      const struct afz_run_home *home)
{
        m->page = *first;
        m->page.magic = afz_run_page_magic;
        m->page.dir[0] = '\0';
        afz_boot_id(m->page.boot_id);
        for (int i = 0; i < ID_TRIES; i++) {
                uint64_t now = afz_clock_ns(CLOCK_REALTIME);
                afz_run_id_make(now, m->page.id);
                if (m->page.started_s == 0)
                        m->page.started_s = (int64_t)(now / AFZ_NS_PER_S);
                if (!id_is_taken(m, home))
                        break;
        }
        if (m->page.started_ns == 0)
                m->page.started_ns = afz_clock_ns(CLOCK_BOOTTIME);
        if (m->page.tick_ns == 0)
                m->page.tick_ns = m->page.started_ns;
}

int afz_run_new(const char *run_dir, const struct afz_run_page *first, struct afz_run *ret,
                char *why)
{
        struct afz_run_roots roots = afz_run_roots_live();
        struct afz_run_home home = {0};
        struct making m = {
                .run = {.dir_fd = -1, .page_fd = -1, .state_fd = -1, .home_fd = -1},
                .run_dir = run_dir,
                .why = why,
        };

        if (why)
                why[0] = '\0';
        bool homeless = afz_run_home_open(&roots, true, &home, why) < 0;
        m.runs_fd = afz_run_state_open(&roots, true, m.runs, run_dir ? NULL : why);
        set_first(&m, first, &home);
        int dir_r = make_dir(&m), r = run_dir ? dir_r : 0;
        if (r == 0 && !homeless)
                homeless = make_page(&m, &home) < 0;
        if (r == 0 && homeless)
                r = make_private_page(&m);
        if (r < 0 && m.run.dir_fd >= 0)
                unmake_dir(&m);
        if (m.runs_fd >= 0)
                close(m.runs_fd);
        afz_run_home_done(&home);
        if (r < 0)
                return r;
        *ret = m.run;
        ret->made_dir = m.made_dir;
        return homeless || dir_r < 0;
}

/* Guard and front share their descriptors and so their locks; this one is for one writer. */
static int lock_writers(const struct afz_run *run)
{
        int fd = openat(run->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
                (void)flock(fd, LOCK_EX); /* where there are no locks, there is no better way */
        return fd;
}

/* What the run before left in this folder would be taken for this one's. Our own recording may have
 * begun already. */
static void remove_older(const struct afz_run *run)
{
        static const char *const names[] = {"flight.afz", "report.html"};
        struct stat st;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (fstatat(run->dir_fd, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                    (i > 0 || st.st_mtime < run->page->started_s))
                        unlinkat(run->dir_fd, names[i], 0);
}

static int write_locked(const struct afz_run *run, const struct afz_outcome *outcome)
{
        struct afz_run_state state, before = {0};
        uint64_t now = afz_clock_ns(CLOCK_BOOTTIME), started = run->page->started_ns;
        bool known = afz_run_state_read(run->state_fd, &before) == 0;
        bool over = outcome->end.how != AFZ_END_RUNNING;
        uint64_t duration_ns = now > started ? now - started : 0;

        if (known && before.outcome.end.how != AFZ_END_RUNNING) {
                /* The end was told before; who comes late may know why, but not another end. */
                if (!over)
                        return 0;
                if (!afz_run_is_better(&before.outcome, outcome))
                        return afz_run_pair_finish(run->dir_fd, &before);
                duration_ns = before.duration_ns;
        }
        afz_run_state_set(&state, run->page, outcome, duration_ns);
        int r = afz_run_state_write(run->state_fd, &state);
        if (r < 0)
                return r;
        if (before.turn == FIRST_TURN && !run->made_dir)
                remove_older(run);
        if (!over)
                return afz_run_pair_write(run->dir_fd, &state, false);
        if (fdatasync(run->state_fd) < 0)
                return -errno;
        return afz_run_pair_finish(run->dir_fd, &state);
}

int afz_run_write(const struct afz_run *run, const struct afz_outcome *outcome)
{
        if (run->dir_fd < 0)
                return -ENOENT;
        int lock = lock_writers(run);
        int r = write_locked(run, outcome);
        if (lock >= 0)
                close(lock);
        return r;
}

int afz_run_sync(int dir_fd)
{
        int fd = openat(dir_fd, AFZ_RUN_STATE,
                        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno; /* the end is recorded, and synced */
        int r = fdatasync(fd) < 0 ? -errno : 0;
        close(fd);
        return r;
}

void afz_run_leave(struct afz_run *run)
{
        int *fd[] = {&run->dir_fd, &run->page_fd, &run->state_fd, &run->home_fd};
        for (size_t i = 0; i < sizeof fd / sizeof fd[0]; i++) {
                if (*fd[i] >= 0)
                        close(*fd[i]);
                *fd[i] = -1;
        }
        if (run->page)
                munmap(run->page, sizeof *run->page);
        run->page = NULL;
}

/* Nothing was ever written: it came to nothing (--dry-run, a command that is not there). */
static void remove_unused_dir(const struct afz_run *run)
{
        struct afz_run_roots roots = afz_run_roots_live();
        struct afz_run_state state;
        char runs[AFZ_RUN_PATH_CAP];

        if (run->state_fd < 0 || afz_run_state_read(run->state_fd, &state) < 0 ||
            state.turn != FIRST_TURN)
                return;
        unlinkat(run->dir_fd, AFZ_RUN_STATE, 0);
        if (run->made_dir)
                rmdir(state.page.dir);
        int runs_fd = afz_run_state_open(&roots, false, runs, NULL);
        if (runs_fd < 0)
                return;
        unlinkat(runs_fd, state.page.id, 0); /* the link, if there is one */
        close(runs_fd);
}

/* One line, in the runtime folder: the newest run that left no record. */
static void note_unrecorded(const struct afz_run *run)
{
        int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
        int fd = openat(run->home_fd, AFZ_RUN_UNRECORDED, flags, 0600);
        if (fd < 0)
                return;
        (void)afz_write_all(fd, run->page->id, AFZ_RUN_ID_LENGTH);
        close(fd);
}

void afz_run_done(struct afz_run *run)
{
        bool ran = run->home_fd >= 0 && run->page->root_pid > 0;
        if (ran && run->dir_fd < 0)
                note_unrecorded(run);
        else if (ran)
                unlinkat(run->home_fd, AFZ_RUN_UNRECORDED, 0);
        if (run->home_fd >= 0) {
                unlinkat(run->home_fd, afz_run_name(run->page->id, ".sock").text, 0);
                unlinkat(run->home_fd, afz_run_name(run->page->id, ".probe").text, 0);
                unlinkat(run->home_fd, afz_run_name(run->page->id, ".run").text, 0);
        }
        remove_unused_dir(run);
        afz_run_leave(run);
}
