#ifndef AFZ_SCOUT_FACTS_H
#define AFZ_SCOUT_FACTS_H
/* From the engine's window to the few facts of a report. Pure: it reads windows and remembers what
 * it needs of those before; no clock, no file.
 */
#include "scout.h"
#include "scout_disk.h"
#include "window.h"

struct afz_scout_facts;

int afz_scout_facts_new(struct afz_scout_facts **ret);
void afz_scout_facts_free(struct afz_scout_facts *facts);

/* Takes the newest window into the report: everything but `other`, fill and count. */
void afz_scout_facts_take(struct afz_scout_facts *facts, const struct afz_window *window,
                          struct afz_scout_report *report);

/* How long until the next look: age_ns is for how long the job has been watched. */
uint64_t afz_scout_facts_pace(const struct afz_scout_report *report, uint64_t age_ns);

#endif
