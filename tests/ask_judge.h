#ifndef ASK_JUDGE_H
#define ASK_JUDGE_H
/* One judge asked alone, for the tests of those who look at how a job goes: what it says, or NULL.
 */
#include <signal.h>
#include <string.h>

#include "flight_fixture.h"
#include "judges.h"

#define JOB 100 /* the job's root */

typedef void (*judge_fn)(const struct afz_case *c, struct afz_outcome *ret);

static struct afz_outcome outcome; /* what it was given last */

static inline const struct afz_verdict *ask_case(judge_fn judge, const struct afz_case *c)
{
        memset(&outcome, 0, sizeof outcome);
        judge(c, &outcome);
        assert_in_range(outcome.verdicts, 0, 1);
        if (outcome.verdicts == 0)
                return NULL;
        const struct afz_verdict *v = &outcome.verdict[0];
        assert_true(v->confidence > 0 && v->confidence <= 1);
        assert_true(v->summary[0] && v->fix[0] && v->evidence[0][0]);
        assert_true(v->from_ms <= v->to_ms);
        return v;
}

static inline const struct afz_verdict *ask(judge_fn judge, const struct afz_flight *f,
                                            struct afz_end end)
{
        return ask_case(judge, &(struct afz_case){.flight = f, .facts = {.end = end}});
}

static const struct afz_end running __attribute__((unused)) = {AFZ_END_RUNNING, -1};
static const struct afz_end killed __attribute__((unused)) = {AFZ_END_SIGNAL, SIGTERM};
static const struct afz_end well __attribute__((unused)) = {AFZ_END_EXIT, 0};

static inline bool has_word(const struct afz_verdict *v, const char *word)
{
        for (int i = 0; i < AFZ_EVIDENCE_MAX; i++)
                if (strstr(v->evidence[i], word))
                        return true;
        return strstr(v->summary, word) || strstr(v->fix, word);
}

static inline void tell_rate(struct afz_flight *f, enum afz_kind kind, uint64_t id,
                             enum afz_metric m, struct fly_times t, double per_s)
{
        if (per_s >= 0)
                fly_line(f, kind, id, m, t, 0, per_s);
}

#endif
