#ifndef AFZ_EXPLAIN_H
#define AFZ_EXPLAIN_H
/* Why a run ended as it did: reads its recording, asks the judges, and tells. For processes that
 * may block and allocate: the front at the end of a run, `why`, `runs`, `report`.
 *
 * An end that was explained and recorded stands: what verdict.json says is what everybody says. A
 * run that goes on, that was lost, or of which only the guard's own finding is known is judged from
 * its recording. One that is missing or broken is no error: there are still the facts. */
#include "flight.h"
#include "run.h"
#include "verdicts.h"

/* The verdicts of a run from its folder: live, ended or lost. `guard` is what the guard itself
 * found (its outcome stands where the recording is missing or says less); NULL: from run.state and
 * verdict.json. The flight is handed out when ret_flight is not NULL (without tracks where there is
 * no recording, and `why` then says what is wrong with it; "": nothing is). Errors are those of
 * afz_run_recall(). */
int afz_explain(const struct afz_run_ref *ref, const struct afz_outcome *guard,
                struct afz_outcome *ret, struct afz_flight *ret_flight, char *why);

/* The same of a run that is known already: known->outcome becomes what the judges say, and where
 * nobody saw the end, peak, duration and deeds are completed from the recording in the folder
 * dir_fd (-1: there is none). Returns 0, or what is wrong with the recording. */
int afz_explain_known(struct afz_run_known *known, int dir_fd, struct afz_flight *ret_flight,
                      char *why);

/* The same with a recording in memory, whatever was said before. */
void afz_explain_flight(struct afz_run_known *known, const struct afz_flight *flight);

/* What the judges are asked: to judge a recording again, by the facts in its verdict.json. */
void afz_explain_case(const struct afz_run_known *known, const struct afz_flight *flight,
                      struct afz_case *ret);

#endif
