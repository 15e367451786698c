#ifndef AFZ_RUNS_WORDS_H
#define AFZ_RUNS_WORDS_H
/* The history of runs as it is shown: a table for people, an object for scripts. */
#include <stdbool.h>

#include "history.h"
#include "json.h"
#include "out.h"

struct afz_runs_words {
        struct afz_out *out;
        bool json;
        int columns;    /* of the terminal; 0: lines may be as long as they are */
        bool revisions; /* some run has one: a column for them */
        struct afz_json j;
        bool any;
};

struct afz_changed {
        const struct afz_history_run *before;
        char text[AFZ_CHANGED_CAP];
};

void afz_runs_begin(struct afz_runs_words *words);
/* `since` is NULL where nothing changed, or it is not asked. */
void afz_runs_put(struct afz_runs_words *words, const struct afz_history_run *run,
                  const struct afz_changed *since);
void afz_runs_end(struct afz_runs_words *words);

void afz_runs_put_pruned(struct afz_out *out, const struct afz_pruned *done, bool json);

#endif
