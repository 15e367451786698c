/* leak:retrace: TensorFlow makes a new graph, or new variables, with every step. Where the memory
 * is seen to leak, it is told what leaks. */
#include <stdio.h>
#include <string.h>

#include "end_clues.h"
#include "inside.h"
#include "judges.h"

/* Each shape of a batch is traced once, an evaluation once more: that ends. Models that are made
 * one after the other make variables, but not with each step. */
static const struct {
        double per_step;
        double looks;   /* of those with steps, in which that held; */
        double late;    /* and of those of the later half */
        unsigned least; /* looks with steps */
        int64_t traces, variables;
        double sure;
} rule = {
        .per_step = 0.3,
        .looks = 0.8,
        .late = 0.9,
        .least = 4,
        .traces = 30,
        .variables = 100,
        .sure = 0.85,
};

static bool goes_on(const struct afz_track *trainer, enum afz_metric metric, int64_t least,
                    struct afz_inside_pace *ret)
{
        return afz_inside_pace_of(trainer, metric, rule.per_step, ret) &&
               ret->looks >= rule.least && ret->counted >= least &&
               ret->holding >= rule.looks * ret->looks &&
               ret->late_holding >= rule.late * (ret->looks - ret->looks / 2);
}

/* The leak that was said already is this one: its figures stand, its reason is known now. */
static struct afz_verdict *find_leak(struct afz_outcome *ret)
{
        for (unsigned i = 0; i < ret->verdicts; i++)
                if (afz_verdict_is_of(ret->verdict[i].id, "leak"))
                        return &ret->verdict[i];
        return NULL;
}

AFZ_JUDGE(retrace)
{
        const struct afz_track *trainer =
                afz_inside_trainer(c->flight, afz_end_last_start(c->flight));
        struct afz_inside_pace p;
        bool traces = trainer && goes_on(trainer, AFZ_INSIDE_RETRACES, rule.traces, &p);
        if (!traces && !(trainer && goes_on(trainer, AFZ_INSIDE_VARIABLES, rule.variables, &p)))
                return;
        struct afz_verdict *v = find_leak(ret);
        if (v)
                snprintf(v->id, sizeof v->id, "leak:retrace");
        else
                v = afz_outcome_add(ret, "leak:retrace", AFZ_LEVEL_WARN, rule.sure);
        if (!v)
                return;
        if (traces)
                snprintf(v->summary, sizeof v->summary,
                         "a tf.function is traced anew in nearly every step (%lld times in %lld "
                         "steps): each time a new graph is made and kept, which takes memory, and "
                         "far longer than the step itself",
                         (long long)p.counted, (long long)p.steps);
        else
                snprintf(v->summary, sizeof v->summary,
                         "new tf.Variables are made in nearly every step and stay: %lld in %lld "
                         "steps",
                         (long long)p.counted, (long long)p.steps);
        snprintf(
                v->fix, sizeof v->fix, "%s",
                traces ? "make the tf.function once, outside of the loop; hand it tensors, not "
                         "Python numbers or objects (each new value is a new graph), and give it "
                         "an input_signature, or reduce_retracing=True, for shapes that change"
                       : "make variables, layers, optimizers and metrics once, before the loop, "
                         "and "
                         "assign to them (v.assign(...)); tf.keras.backend.clear_session() between "
                         "models");
        afz_verdict_note(v,
                         traces ? "%lld new graphs in %lld steps, to the end"
                                : "%lld more variables in %lld steps, to the end",
                         (long long)p.counted, (long long)p.steps);
        if (v->to_ms == 0) {
                v->from_ms = p.from_ms;
                v->to_ms = p.to_ms;
        }
}
