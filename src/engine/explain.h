#ifndef AFZ_EXPLAIN_H
#define AFZ_EXPLAIN_H
/* Why a run ended as it did: reads its recording, asks the judges, and tells. For processes that
 * may block and allocate: the front at the end of a run, `why`, `runs`, `report`. */
#include "flight.h"
#include "run.h"
#include "verdicts.h"

/* The verdicts of a run from its folder: live, ended or lost. `guard` is what the guard itself
 * found (its outcome stands where the recording is missing or says less); NULL: from run.state and
 * verdict.json. The flight is handed out when ret_flight is not NULL. */
int afz_explain(const struct afz_run_ref *ref, const struct afz_outcome *guard,
                struct afz_outcome *ret, struct afz_flight *ret_flight, char *why);

#endif
