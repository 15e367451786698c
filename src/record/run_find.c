#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "dir.h"
#include "env.h"
#include "flight_file.h"
#include "quantity.h"
#include "run.h"
#include "run_home.h"
#include "run_id.h"
#include "run_remains.h"
#include "run_state.h"

/* What is looked for, and the best so far. */
struct search {
        const char *call;           /* how it is called; "": the newest */
        uint64_t pid;               /* not 0: this process's */
        char below[AFZ_RUN_ID_CAP]; /* only what sorts before it; "": all */
        char id[AFZ_RUN_ID_CAP];
        bool several;
};

static void offer(struct search *s, const char *id)
{
        if (!afz_run_id_fits(id, s->call) || strcmp(id, s->id) == 0)
                return;
        if (s->below[0] && strcmp(id, s->below) >= 0)
                return;
        s->several |= s->id[0] != '\0';
        if (strcmp(id, s->id) > 0)
                snprintf(s->id, sizeof s->id, "%s", id);
}

static int offer_page(void *ctx, const struct afz_run_entry *entry)
{
        struct search *s = ctx;
        struct afz_run_page page;
        if (s->pid == 0) {
                offer(s, entry->id);
        } else if (afz_run_page_read(entry->fd, &page) == 0 && afz_run_is_held(entry->fd) &&
                   (page.front_pid == (int32_t)s->pid || page.guard_pid == (int32_t)s->pid ||
                    page.root_pid == (int32_t)s->pid)) {
                offer(s, entry->id);
        }
        return 0;
}

static void offer_folders(struct search *s, int runs_fd)
{
        struct afz_dir dir = {.fd = runs_fd};
        int r = runs_fd < 0 ? -1 : afz_dir_rewind(&dir);
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0)
                if (afz_run_id_is(dir.name))
                        offer(s, dir.name);
}

/* The page of an ID; fills in what it says. */
static int take_page(void *ctx, const struct afz_run_entry *entry)
{
        struct afz_run_ref *ref = ctx;
        struct afz_run_page page;
        if (strcmp(entry->id, ref->id) != 0)
                return 0;
        afz_path(ref->page_path, sizeof ref->page_path, "%s/%s", entry->home_path,
                 afz_run_name(entry->id, ".run").text);
        afz_path(ref->socket, sizeof ref->socket, "%s/%s", entry->home_path,
                 afz_run_name(entry->id, ".sock").text);
        ref->live = afz_run_is_held(entry->fd);
        if (!ref->dir[0] && afz_run_page_read(entry->fd, &page) == 0)
                memcpy(ref->dir, page.dir, sizeof ref->dir);
        return 1;
}

/* What a run's folder says of its life. */
enum life { OVER, LEFT, HELD };

/* Which run stands in this folder, and how. -ENOENT: none. */
static int look_into(const char *path, char ret_id[AFZ_RUN_ID_CAP], enum life *ret_life)
{
        struct afz_run_state state;
        int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0)
                return errno == EACCES ? -EACCES : -ENOENT;
        bool known = true;
        enum life life = OVER;
        int fd = afz_run_state_find(dir_fd, &state);
        if (fd >= 0) {
                memcpy(ret_id, state.page.id, AFZ_RUN_ID_CAP);
                life = afz_run_is_held(fd) ? HELD : LEFT;
                close(fd);
        } else {
                known = afz_run_id_in_folder(dir_fd, ret_id);
        }
        close(dir_fd);
        *ret_life = life;
        return known ? 0 : -ENOENT;
}

/* A folder that says that the run is over knows best: its guard may still be clearing up. Else
 * either lock will do. */
static void set_live(struct afz_run_ref *ref, enum life life)
{
        ref->live = life != OVER && (ref->live || life == HELD);
}

/* A recording by its name stands for the folder that it is in. */
static void leave_recording(char *path)
{
        char *name = strrchr(path, '/');
        if (name && name != path && strcmp(name + 1, AFZ_FLIGHT_NAME) == 0)
                *name = '\0';
}

static int find_path(const char *text, const struct afz_run_home *home, struct afz_run_ref *ref)
{
        char path[PATH_MAX];
        enum life life;
        if (!realpath(text, path))
                return errno == EACCES ? -EACCES : -ENOENT;
        leave_recording(path);
        if (afz_path(ref->dir, sizeof ref->dir, "%s", path) < 0)
                return -ENAMETOOLONG;
        int r = look_into(ref->dir, ref->id, &life);
        if (r < 0)
                return r;
        if (home)
                afz_run_home_each(home, take_page, ref);
        set_live(ref, life);
        return 0;
}

/* The folder of an ID: what its page says, or runs/ID, or where the link of that name leads. One
 * that was given to a later run is not this one's any more. */
static void take_folder(const char *runs, struct afz_run_ref *ref)
{
        char at[AFZ_RUN_PATH_CAP + AFZ_RUN_ID_CAP], path[PATH_MAX], id[AFZ_RUN_ID_CAP];
        enum life life;
        if (ref->dir[0])
                snprintf(at, sizeof at, "%s", ref->dir);
        else
                snprintf(at, sizeof at, "%s/%s", runs, ref->id);
        ref->dir[0] = '\0';
        if (!realpath(at, path) || strlen(path) >= sizeof ref->dir)
                return;
        if (look_into(path, id, &life) < 0 || strcmp(id, ref->id) != 0)
                return;
        memcpy(ref->dir, path, strlen(path) + 1);
        set_live(ref, life);
}

static int search(struct search *s, const struct afz_run_home *home, int runs_fd)
{
        s->id[0] = '\0';
        s->several = false;
        if (home)
                afz_run_home_each(home, offer_page, s);
        if (s->pid == 0)
                offer_folders(s, runs_fd);
        if (!s->id[0])
                return -ENOENT;
        return s->several && s->call[0] ? -ENOTUNIQ : 0;
}

static int find_id(struct search *s, const struct afz_run_home *home, int runs_fd, const char *runs,
                   struct afz_run_ref *ref)
{
        for (;;) {
                int r = search(s, home, runs_fd);
                if (r < 0)
                        return r;
                *ref = (struct afz_run_ref){0};
                memcpy(ref->id, s->id, sizeof ref->id);
                if (home)
                        afz_run_home_each(home, take_page, ref);
                if (runs_fd >= 0 || ref->dir[0])
                        take_folder(runs, ref);
                if (ref->dir[0] || ref->page_path[0])
                        return 0;
                /* A name without a run: its --run-dir was removed, or its start was cut off. */
                memcpy(s->below, s->id, sizeof s->below);
        }
}

int afz_run_find(const char *text, struct afz_run_ref *ret)
{
        struct afz_run_roots roots = afz_run_roots_live();
        struct afz_run_ref ref = {0};
        struct afz_run_home folders;
        struct search s = {.call = text ? text : ""};
        char runs[AFZ_RUN_PATH_CAP];
        struct stat st;

        if (text && !text[0])
                return -ENOENT;
        struct afz_run_home *home =
                afz_run_home_open(&roots, false, &folders, NULL) == 0 ? &folders : NULL;
        int r, runs_fd = afz_run_state_open(&roots, false, runs, NULL);
        if (text && afz_parse_u64(text, &s.pid) == 0)
                s.call = "";
        if (text && strchr(text, '/'))
                r = find_path(text, home, &ref);
        else if (s.pid > INT32_MAX || (s.pid == 0 && text && !s.call[0]))
                r = -ENOENT;
        else
                r = find_id(&s, home, runs_fd, runs, &ref);
        if (r == -ENOENT && text && s.pid == 0 && stat(text, &st) == 0 && S_ISDIR(st.st_mode))
                r = find_path(text, home, &ref);
        if (runs_fd >= 0)
                close(runs_fd);
        if (home)
                afz_run_home_done(home);
        if (r == 0)
                *ret = ref;
        return r;
}

bool afz_run_unrecorded(char ret_id[AFZ_RUN_ID_CAP])
{
        struct afz_run_roots roots = afz_run_roots_live();
        struct afz_run_home home;
        bool found = false;
        if (afz_run_home_open(&roots, false, &home, NULL) < 0)
                return false;
        for (unsigned i = 0; i < home.folders; i++) {
                char id[AFZ_RUN_ID_CAP];
                int fd = openat(home.folder[i].fd, AFZ_RUN_UNRECORDED,
                                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
                ssize_t n = fd < 0 ? -1 : afz_fd_read_head(fd, id, sizeof id - 1);
                if (fd >= 0)
                        close(fd);
                id[n > 0 ? n : 0] = '\0';
                if (!afz_run_id_is(id) || (found && strcmp(id, ret_id) < 0))
                        continue;
                memcpy(ret_id, id, sizeof id);
                found = true;
        }
        afz_run_home_done(&home);
        return found;
}
