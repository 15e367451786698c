#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dir.h"
#include "fds.h"
#include "history_own.h"
#include "run_home.h"
#include "run_id.h"
#include "run_state.h"

const char *afz_history_life_name(enum afz_history_life life)
{
        static const char *const name[AFZ_HISTORY_LIVES] = {
                [AFZ_HISTORY_ENDED] = "ended",     [AFZ_HISTORY_LIVE] = "live",
                [AFZ_HISTORY_LOST] = "lost",       [AFZ_HISTORY_ELSEWHERE] = "elsewhere",
                [AFZ_HISTORY_DAMAGED] = "damaged",
        };
        return name[life];
}

static int add(struct afz_history *h, const char *id, bool has_page)
{
        if (h->count == h->cap) {
                size_t cap = h->cap ? 2 * h->cap : 64;
                struct afz_history_row *grown = reallocarray(h->row, cap, sizeof *grown);
                if (!grown)
                        return -ENOMEM;
                h->row = grown;
                h->cap = cap;
        }
        struct afz_history_row *row = &h->row[h->count++];
        *row = (struct afz_history_row){.has_page = has_page};
        snprintf(row->id, sizeof row->id, "%s", id);
        return 0;
}

static int add_page(void *ctx, const struct afz_run_entry *entry)
{
        return add(ctx, entry->id, true);
}

static int add_folders(struct afz_history *h)
{
        struct afz_dir dir = {.fd = h->runs_fd};
        int r = afz_dir_rewind(&dir);
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0)
                if (afz_run_id_is(dir.name) && add(h, dir.name, false) < 0)
                        return -ENOMEM;
        return r;
}

/* IDs sort by time; of one that has both folder and page, the row with the page comes first. */
static int newest_first(const void *a, const void *b)
{
        const struct afz_history_row *x = a, *y = b;
        int order = strcmp(y->id, x->id);
        return order ? order : (int)y->has_page - (int)x->has_page;
}

static void sort(struct afz_history *h)
{
        size_t kept = 0;
        if (h->count == 0)
                return;
        qsort(h->row, h->count, sizeof *h->row, newest_first);
        for (size_t i = 1; i < h->count; i++)
                if (strcmp(h->row[i].id, h->row[kept].id) != 0)
                        h->row[++kept] = h->row[i];
        h->count = kept + 1;
}

int afz_history_new(struct afz_history **ret)
{
        struct afz_run_roots roots = afz_run_roots_live();
        char path[AFZ_RUN_PATH_CAP];
        struct afz_run_home home;
        struct afz_history *h = calloc(1, sizeof *h);
        int r = 0;
        if (!h)
                return -ENOMEM;
        h->runs_fd = afz_run_state_open(&roots, false, path, NULL);
        if (h->runs_fd >= 0)
                r = add_folders(h);
        if (r >= 0 && afz_run_home_open(&roots, false, &home, NULL) == 0) {
                r = afz_run_home_each(&home, add_page, h);
                afz_run_home_done(&home);
        }
        if (r < 0) {
                afz_history_free(h);
                return r;
        }
        sort(h);
        *ret = h;
        return 0;
}

static void free_run(struct afz_history_run *run)
{
        if (!run)
                return;
        free(run->cmd);
        free(run->git);
        free(run);
}

void afz_history_free(struct afz_history *h)
{
        if (!h)
                return;
        for (size_t i = 0; i < h->count; i++)
                free_run(h->row[i].run);
        free(h->row);
        afz_fd_close(&h->runs_fd);
        free(h);
}

size_t afz_history_count(const struct afz_history *h)
{
        return h->count;
}

const char *afz_history_id(const struct afz_history *h, size_t i)
{
        return h->row[i].id;
}

int64_t afz_history_id_time(const char *id)
{
        struct tm tm = {0};
        if (!strptime(id, "%Y%m%d-%H%M%S", &tm))
                return 0;
        return (int64_t)timegm(&tm);
}

/* A run that has a page or a state, and so perhaps no end: what `why` would say of it. */
static int recall(const char *id, struct afz_history_run *ret)
{
        struct afz_run_ref ref;
        struct afz_run_known *known = malloc(sizeof *known);
        int r = known ? afz_run_find(id, &ref) : -ENOMEM;
        if (r == 0)
                r = afz_run_recall(&ref, known);
        if (r < 0) {
                free(known);
                return r;
        }
        const struct afz_run_page *page = &known->page;
        const struct afz_verdict *first = &known->outcome.verdict[0];
        uint64_t gpu = page->gpu_peak_bytes, budget = page->budget_bytes;
        ret->started_s = page->started_s;
        ret->duration_ns = known->duration_ns;
        ret->end = known->outcome.end;
        ret->peak_bytes = page->peak_bytes;
        ret->gpu_peak_bytes = gpu ? gpu : UINT64_MAX;
        ret->budget_bytes = budget ? budget : UINT64_MAX;
        ret->life = ref.live                          ? AFZ_HISTORY_LIVE
                    : ret->end.how == AFZ_END_RUNNING ? AFZ_HISTORY_ELSEWHERE
                    : ret->end.how == AFZ_END_LOST    ? AFZ_HISTORY_LOST
                                                      : AFZ_HISTORY_ENDED;
        if (known->outcome.verdicts) {
                memcpy(ret->verdict, first->id, sizeof ret->verdict);
                memcpy(ret->summary, first->summary, sizeof ret->summary);
                ret->level = first->level;
        }
        ret->cmd = strdup(page->cmd);
        free(known);
        return ret->cmd ? 0 : -ENOMEM;
}

static bool has_state(int runs_fd, const char *id)
{
        char path[AFZ_RUN_ID_CAP + sizeof AFZ_RUN_STATE + 1];
        snprintf(path, sizeof path, "%s/%s", id, AFZ_RUN_STATE);
        return runs_fd >= 0 && faccessat(runs_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* verdict.json has the command cut to 255 bytes, and no revision. */
static void take_head(int runs_fd, struct afz_history_run *run)
{
        char *cmd, *git;
        if (runs_fd < 0 || run->life == AFZ_HISTORY_DAMAGED ||
            afz_history_head(runs_fd, run->id, &cmd, &git) < 0)
                return;
        if (cmd[0]) {
                free(run->cmd);
                run->cmd = cmd;
        } else {
                free(cmd);
        }
        free(run->git);
        run->git = git;
}

const struct afz_history_run *afz_history_get(struct afz_history *h, size_t i)
{
        struct afz_history_row *row = &h->row[i];
        if (row->looked)
                return row->run;
        row->looked = true;
        struct afz_history_run *run = calloc(1, sizeof *run);
        if (!run)
                return NULL;
        memcpy(run->id, row->id, sizeof run->id);
        int r = -ENOENT;
        if (row->has_page || has_state(h->runs_fd, row->id))
                r = recall(row->id, run);
        if (r < 0 && h->runs_fd >= 0)
                r = afz_history_read(h->runs_fd, row->id, run);
        if (r == 0)
                take_head(h->runs_fd, run);
        if (r == 0 && !run->git)
                run->git = strdup("");
        if (r < 0 || !run->cmd || !run->git) {
                free_run(run);
                return NULL;
        }
        return row->run = run;
}

size_t afz_history_last_good(struct afz_history *h, size_t i)
{
        const struct afz_history_run *now = afz_history_get(h, i);
        for (size_t k = i + 1; now && k < h->count; k++) {
                const struct afz_history_run *run = afz_history_get(h, k);
                if (run && run->life == AFZ_HISTORY_ENDED && run->end.how == AFZ_END_EXIT &&
                    run->end.code == 0 && afz_history_same(run->cmd, now->cmd))
                        return k;
        }
        return SIZE_MAX;
}

int afz_history_changed(const char *id, char ret_since[AFZ_RUN_ID_CAP], char text[AFZ_CHANGED_CAP])
{
        struct afz_history *h;
        int r = afz_history_new(&h);
        if (r < 0)
                return r;
        size_t i = 0, good = SIZE_MAX;
        while (i < h->count && strcmp(h->row[i].id, id) != 0)
                i++;
        if (i < h->count)
                good = afz_history_last_good(h, i);
        r = -ENOENT;
        if (good != SIZE_MAX) {
                const struct afz_history_run *before = afz_history_get(h, good);
                memcpy(ret_since, before->id, AFZ_RUN_ID_CAP);
                r = afz_history_diff(before, afz_history_get(h, i), text) > 0;
        }
        afz_history_free(h);
        return r;
}
