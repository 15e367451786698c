#ifndef AFZ_RUN_STATE_H
#define AFZ_RUN_STATE_H
/* run.state: all that is known of a run that has not ended for good, in two slots that are written
 * in turn, in place. A slot that was torn by a power cut does not have its sum, and the other one
 * stands. It is of this machine and this version only: a file of another layout is not believed.
 *
 * The files of a run folder are written here, too: each by a new file that is renamed over the old.
 */
#include <stdbool.h>
#include <stdint.h>

#include "run.h"

#define AFZ_RUN_STATE "run.state"

struct afz_run_state {
        uint64_t magic, turn;
        char host[65];
        uint64_t duration_ns;
        struct afz_outcome outcome;
        struct afz_run_page page;
        uint64_t sum; /* of all before it */
};

/* Makes the file, locked, with room for both slots. Replaces one that is there, which the caller
 * has seen to be nobody's. Returns its descriptor. */
int afz_run_state_make(int dir_fd);

/* Fills in all but magic, turn and sum. */
void afz_run_state_set(struct afz_run_state *state, const struct afz_run_page *page,
                       const struct afz_outcome *outcome, uint64_t duration_ns);

/* Writes it into the older slot. */
int afz_run_state_write(int fd, struct afz_run_state *state);

/* The newer good slot, checked and made safe as a page is. -EBADMSG: none is good. */
int afz_run_state_read(int fd, struct afz_run_state *ret);

/* The run was left by its guard: fills in the end as lost. `page` is its page, if it is still there
 * (it knows more than the state). */
void afz_run_state_lose(struct afz_run_state *state, const struct afz_run_page *page);

/* Whether it was made on this host: only then can be said that its guard is gone. */
bool afz_run_state_is_here(const struct afz_run_state *state);

/* verdict.txt and verdict.json from it; `durable` waits for the disk. */
int afz_run_pair_write(int dir_fd, const struct afz_run_state *state, bool durable);

/* Both for good, and then run.state is removed. */
int afz_run_pair_finish(int dir_fd, const struct afz_run_state *state);

/* Opens the run.state of a folder and reads it. Returns the descriptor. -ENOENT: it is over. */
int afz_run_state_find(int dir_fd, struct afz_run_state *ret);

/* Records the end of the run in this folder if it has this id, is of this host and nobody holds it:
 * as it ended, or as lost. -EBUSY: it lives. -ENOENT: there is nothing to record. The ledger's lock
 * is held. */
int afz_run_settle(const char *dir, const char *id, const struct afz_run_page *page);

/* The same as somebody knows it who has looked into it, as far as afz_run_is_better(). */
int afz_run_settle_as(const char *dir, const struct afz_run_known *known);

/* Whether what was said of an end may be replaced: by verdicts on the very same end. */
bool afz_run_is_better(const struct afz_outcome *before, const struct afz_outcome *after);

#endif
