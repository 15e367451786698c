/* What is kept of steps that are over, by what the framework says is there: held-after-use, and
 * leak:retained-graph of a leak whose kind was not known, or that is in GPU memory alone. */
#include <stdio.h>
#include <string.h>

#include "agent_tale.h"
#include "end_clues.h"
#include "inside.h"
#include "judge_words.h"
#include "judges.h"
#include "leak_kind.h"
#include "memory_line.h"
#include "shape.h"
#include "step_clock.h"
#include "stretch.h"

static const struct {
        uint64_t least_bytes;         /* of what is held: less is a batch and its results */
        double share;                 /* of what there is, from which on it is worth a word */
        double full;                  /* of that, from which on it hurts */
        double graph;                 /* of the growth: then it is what leaks */
        uint32_t gpu_ms;              /* for so long GPU memory must have risen all the time, */
        uint32_t gpu_fatal_ms;        /* or so long, if it ran out in the end; */
        size_t gpu_looks;             /* or, where it was full sooner, in so many looks, */
        double gpu_most;              /* and by this part of what there was in the end; */
        int64_t gpu_steps;            /* over so many steps, */
        uint64_t gpu_bytes;           /* by so much, */
        double gpu_share;             /* and by this part of what was there */
        double of_activations;        /* of those of a step: what is kept of each is its graph */
        double like_least, like_most; /* of them: growth on the host that is told to be like it */
        double gpu_full; /* of the GPU: below that a run that did not run out is nobody's business
                          */
        double batch_grows; /* to so much of what it was: then it is the data */
} rule = {
        .least_bytes = 256 << 20,
        .share = 0.25,
        .full = 0.8,
        .graph = 0.3,
        .gpu_ms = 60000, /* a replay buffer, a cache of features fill up as well */
        .gpu_fatal_ms = 10000,
        .gpu_looks = 5, /* of a second each */
        .gpu_most = 0.5,
        .gpu_steps = 50,
        .gpu_bytes = 256 << 20,
        .gpu_share = 0.1,
        .of_activations = 0.3,
        .like_least = 0.7,
        .like_most = 1.5,
        .gpu_full = 0.7,
        .batch_grows = 1.1,
};

static const struct {
        double held, graph, gpu, gpu_fatal;
} sure = {.held = 0.75, .graph = 0.8, .gpu = 0.7, .gpu_fatal = 0.85};

/* ---- held-after-use ---- */

/* GPU memory that was neither the model's nor the optimizer's already when the first step was made:
 * a data set that lies there, a second model. It is in use. */
static uint64_t there_before(const struct afz_track *trainer)
{
        static const enum afz_metric known[] = {AFZ_INSIDE_GPU_PARAMETERS, AFZ_INSIDE_GPU_GRADIENTS,
                                                AFZ_INSIDE_GPU_OPTIMIZER, AFZ_INSIDE_GPU_BUFFERS};
        const struct afz_column *all = afz_track_column(trainer, AFZ_INSIDE_GPU_ALLOCATED);
        int64_t part;
        if (!all || all->count == 0)
                return 0;
        double rest = (double)all->point[0].most;
        for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++)
                if (afz_column_last(afz_track_column(trainer, known[i]), all->point[0].t_ms + 1,
                                    &part))
                        rest -= (double)part;
        return afz_judge_positive(rest);
}

/* What there is to be had: of the GPU that the job is on, or of the host. */
static double all_of(const struct afz_case *c, bool gpu, double *ret_peak)
{
        struct afz_memory_line line = afz_memory_line_of(c);
        const struct afz_track *track;
        int64_t total, used;
        *ret_peak = line.peak_bytes;
        if (!gpu)
                return line.bytes;
        for (size_t at = 0; (track = afz_flight_next(c->flight, AFZ_KIND_GPU, &at));)
                if (afz_job_may_use_gpu(c->flight, track->subject.id) &&
                    afz_column_last(afz_track_column(track, AFZ_GPU_MEM_TOTAL), UINT32_MAX,
                                    &total) &&
                    afz_column_most(afz_track_column(track, AFZ_GPU_MEM_USED), 0, UINT32_MAX,
                                    &used)) {
                        *ret_peak = (double)used;
                        return (double)total;
                }
        return 0;
}

AFZ_JUDGE(held)
{
        uint32_t start_ms = afz_end_last_start(c->flight), at_ms;
        const struct afz_track *trainer = afz_inside_trainer(c->flight, start_ms);
        bool gpu = trainer && afz_track_column(trainer, AFZ_INSIDE_GPU_ALLOCATED);
        struct afz_tale t;
        uint64_t held;
        double peak;
        if (!trainer || afz_leak_said(ret) ||
            !afz_inside_most(c->flight, AFZ_INSIDE_HELD, start_ms, UINT32_MAX, &held, &at_ms))
                return;
        uint64_t before = there_before(trainer);
        held = held > before ? held - before : 0;
        double all = all_of(c, gpu, &peak);
        afz_tale_of(c->flight, &c->facts.end, start_ms, &t);
        bool ran_out = t.ooms[gpu] > 0 && t.last[gpu].t_ms >= at_ms;
        if (held < rule.least_bytes || all <= 0 || (double)held < rule.share * all ||
            (!ran_out && peak < rule.full * all))
                return; /* there is room: it may hold what it likes */
        struct afz_verdict *v = afz_outcome_add(
                ret, "held-after-use", ran_out ? AFZ_LEVEL_ACT : AFZ_LEVEL_WARN, sure.held);
        if (!v)
                return;
        snprintf(v->summary, sizeof v->summary,
                 "%s of %s stay taken when training is left, by tensors that are neither the "
                 "model's nor the optimizer's%s",
                 SIZE(held), gpu ? "GPU memory" : "memory",
                 ran_out ? ", and what came after it ran out of memory" : "");
        snprintf(v->fix, sizeof v->fix,
                 "before the evaluation, or at the end of the cell: del loss, output, batch (and "
                 "what keeps them: a list, an exception's traceback), then gc.collect()%s",
                 gpu ? " and torch.cuda.empty_cache()" : "");
        afz_verdict_note(v, "seen %s after the start, of %s in all", LASTS(at_ms), SIZE(all));
        v->from_ms = at_ms;
        v->to_ms = ran_out ? t.last[gpu].t_ms : at_ms;
}

/* ---- leak:retained-graph ---- */

static const struct afz_leak_kind *kind_of_graph(void)
{
        const struct afz_leak_kind *kind = NULL;
        for (unsigned i = 0; (kind = afz_leak_kind_at(i)); i++)
                if (strcmp(kind->id, "leak:retained-graph") == 0)
                        break;
        return kind;
}

/* What grows with each step is about what a step keeps for its way back: no proof, but a hint. */
static void note_activations(const struct afz_flight *flight, const struct afz_track *trainer,
                             struct afz_verdict *v)
{
        const struct afz_column *steps = afz_track_column(trainer, AFZ_INSIDE_STEP);
        const struct afz_column *need = afz_flight_need(flight);
        uint32_t from_ms, to_ms;
        int64_t activations, first, last;
        if (!afz_column_most(afz_track_column(trainer, AFZ_INSIDE_ACTIVATIONS), 0, UINT32_MAX,
                             &activations) ||
            activations < 1 << 20 || !afz_step_steady(steps, 3, &from_ms, &to_ms) ||
            !afz_column_last(need, from_ms, &first) || !afz_column_last(need, to_ms + 1, &last))
                return;
        int64_t made = afz_step_count(steps, from_ms, to_ms + 1);
        double each = made > 0 ? ((double)last - (double)first) / (double)made : 0;
        if (made >= rule.gpu_steps && each >= rule.like_least * (double)activations &&
            each <= rule.like_most * (double)activations)
                afz_verdict_note(v,
                                 "%s with every step is about what the activations of one take "
                                 "(%s): perhaps something is kept together with its graph",
                                 SIZE(each), SIZE(activations));
}

/* A leak that was said on the host: tensors that hang on a graph were seen to be that much. */
AFZ_JUDGE(graph_kept)
{
        const struct afz_leak_kind *kind = kind_of_graph();
        const struct afz_column *need = afz_flight_need(c->flight);
        uint32_t start_ms = afz_end_last_start(c->flight), at_ms, first_ms;
        uint64_t held;
        int64_t first, most;
        struct afz_verdict *v = NULL;
        for (unsigned i = 0; i < ret->verdicts && !v; i++)
                if (strcmp(ret->verdict[i].id, "leak") == 0 ||
                    strcmp(ret->verdict[i].id, "leak:retained-history") == 0)
                        v = &ret->verdict[i];
        const struct afz_track *trainer = afz_inside_trainer(c->flight, start_ms);
        if (v && trainer)
                note_activations(c->flight, trainer, v);
        if (!v || !kind || !trainer || afz_track_column(trainer, AFZ_INSIDE_GPU_ALLOCATED) ||
            !afz_step_first(afz_track_column(trainer, AFZ_INSIDE_STEP), &first_ms) ||
            !afz_inside_most(c->flight, AFZ_INSIDE_HELD, start_ms, UINT32_MAX, &held, &at_ms) ||
            !afz_column_last(need, first_ms + 1, &first) ||
            !afz_column_most(need, first_ms, UINT32_MAX, &most) ||
            (double)held < rule.graph * ((double)most - (double)first))
                return;
        snprintf(v->id, sizeof v->id, "%s", kind->id);
        snprintf(v->fix, sizeof v->fix, "%s", kind->fix);
        v->confidence = v->confidence < sure.graph ? v->confidence : sure.graph;
        afz_verdict_note(v,
                         "when training was left, %s were in tensors that keep their graph alive",
                         SIZE(held));
}

/* Batches that become larger (longer sentences, larger pictures) leave larger results behind. */
static bool grows_with_batch(const struct afz_flight *flight, const struct afz_steady *s)
{
        uint64_t first, last;
        return afz_inside_at(flight, AFZ_INSIDE_BATCH_BYTES, s->from_ms, &first) &&
               afz_inside_at(flight, AFZ_INSIDE_BATCH_BYTES, s->to_ms, &last) &&
               (double)last > rule.batch_grows * (double)first;
}

/* Full within seconds: a short way, but it rose from each look to the next, did not slow down, and
 * is most of what there was. The first looks are of the start. */
static bool climbs(const struct afz_column *all, uint32_t end_ms, struct afz_steady *ret)
{
        size_t count = all->count;
        while (count > 0 && all->point[count - 1].t_ms > end_ms)
                count--;
        size_t first = 1 + count / 4, middle = first + (count - first) / 2;
        if (count < first + rule.gpu_looks)
                return false;
        const struct afz_point *p = all->point;
        for (size_t i = first + 1; i < count; i++)
                if (p[i].mean <= p[i - 1].mean)
                        return false;
        double earlier = (double)p[middle].mean - (double)p[first].mean;
        double later = (double)p[count - 1].mean - (double)p[middle].mean;
        *ret = (struct afz_steady){.first = p[first].mean,
                                   .last = p[count - 1].mean,
                                   .from_ms = p[first].t_ms,
                                   .to_ms = p[count - 1].t_ms};
        return later >= earlier / 2 && earlier + later >= rule.gpu_most * (double)p[count - 1].mean;
}

/* What a step leaves in GPU memory, looked at in each when the optimizer is called: activations are
 * gone by then. */
AFZ_JUDGE(gpu_leak)
{
        uint32_t start_ms = afz_end_last_start(c->flight);
        const struct afz_track *trainer = afz_inside_trainer(c->flight, start_ms);
        const struct afz_column *all = afz_track_column(trainer, AFZ_INSIDE_GPU_ALLOCATED);
        struct afz_steady s;
        struct afz_tale t;
        int64_t activations = 0;
        if (afz_leak_said(ret))
                return;
        afz_tale_of(c->flight, &c->facts.end, start_ms, &t);
        bool fatal = t.ooms[true] > 0 && afz_oom_is_fatal(&t.last[true], &c->facts.end);
        if (!all ||
            (!afz_shape_steady(all, AFZ_WAY_UP, fatal ? rule.gpu_fatal_ms : rule.gpu_ms, &s) &&
             !(fatal && climbs(all, t.last[true].t_ms, &s))))
                return;
        double grown = (double)s.last - (double)s.first, peak, there = all_of(c, true, &peak);
        if (grows_with_batch(c->flight, &s) ||
            (!fatal && (there <= 0 || (double)s.last < rule.gpu_full * there)))
                return;
        int64_t steps =
                afz_step_count(afz_track_column(trainer, AFZ_INSIDE_STEP), s.from_ms, s.to_ms);
        if (steps < rule.gpu_steps || grown < (double)rule.gpu_bytes ||
            grown < rule.gpu_share * (double)s.first)
                return;
        (void)afz_column_most(afz_track_column(trainer, AFZ_INSIDE_GPU_ACTIVATIONS), 0, UINT32_MAX,
                              &activations);
        double each = grown / (double)steps;
        bool graph = activations > 0 && each >= rule.of_activations * (double)activations;
        const struct afz_leak_kind *kind = kind_of_graph();
        struct afz_verdict *v = afz_outcome_add(ret, graph ? "leak:retained-graph" : "leak:gpu",
                                                fatal ? AFZ_LEVEL_ACT : AFZ_LEVEL_WARN,
                                                fatal ? sure.gpu_fatal : sure.gpu);
        if (!v)
                return;
        snprintf(v->summary, sizeof v->summary,
                 "GPU memory grows by %s with every step and never comes back%s: %s after %s, %s "
                 "after %s",
                 SIZE(each), graph ? ", which is what a step's graph takes" : "", SIZE(s.first),
                 LASTS(s.from_ms), SIZE(s.last), LASTS(s.to_ms));
        snprintf(v->fix, sizeof v->fix, "%s",
                 graph && kind
                         ? kind->fix
                         : "look for tensors that are kept from each step (a list of losses or "
                           "outputs, a hidden state that goes on): keep loss.item(), "
                           "x.detach().cpu()");
        afz_verdict_note(v,
                         "tensors of the framework, looked at when the optimizer is called: what a "
                         "step needs for itself is gone by then");
        if (activations > 0)
                afz_verdict_note(v, "the activations of one step take %s", SIZE(activations));
        v->from_ms = s.from_ms;
        v->to_ms = s.to_ms;
}
