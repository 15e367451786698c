#ifndef AFZ_AGENT_FIXTURE_H
#define AFZ_AGENT_FIXTURE_H
/* For judges of what the agent tells: figures of a process that trains, events, and a run of 10 GiB
 * that ended by itself. */
#include "agent_event.h"
#include "memory_fixture.h"

#define TRAINER 100

static const struct fly_times stepping = {STEP_MS, RUN_MS, 1000};

static inline void tell(enum afz_metric metric, struct fly_times times, int64_t first, double per_s)
{
        fly_line(&flight, AFZ_KIND_INSIDE, TRAINER, metric, times, first, per_s);
}

static inline void event(uint32_t t_ms, enum afz_agent_event code, const char *text)
{
        fly_mark(&flight, t_ms, AFZ_MARK_AGENT, code, text);
}

static inline struct afz_case ended(int code)
{
        struct afz_case c = a_run(false, 5);
        c.facts.end.code = code;
        return c;
}

#endif
