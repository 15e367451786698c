#include "end_refused.h"

#include <stdio.h>
#include <string.h>

#include "agent_tale.h"
#include "end_clues.h"
#include "judge_words.h"

static const struct {
        double seen, denied;
} sure = {
        .seen = 0.9,   /* the agent saw the error that ended it */
        .denied = 0.7, /* nobody did, but a request was refused just before: it may have gotten
                          over that, and failed of something else */
};

/* "2 large requests for memory (512M) were refused": by us, and never without a word. */
static void put_denied(const struct afz_tale *tale, char *buf, size_t cap)
{
        snprintf(buf, cap, "%u large request%s for memory (%s) %s refused (--policy adapt)",
                 tale->refused, tale->refused == 1 ? "" : "s", SIZE(tale->refused_bytes),
                 tale->refused == 1 ? "was" : "were");
}

void afz_end_note_denied(const struct afz_case *c, struct afz_verdict *v)
{
        struct afz_tale tale;
        char denied[100];
        afz_tale_of(c->flight, &c->facts.end, afz_end_last_start(c->flight), &tale);
        if (tale.refused == 0)
                return;
        put_denied(&tale, denied, sizeof denied);
        afz_verdict_note(v, "on the way %s", denied);
}

/* No agent saw the error, but a request was refused just before. */
static struct afz_verdict *say_denied(const struct afz_tale *tale, struct afz_outcome *ret)
{
        char denied[100];
        if (tale->refused == 0 || !tale->refused_last || tale->ooms[false] + tale->ooms[true] > 0)
                return NULL;
        struct afz_verdict *v = afz_outcome_add(ret, "host-exhaustion", AFZ_LEVEL_ACT, sure.denied);
        if (!v)
                return NULL;
        put_denied(tale, denied, sizeof denied);
        snprintf(v->summary, sizeof v->summary,
                 "it failed right after it was told that there is no more memory: %s, which would "
                 "have gone beyond what it may use",
                 denied);
        snprintf(v->fix, sizeof v->fix,
                 "a smaller batch, or streaming the data; if the RAM is there, --budget raises the "
                 "limit; --policy protect refuses nothing");
        return v;
}

struct afz_verdict *afz_end_refused(const struct afz_case *c, struct afz_outcome *ret)
{
        struct afz_tale tale;
        char asked[48] = "", place[80] = "";
        afz_tale_of(c->flight, &c->facts.end, afz_end_last_start(c->flight), &tale);
        const struct afz_oom *oom = &tale.last[false];
        if (tale.ooms[false] == 0 || !afz_oom_is_fatal(oom, &c->facts.end))
                return say_denied(&tale, ret);
        struct afz_verdict *v = afz_outcome_add(ret, "host-exhaustion", AFZ_LEVEL_ACT, sure.seen);
        if (!v)
                return NULL;
        afz_oom_where(oom, &v->where);
        const char *slash = strrchr(v->where.file, '/');
        if (oom->asked_bytes > 0)
                snprintf(asked, sizeof asked, "%s at once", SIZE(oom->asked_bytes));
        if (v->where.line > 0)
                snprintf(place, sizeof place, " at %.60s:%d", slash ? slash + 1 : v->where.file,
                         (int)v->where.line);
        snprintf(v->summary, sizeof v->summary,
                 "it ended with an error for want of memory: %s%s%s%s",
                 asked[0] ? "it asked for " : "it asked for more than there was", asked, place,
                 tale.refused > 0 ? ", which would have gone beyond what it may use" : "");
        snprintf(v->fix, sizeof v->fix, "%s%s",
                 oom->step > 0 || oom->batch > 0
                         ? "a smaller batch, or streaming the data"
                         : "make less at once there: a smaller model, part of the data, narrower "
                           "numbers (float32, not float64)",
                 c->facts.watch_only ? "" : "; if the RAM is there, --budget raises the limit");
        if (oom->step > 0)
                afz_verdict_note(v, "in step %llu%s", (unsigned long long)oom->step,
                                 tale.splits > 0 ? ", though steps were made in parts already"
                                                 : "");
        return v;
}
