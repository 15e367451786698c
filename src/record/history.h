#ifndef AFZ_HISTORY_H
#define AFZ_HISTORY_H
/* The runs that were: found in the folders where they stand (run.h), newest first. The folders are
 * all there is: a name is read when it is asked for, which takes some 10 us, so nothing is cached
 * on disk and nothing can be out of step.
 *
 * What is shown here is for people and their scripts: it may have been damaged, cut, or put there
 * by hand. A folder that cannot be understood is told as such and hides no other.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run.h"

enum afz_history_life {
        AFZ_HISTORY_ENDED,
        AFZ_HISTORY_LIVE,
        AFZ_HISTORY_LOST,      /* nobody saw the end */
        AFZ_HISTORY_ELSEWHERE, /* no end is recorded, and only another machine could tell */
        AFZ_HISTORY_DAMAGED,   /* verdict.json cannot be read; of the rest, only what the ID says */
        AFZ_HISTORY_LIVES
};
const char *afz_history_life_name(enum afz_history_life life); /* "ended", "live", ... */

struct afz_history_run {
        char id[AFZ_RUN_ID_CAP];
        enum afz_history_life life;
        int64_t started_s; /* wall clock */
        uint64_t duration_ns;
        struct afz_end end;
        uint64_t peak_bytes, gpu_peak_bytes, budget_bytes; /* UINT64_MAX: not known */
        char verdict[AFZ_VERDICT_ID_CAP];                  /* the first; "": none */
        enum afz_level level;
        char summary[256];
        char *cmd; /* as it was given, with its secrets: show it by afz_secret_text() */
        char *git; /* the revision; "": not known */
};

struct afz_history;

/* Looks up the names. No runs at all is no failure. */
int afz_history_new(struct afz_history **ret);
void afz_history_free(struct afz_history *history);

/* How many names there are; not each has a run behind it. */
size_t afz_history_count(const struct afz_history *history);
/* The i-th name, the newest being 0. */
const char *afz_history_id(const struct afz_history *history, size_t i);
/* The run behind it. NULL: there is none (any more): its --run-dir was removed or given to another,
 * or its start was cut off. Valid until the history is freed. */
const struct afz_history_run *afz_history_get(struct afz_history *history, size_t i);

/* ---- what changed ---- */

/* Whether two command lines run the same thing: the same program and script (python -m: module),
 * whatever the other arguments. */
bool afz_history_same(const char *cmd, const char *other);

/* Whether `wanted` ("train.py", "python train.py") names what a command line runs. */
bool afz_history_matches(const char *cmd, const char *wanted);

/* The last run before the i-th that ran the same and ended by itself with 0; SIZE_MAX: none. */
size_t afz_history_last_good(struct afz_history *history, size_t i);

/* What is other than before: "batch 32 -> 64, peak 2.1G -> 5.2G (+3.1G)". Arguments one by one, the
 * git revision, the budget, the peak; secrets are not told, only that they changed. Returns how
 * much; 0 and "": nothing. */
enum { AFZ_CHANGED_CAP = 400 };
unsigned afz_history_diff(const struct afz_history_run *before, const struct afz_history_run *now,
                          char text[AFZ_CHANGED_CAP]);

/* All of that for `why`: since which run, and what. 1; 0: nothing changed ("" as text); -ENOENT:
 * there was no good run of the same command before, or there is no such run. */
int afz_history_changed(const char *id, char ret_since[AFZ_RUN_ID_CAP], char text[AFZ_CHANGED_CAP]);

/* ---- making room ---- */

struct afz_prune_rule {
        bool by_age;
        int64_t before_s; /* by age: what ended before this wall-clock time goes */
        size_t keep;      /* else: all but so many of the newest that have ended */
};

struct afz_pruned {
        size_t runs;    /* removed */
        size_t links;   /* of those, links to a --run-dir: the folder stays */
        size_t refused; /* left alone: something in them is not ours, or they cannot be removed */
        uint64_t bytes; /* of disk space */
        char first_refused[AFZ_RUN_ID_CAP];
        char why[AFZ_RUN_WHY_CAP]; /* of that one */
};

/* Removes ended runs. Runs that live, here or on another machine, stay. Only plain files with the
 * names that we give, in folders of ours, are removed; links are never followed. The history knows
 * the old names still: it is to be freed afterwards. */
int afz_history_prune(struct afz_history *history, const struct afz_prune_rule *rule,
                      struct afz_pruned *ret);

#endif
