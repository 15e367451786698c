/* accumulation-broken: gradients of several batches are meant to be added up before a step, but
 * each time they are zeroed in between, so that only the last batch is learned from. */
#include <stdio.h>

#include "agent_tale.h"
#include "end_clues.h"
#include "hang_stacks.h"
#include "inside.h"
#include "judges.h"
#include "step_clock.h"

/* The agent looks at a step now and then, and takes those in between for the same: the count stands
 * still and leaps. Gradients that are not used are zeroed in good programs as well: of a step that
 * a scaler skipped, of a batch that was found to be bad, of a measurement between two epochs. These
 * come now and then; what is meant here comes whenever one looks. */
static const struct {
        double least, most; /* batches whose gradients were lost for each step; those that moved a
                               weight (SAM) the agent does not count. More than the most is a
                               measurement, which makes no steps */
        unsigned leaps;     /* of the count that were seen, */
        double same;        /* this part of them like that; */
        double late;        /* and the last not before this part of all steps */
        int64_t steps;      /* in all */
        double sure;
} rule = {
        .least = 0.7, /* two batches for a step, and more; steps are written down a little later
                         than what was lost */
        .most = 64,
        .leaps = 4,
        .same = 0.8,
        .late = 0.6,
        .steps = 20,
        .sure = 0.85,
};

struct leaps {
        unsigned all, alike;
        int64_t lost, steps, last_step; /* in all; and when the count last moved */
        uint32_t from_ms, to_ms;
};

static struct leaps leaps_of(const struct afz_column *steps, const struct afz_column *zeroed)
{
        struct leaps l = {0};
        int64_t count = 0, step = 0, now;
        for (size_t i = 0; i < zeroed->count; i++) {
                const struct afz_point *p = &zeroed->point[i];
                if (p->mean <= count || !afz_column_last(steps, p->t_ms + 1, &now) || now <= step)
                        continue;
                double each = (double)(p->mean - count) / (double)(now - step);
                if (l.all++ == 0)
                        l.from_ms = p->t_ms;
                l.alike += each >= rule.least && each <= rule.most;
                l.to_ms = p->t_ms;
                l.lost = count = p->mean;
                l.last_step = step = now;
        }
        l.steps = afz_step_count(steps, 0, UINT32_MAX);
        return l;
}

static void find_line(const struct afz_case *c, struct afz_where *ret)
{
        struct afz_tale tale;
        afz_tale_of(c->flight, &c->facts.end, afz_end_last_start(c->flight), &tale);
        afz_tale_zeroed_where(&tale, ret);
}

AFZ_JUDGE(accumulation)
{
        const struct afz_track *trainer =
                afz_inside_trainer(c->flight, afz_end_last_start(c->flight));
        char place[160];
        const struct afz_column *zeroed = afz_track_column(trainer, AFZ_INSIDE_ZEROED);
        /* Without a loader nobody knows what is another batch. */
        if (!zeroed || !afz_track_column(trainer, AFZ_INSIDE_BATCH))
                return;
        struct leaps l = leaps_of(afz_track_column(trainer, AFZ_INSIDE_STEP), zeroed);
        if (l.all < rule.leaps || l.alike < rule.same * l.all || l.steps < rule.steps ||
            (double)l.last_step < rule.late * (double)l.steps ||
            (double)l.lost < rule.least * (double)l.last_step)
                return;
        double lost = (double)l.lost / (double)l.last_step;
        struct afz_verdict *v =
                afz_outcome_add(ret, "accumulation-broken", AFZ_LEVEL_WARN, rule.sure);
        if (!v)
                return;
        find_line(c, &v->where);
        snprintf(v->summary, sizeof v->summary,
                 "gradients are zeroed before they are used%s: of about %.0f batches for each step "
                 "only the last one is learned from",
                 afz_where_words(&v->where, place, sizeof place), lost + 1);
        snprintf(v->fix, sizeof v->fix,
                 "call zero_grad() once for each step, right after optimizer.step(), not for each "
                 "batch; and divide the loss by the number of batches (%.0f)",
                 lost + 1);
        afz_verdict_note(v, "in %lld steps the gradients of about %lld batches were thrown away",
                         (long long)l.last_step, (long long)l.lost);
        v->from_ms = l.from_ms;
        v->to_ms = l.to_ms;
}
