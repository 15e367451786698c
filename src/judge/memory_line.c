#include "memory_line.h"

#include <string.h>

#include "agent_tale.h"
#include "end_clues.h"

/* Of what it may use: what is below is fine, and nobody's business. */
#define NEAR 0.7

/* It was refused memory, and ended with that error. Who asks for more at once than it may use in
 * all need not have been near it. */
static bool ended_refused(const struct afz_case *c, double line_bytes)
{
        struct afz_tale tale;
        afz_tale_of(c->flight, &c->facts.end, afz_end_last_start(c->flight), &tale);
        const struct afz_oom *oom = &tale.last[false];
        return tale.ooms[false] > 0 && afz_oom_is_fatal(oom, &c->facts.end) &&
               (double)oom->asked_bytes <= line_bytes;
}

static bool ended_for_memory(const struct afz_case *c, double line_bytes)
{
        const struct afz_facts *f = &c->facts;
        switch (f->end.how) {
        case AFZ_END_STOPPED:
                return !f->storm &&
                       (f->stop_cause == AFZ_CAUSE_BUDGET || f->stop_cause == AFZ_CAUSE_PRESSURE ||
                        f->stop_cause == AFZ_CAUSE_KERNEL);
        case AFZ_END_OOM_KILLED:
                return true;
        case AFZ_END_SIGNAL:
                return afz_kill_clue_of(c).of != AFZ_LIMIT_NONE;
        case AFZ_END_EXIT:
                return f->end.code != 0 &&
                       (afz_kill_clue_of(c).of != AFZ_LIMIT_NONE || ended_refused(c, line_bytes));
        default:
                return false;
        }
}

struct afz_memory_line afz_memory_line_of(const struct afz_case *c)
{
        const struct afz_facts *f = &c->facts;
        struct afz_memory_line line = {0};
        uint32_t start_ms = afz_end_last_start(c->flight);
        int64_t most;
        if (!f->watch_only)
                line.bytes = f->hard_bytes ? (double)f->hard_bytes
                                           : (double)c->budget_bytes + (double)c->swap_bytes;
        if (line.bytes <= 0)
                line.bytes = (double)c->flight->head.ram_total_bytes;
        line.met = ended_for_memory(c, line.bytes);
        /* Of the last attempt where that is known; what others of the run needed is over. */
        if (afz_column_most(afz_flight_need(c->flight), start_ms, UINT32_MAX, &most) && most > 0)
                line.peak_bytes = (double)most;
        if (f->attempt == 0 && (double)c->peak_bytes > line.peak_bytes)
                line.peak_bytes = (double)c->peak_bytes;
        line.near = line.met || (line.bytes > 0 && line.peak_bytes >= NEAR * line.bytes);
        return line;
}

bool afz_leak_said(const struct afz_outcome *outcome)
{
        for (unsigned i = 0; i < outcome->verdicts; i++)
                if (strncmp(outcome->verdict[i].id, "leak", 4) == 0)
                        return true;
        return false;
}
