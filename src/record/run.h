#ifndef AFZ_RUN_H
#define AFZ_RUN_H
/* A run on disk and in the runtime folder: made, found, ended, collected.
 *
 *   state    $XDG_STATE_HOME/antifreeze/runs/ID/ (or --run-dir, and then runs/ID is a link to it):
 *            verdict.json, verdict.txt and, until the end is recorded, run.state; all 0600
 *   runtime  a folder of the user's in memory (run_home.h): ID.run (run_page.h), ID.sock, ID.probe
 *
 * A run is alive while somebody holds the lock of its page or of its run.state; whoever has one of
 * the descriptors (guard, front, and what they fork until it execs) holds it. verdict.json is there
 * from the start (`end` null), and is replaced whole, by rename, when it ends.
 *
 * run.state (run_state.h) is what makes an end survive: its room is taken at the start, so that a
 * full disk cannot refuse the last word, and it goes only when verdict.json and verdict.txt are
 * both there. Who finds one that nobody holds writes the pair from it: as it ended, or as lost.
 *
 * Functions with a `why` (AFZ_RUN_WHY_CAP, or NULL) put one clause without a full stop there when
 * they fail ("/tmp/antifreeze-1000 belongs to another user"), and "" when they have nothing to say.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"
#include "out.h"
#include "run_page.h"
#include "span.h"
#include "stake.h"
#include "verdict.h"

#define AFZ_RUN_WHY_CAP    256
#define AFZ_RUN_SOCKET_CAP 108 /* sockaddr_un.sun_path */

struct afz_run {
        struct afz_run_page *page;              /* mapped, shared, locked by us */
        int dir_fd, page_fd, state_fd, home_fd; /* -1: not there; close-on-exec */
        char socket[AFZ_RUN_SOCKET_CAP]; /* path of the control socket, which is not made here; ""
                                            where there is no runtime folder */
        char page_path[AFZ_RUN_PATH_CAP];
        bool made_dir;                 /* the run's folder was not there before */
        char replaces[AFZ_RUN_ID_CAP]; /* the run whose record stands there until this one's is
                                          written; "": none */
};

/* Makes folder, page and lock, with a new ID (never all digits). run_dir NULL: the usual place.
 * Everything that a later `why` needs and is known now is in `first` (id, magic, boot id, dir and,
 * where they are 0, the times are filled in here). To be called from within afz_run_ledger().
 *
 * 0; 1: the run can be held but not recorded, or not found by others, and `why` says which folder
 * and the reason (page->dir is "" without a run folder; socket is "" without a runtime folder, and
 * the page is then plain shared memory). Failures are those of a run_dir that was asked for:
 * -ENOTEMPTY other things are in it, -EBUSY a run lives there, -EPERM it belongs to another user,
 * and what mkdir says. On failure nothing is left. */
int afz_run_new(const char *run_dir, const struct afz_run_page *first, struct afz_run *ret,
                char *why);

/* Writes verdict.json and verdict.txt as it stands; with end.how RUNNING at the start, and again
 * whenever a lost run should know more (tier and place, once they are known). Guard and front may
 * both: an end that was written is not undone by "running", "lost" or another end, but its verdicts
 * are replaced by better ones (the guard's own by those from the recording). Only the end is waited
 * for until it is on the disk. -ENOENT: there is no run folder. Another error at the end:
 * the files are older than the run, but as long as run.state could be written (a full disk does
 * not hinder it) `why` answers all the same. */
int afz_run_write(const struct afz_run *run, const struct afz_outcome *outcome);

/* Waits until run.state, from which all else can be written again, is on the disk: without it, a
 * power cut within half a minute leaves a file without a byte. Its name is for who syncs the
 * folder. Blocks: for a helper. */
int afz_run_sync(int dir_fd);

/* Removes page and socket, closes everything; notes a run that has no folder (afz_run_unrecorded).
 * The run's folder stays, unless nothing was ever
 * written there: then the run came to nothing (--dry-run), and it goes, too. */
void afz_run_done(struct afz_run *run);

/* For a forked helper that has nothing to do with the record: gives up its share of page and locks,
 * so that it does not keep the run alive; removes nothing. */
void afz_run_leave(struct afz_run *run);

/* The ledger: runs `make` while no other run can be made or collected, with the sum of what living
 * runs were promised and have not yet taken (budget less need, never below zero). What a run inside
 * another was promised is a part of that one's: `inside` says of which the parts are added up (""
 * for those that are in none). Returns what
 * `make` does; -ETIMEDOUT when another start holds the ledger for too long. Without a runtime
 * folder nothing is known of others: `make` is called with 0, and `why` says so. */
int afz_run_ledger(const char *inside, int (*make)(void *ctx, uint64_t promised_bytes), void *ctx,
                   char *why);

/* The ledger's lines: all living runs that were promised something, and are in no other. Returns
 * how many; -E2BIG: more than `cap`. A guard that has not looked for AFZ_RUN_SILENT_NS hears
 * nothing: its line is fixed. This and the next: from within afz_run_ledger(). */
#define AFZ_RUN_SILENT_NS UINT64_C(2000000000)
int afz_run_stakes(struct afz_stake *ret, unsigned cap);

/* Moves a run's cap; its guard follows at its next look. One whose job does not run yet has it at
 * once. */
int afz_run_set_cap(const char *id, uint64_t cap_bytes);

/* Ends what dead guards left behind: writes "lost" into their folders, calls `collect` with their
 * place (NULL: not), and removes page and socket unless that says -EBUSY (its promise then still
 * counts: its job lives on within its limit). Returns how many were removed. Takes the ledger's
 * lock; not to be called from within afz_run_ledger(). */
int afz_run_collect(int (*collect)(void *ctx, const char *place), void *ctx, char *why);

struct afz_run_ref {
        char id[AFZ_RUN_ID_CAP];
        char dir[AFZ_RUN_PATH_CAP];       /* "": it has none */
        char socket[AFZ_RUN_SOCKET_CAP];  /* "": its runtime folder is gone */
        char page_path[AFZ_RUN_PATH_CAP]; /* "": it has no page (any more) */
        bool live;                        /* its guard holds it, and no end is recorded */
};

/* Finds a run: an ID, a unique prefix or the last four letters of one, a folder's path, the pid of
 * a living run's guard or root (digits alone), or NULL: the newest. -ENOENT; -ENOTUNIQ (several are
 * called so). */
int afz_run_find(const char *text, struct afz_run_ref *ret);

/* The last run, if it was not recorded: bare `why` shows an older one. As far as the runtime folder
 * remembers, so not over a boot. */
bool afz_run_unrecorded(char ret_id[AFZ_RUN_ID_CAP]);

/* The page of a living or lost run, copied and made safe: texts end, tier and policy are in range.
 * -ENOENT: it is over and collected. */
int afz_run_peek(const struct afz_run_ref *ref, struct afz_run_page *ret);

/* What is known of a run, wherever it stands. */
struct afz_run_known {
        struct afz_run_page page; /* from verdict.json: only what stands there, and no magic */
        struct afz_outcome outcome;
        uint64_t duration_ns;
        bool recorded;       /* its end stands in the files */
        bool rebooted;       /* lost, and the machine was booted anew since */
        bool elsewhere;      /* made on another machine: only that one knows whether it goes on */
        bool only_recording; /* nothing else is left of it */
};

/* From its page while it lives; from its state when nobody has recorded the end (as it ended, or as
 * lost); else from verdict.json, or from the recording alone. Nothing is written. -ENOENT: there is
 * nothing to tell from. -EBADMSG, -EPROTO: verdict.json is damaged, or of a newer schema. */
int afz_run_recall(const struct afz_run_ref *ref, struct afz_run_known *ret);

/* A verdict.json (schema 1) in memory; errors as above. Keys that are missing are as if not known.
 */
int afz_run_known_parse(struct afz_span text, struct afz_run_known *ret);

/* Records the end of a run that was left, or replaces what was said of one that was lost, where
 * nobody holds it. */
int afz_run_retell(const struct afz_run_ref *ref, const struct afz_run_known *known);

/* verdict.json on one line, control characters escaped; verdict.txt with these as '?'. -EBADMSG: it
 * is no JSON. */
int afz_run_tell_file(const struct afz_run_ref *ref, bool json, struct afz_out *out);

/* Writes what verdict.txt or verdict.json say, made from the run's page while it lives; nothing is
 * explained (src/engine/explain.h). The end of a run whose guard is gone is recorded on the way, as
 * lost, where that is possible. -ENOENT: there is nothing to tell from. */
int afz_run_tell(const struct afz_run_ref *ref, bool json, struct afz_out *out);

/* The same made from what is known; full_text: with every verdict's evidence, numbers, tier, cost;
 * live_text: of a run that goes on, and what it does just now comes first. */
void afz_run_put_text(struct afz_out *out, const struct afz_run_page *page,
                      const struct afz_outcome *outcome, uint64_t duration_ns);
void afz_run_put_full_text(struct afz_out *out, const struct afz_run_page *page,
                           const struct afz_outcome *outcome, uint64_t duration_ns);
void afz_run_put_live_text(struct afz_out *out, const struct afz_run_known *known, const char *now,
                           bool full);
void afz_run_put_json(struct afz_out *out, const struct afz_run_page *page,
                      const struct afz_outcome *outcome, uint64_t duration_ns);

/* Parts of these, for who tells more: the key "verdicts" with its value; "  because    text", made
 * printable; "almost certainly", "probably", "perhaps". */
void afz_run_put_verdicts(struct afz_json *j, const struct afz_outcome *outcome);
void afz_run_put_row(struct afz_out *out, const char *title, const char *text);
const char *afz_run_sureness(double confidence);
/* "slowed it down": what an action is, for people. */
const char *afz_run_deed(enum afz_action action);

#endif
