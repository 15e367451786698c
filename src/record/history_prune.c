/* Removes runs that are over. What is removed is held by descriptors and never by a path, so that
 * nobody can put a link in the way. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "count_of.h"
#include "dir.h"
#include "history_own.h"
#include "run_home.h"
#include "run_state.h"

/* How the names of our files begin; some have a ".new" or a number behind. */
static const char *const ours[] = {"verdict.json", "verdict.txt", "run.state", "flight.afz",
                                   "report.html"};

static bool is_ours(int dir_fd, const char *name, struct stat *ret)
{
        bool known = false;
        for (size_t i = 0; i < AFZ_COUNT_OF(ours); i++) {
                size_t n = strlen(ours[i]);
                known |= strncmp(name, ours[i], n) == 0 && (name[n] == '\0' || name[n] == '.');
        }
        return known && fstatat(dir_fd, name, ret, AT_SYMLINK_NOFOLLOW) == 0 &&
               (S_ISREG(ret->st_mode) || S_ISLNK(ret->st_mode));
}

/* Whether there is nothing but ours; how much room it takes. */
static int look(int dir_fd, uint64_t *ret_bytes, char *why)
{
        struct afz_dir dir = {.fd = dir_fd};
        struct stat st;
        uint64_t bytes = 0;
        int r = afz_dir_rewind(&dir);
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0) {
                if (!is_ours(dir_fd, dir.name, &st))
                        return afz_run_why(why, -ENOTEMPTY, "'%.100s' in it is not ours", dir.name);
                bytes += (uint64_t)st.st_blocks * 512;
        }
        *ret_bytes = bytes;
        return r < 0 ? afz_run_why(why, r, "%s", strerror(-r)) : 0;
}

/* A folder may skip entries while they are removed: it is listed until it is empty. */
static int empty(int dir_fd, char *why)
{
        struct afz_dir dir = {.fd = dir_fd};
        struct stat st;
        for (bool any = true; any;) {
                any = false;
                int r = afz_dir_rewind(&dir);
                while (r >= 0 && (r = afz_dir_next(&dir)) > 0) {
                        if (!is_ours(dir_fd, dir.name, &st))
                                return afz_run_why(why, -ENOTEMPTY, "'%.100s' in it is not ours",
                                                   dir.name);
                        if (unlinkat(dir_fd, dir.name, 0) < 0)
                                return afz_run_why(why, -errno, "%s", strerror(errno));
                        any = true;
                }
                if (r < 0)
                        return afz_run_why(why, r, "%s", strerror(-r));
        }
        return 0;
}

/* -EBUSY: it lives, or may live where we cannot see it. */
static int check_over(int dir_fd)
{
        struct afz_run_state state;
        int fd = openat(dir_fd, AFZ_RUN_STATE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return 0;
        /* One that another version writes cannot be read, but is held while it lives. */
        bool elsewhere = afz_run_state_read(fd, &state) == 0 && !afz_run_state_is_here(&state) &&
                         state.outcome.end.how == AFZ_END_RUNNING;
        bool over = !afz_run_is_held(fd) && !elsewhere;
        close(fd);
        return over ? 0 : -EBUSY;
}

static int remove_folder(int runs_fd, const char *id, uint64_t *ret_bytes, char *why)
{
        struct stat st;
        int dir_fd = openat(runs_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir_fd < 0)
                return afz_run_why(why, -errno, "%s", strerror(errno));
        int r = fstat(dir_fd, &st) < 0 ? -errno : 0;
        if (r == 0 && st.st_uid != geteuid())
                r = afz_run_why(why, -EPERM, "it belongs to another user");
        if (r == 0)
                r = check_over(dir_fd);
        if (r == 0)
                r = look(dir_fd, ret_bytes, why);
        if (r == 0)
                r = empty(dir_fd, why);
        close(dir_fd);
        if (r == 0 && unlinkat(runs_fd, id, AT_REMOVEDIR) < 0)
                r = afz_run_why(why, -errno, "%s", strerror(errno));
        return r;
}

static int remove_entry(int runs_fd, const char *id, struct afz_pruned *ret, char *why)
{
        struct stat st;
        uint64_t bytes = 0;
        int r;
        if (fstatat(runs_fd, id, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : afz_run_why(why, -errno, "%s", strerror(errno));
        if (S_ISLNK(st.st_mode)) {
                r = unlinkat(runs_fd, id, 0) < 0 ? afz_run_why(why, -errno, "%s", strerror(errno))
                                                 : 0;
                ret->links += r == 0;
        } else if (S_ISDIR(st.st_mode)) {
                r = remove_folder(runs_fd, id, &bytes, why);
        } else {
                r = afz_run_why(why, -ENOTDIR, "it is not a folder");
        }
        if (r == 0) {
                ret->runs++;
                ret->bytes += bytes;
        }
        return r;
}

/* While it is removed nobody can begin a run there (--run-dir). */
static int remove_locked(int runs_fd, const char *id, struct afz_pruned *ret, char *why)
{
        struct afz_run_roots roots = afz_run_roots_live();
        struct afz_run_home home;
        if (afz_run_home_open(&roots, false, &home, NULL) < 0)
                return remove_entry(runs_fd, id, ret, why);
        int r = afz_run_home_lock(&home, AFZ_LEDGER_WAIT_NS, why);
        if (r == 0)
                r = remove_entry(runs_fd, id, ret, why);
        afz_run_home_done(&home);
        return r;
}

static bool is_over(const struct afz_history_run *run)
{
        return !run || (run->life != AFZ_HISTORY_LIVE && run->life != AFZ_HISTORY_ELSEWHERE);
}

static int64_t end_time(const struct afz_history_run *run, const char *id)
{
        if (!run)
                return afz_history_id_time(id);
        return run->started_s + (int64_t)(run->duration_ns / AFZ_NS_PER_S);
}

int afz_history_prune(struct afz_history *h, const struct afz_prune_rule *rule,
                      struct afz_pruned *ret)
{
        struct afz_pruned done = {0};
        size_t kept = 0;
        for (size_t i = 0; h->runs_fd >= 0 && i < h->count; i++) {
                const struct afz_history_run *run = afz_history_get(h, i);
                const char *id = h->row[i].id;
                char why[AFZ_RUN_WHY_CAP] = "";
                if (!is_over(run))
                        continue;
                bool stays = rule->by_age ? end_time(run, id) >= rule->before_s : kept < rule->keep;
                if (stays) {
                        kept += run != NULL;
                        continue;
                }
                int r = remove_locked(h->runs_fd, id, &done, why);
                if (r < 0 && r != -EBUSY && done.refused++ == 0) {
                        memcpy(done.first_refused, id, sizeof done.first_refused);
                        memcpy(done.why, why, sizeof done.why);
                }
        }
        *ret = done;
        return 0;
}
