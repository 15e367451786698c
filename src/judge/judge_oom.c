/* Memory that ran out, as the agent tells it: gpu-oom, also where the program caught the error, and
 * model-too-large. */
#include "judge_oom.h"

#include <stdio.h>

#include "agent_tale.h"
#include "end_clues.h"
#include "inside.h"
#include "judge_words.h"
#include "judges.h"
#include "memory_line.h"
#include "out.h"
#include "step_clock.h"

static const struct {
        unsigned again;    /* steps in which it ran out and was caught: no search for a size, */
        double fixed;      /* of what there is: the model alone fills it, whatever the batch */
        uint64_t least;    /* bytes that are worth a word */
        unsigned most;     /* parts that a batch can be cut into, and still be one */
        double eight_bits; /* of an optimizer's state, what one of 8 bits saves */
        uint64_t steps;    /* begun: from here on one was completed, and the model fits */
        unsigned lines;    /* of the program that are named */
        double kept;       /* of what is there, from which on what stays is what to look for */
} rule = {
        .again = 3,
        .fixed = 0.8,
        .least = 1 << 20,
        .most = 64,
        .eight_bits = 0.75, /* 32 bits become 8 */
        .steps = 3,         /* the optimizer's state is made in the first */
        .lines = 3,
        .kept = 0.5,
};

/* How sure. That it ran out is known; what it led to is inferred. */
static const struct {
        double fatal, caught, quiet, one, alone;
} sure = {.fatal = 0.95, .caught = 0.9, .quiet = 0.8, .one = 0.9, .alone = 0.8};

/* ---- what was there ---- */

static void put_part(struct afz_out *out, const char *name, uint64_t bytes)
{
        if (bytes >= rule.least)
                afz_out_fmt(out, "%s%s %s", out->len ? ", " : "", name, SIZE(bytes));
}

/* "parameters 1.2G, gradients 1.2G, optimizer state 2.4G, activations up to 3.1G" */
static void note_model(const struct afz_inside_model *m, struct afz_verdict *v)
{
        char text[160];
        struct afz_out out = afz_out_to(-1, text, sizeof text - 1);
        put_part(&out, "parameters", m->parameters);
        put_part(&out, "gradients", m->gradients);
        put_part(&out, "optimizer state", m->optimizer);
        put_part(&out, "buffers", m->buffers);
        put_part(&out, "activations up to", m->activations);
        put_part(&out, "batch", m->batch);
        text[out.len] = '\0';
        if (out.len > 0)
                afz_verdict_note(v, "of its memory: %s", text);
}

/* "in step 12, with a batch of 64, at train.py:33 in main()" */
static void put_moment(const struct afz_oom *oom, const struct afz_where *where, char *buf,
                       size_t cap)
{
        struct afz_out out = afz_out_to(-1, buf, cap - 1);
        struct afz_span file = afz_span_base_name(afz_span_str(where->file));
        if (oom->step > 0)
                afz_out_fmt(&out, " in step %llu", (unsigned long long)oom->step);
        if (oom->micro > 0 && oom->micro < oom->batch)
                afz_out_fmt(&out, ", with %llu of its %llu samples at once",
                            (unsigned long long)oom->micro, (unsigned long long)oom->batch);
        else if (oom->batch > 0)
                afz_out_fmt(&out, ", with a batch of %llu", (unsigned long long)oom->batch);
        if (where->line > 0)
                afz_out_fmt(&out, ", at %.*s:%d", (int)(file.n < 40 ? file.n : 40), file.p,
                            (int)where->line);
        buf[out.len] = '\0';
}

void afz_oom_note_figures(const struct afz_oom *oom, struct afz_verdict *v)
{
        if (oom->asked_bytes > 0 && oom->allocated_bytes > 0)
                afz_verdict_note(
                        v, "%s were asked for when %s were in tensors, and the framework held %s",
                        SIZE(oom->asked_bytes), SIZE(oom->allocated_bytes),
                        SIZE(oom->reserved_bytes));
        else if (oom->asked_bytes > 0)
                afz_verdict_note(v, "%s were asked for at once", SIZE(oom->asked_bytes));
}

/* "train.py:22 in forward() held 3.1G of GPU memory (41 %)" */
void afz_oom_note_sites(const struct afz_oom *oom, struct afz_verdict *v)
{
        struct afz_where where;
        uint64_t bytes, all = 0;
        (void)afz_agent_event_number(oom->sites, "total_bytes", &all);
        for (unsigned i = 0; i < rule.lines && afz_oom_site(oom, i, &where, &bytes); i++) {
                struct afz_span file = afz_span_base_name(afz_span_str(where.file));
                char part[24] = "";
                if (bytes < rule.least)
                        break;
                if (all >= bytes)
                        snprintf(part, sizeof part, " (%.0f %%)",
                                 100.0 * (double)bytes / (double)all);
                afz_verdict_note(v, "%.*s:%d%s%s%s held %s of GPU memory%s",
                                 (int)(file.n < 60 ? file.n : 60), file.p, (int)where.line,
                                 where.function[0] ? " in " : "", where.function,
                                 where.function[0] && where.function[0] != '<' ? "()" : "",
                                 SIZE(bytes), part);
        }
}

/* ---- what to change ---- */

/* The fewest equal parts of a batch that fit, by powers of two; 0: not known, or none does. A step
 * that was not finished is taken for twice as large. */
static unsigned parts_that_fit(const struct afz_oom *oom, const struct afz_inside_model *m)
{
        double all = (double)(oom->reserved_bytes > oom->allocated_bytes ? oom->reserved_bytes
                                                                         : oom->allocated_bytes);
        double own = (double)oom->allocated_bytes + (double)oom->asked_bytes - (double)m->fixed;
        unsigned parts = 2;
        if (all <= 0 || own <= 0 || m->fixed == 0)
                return 0;
        while (parts <= rule.most && (double)m->fixed + 2 * own / parts > AFZ_MEMORY_FITS * all)
                parts *= 2;
        return parts <= rule.most && parts <= oom->batch ? parts : 0;
}

uint64_t afz_oom_kept(const struct afz_flight *flight, const struct afz_oom *oom,
                      const struct afz_inside_model *m)
{
        uint64_t all, own;
        /* What was in tensors is told in the midst of a step, too: activations go with it. */
        if (m->fixed == 0 || __builtin_add_overflow(m->fixed, m->batch, &own) ||
            __builtin_add_overflow(own, m->activations, &own) ||
            !afz_inside_at(flight, AFZ_INSIDE_GPU_ALLOCATED, oom->t_ms, &all) || all <= own)
                return 0;
        /* The figures are of all ranks, the error is of one. */
        uint64_t there = all > oom->allocated_bytes ? all : oom->allocated_bytes;
        return all - own >= rule.least && (double)(all - own) >= rule.kept * (double)there
                       ? all - own
                       : 0;
}

static void put_fix(const struct afz_case *c, const struct afz_oom *oom,
                    const struct afz_inside_model *m, struct afz_verdict *v)
{
        unsigned parts = parts_that_fit(oom, m);
        uint64_t now = oom->micro > 0 ? oom->micro : oom->batch;
        uint64_t kept = afz_oom_kept(c->flight, oom, m);
        if (kept > 0)
                snprintf(v->fix, sizeof v->fix,
                         "%s stay taken from step to step by tensors that are neither the model's "
                         "nor the optimizer's; a smaller batch does not free them. Look for "
                         "outputs or losses in a list (keep loss.item(), x.detach().cpu()), or a "
                         "data set that lies on the GPU",
                         SIZE(kept));
        else if (afz_oom_in_pieces(oom))
                snprintf(v->fix, sizeof v->fix,
                         "%s were free, but in pieces: run it with "
                         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; if that does not do, "
                         "half the batch with two accumulation steps",
                         SIZE(oom->reserved_bytes - oom->allocated_bytes));
        else if (parts > 0 && now >= parts)
                snprintf(v->fix, sizeof v->fix,
                         "a batch of %llu with %u accumulation steps learns the same and should "
                         "fit; --policy adapt does that by itself where it can. Then mixed "
                         "precision (bf16) and activation checkpointing",
                         (unsigned long long)(now / parts), parts);
        else if (now == 1)
                snprintf(v->fix, sizeof v->fix,
                         "it is one sample at a time already: mixed precision (bf16) and "
                         "activation checkpointing; where samples differ, cut or leave out the "
                         "longest");
        else
                snprintf(v->fix, sizeof v->fix,
                         "halve the batch and accumulate gradients over two (--policy adapt does "
                         "that by itself where it can); then mixed precision (bf16) and activation "
                         "checkpointing");
}

/* ---- gpu-oom ---- */

static struct afz_verdict *say(const struct afz_case *c, const struct afz_oom *oom,
                               enum afz_level level, double confidence, struct afz_outcome *ret)
{
        struct afz_inside_model m = {0};
        struct afz_verdict *v = afz_outcome_add(ret, "gpu-oom", level, confidence);
        if (!v)
                return NULL;
        afz_oom_where(oom, &v->where);
        afz_oom_note_figures(oom, v);
        afz_oom_note_sites(oom, v);
        if (afz_oom_model(c->flight, oom, &m))
                note_model(&m, v);
        put_fix(c, oom, &m, v);
        v->from_ms = v->to_ms = oom->t_ms;
        return v;
}

static void say_fatal(const struct afz_case *c, const struct afz_oom *oom, struct afz_outcome *ret)
{
        char moment[108];
        struct afz_verdict *v = say(c, oom, AFZ_LEVEL_ACT, sure.fatal, ret);
        if (!v)
                return;
        put_moment(oom, &v->where, moment, sizeof moment);
        snprintf(v->summary, sizeof v->summary, "the GPU's memory ran out%s, and it ended for that",
                 moment);
}

/* Once, or before the first steps: a program that looks for the largest batch, a library that tries
 * the ways it has. Again and again, or as the last thing: something of it was not done. */
static void say_caught(const struct afz_case *c, const struct afz_tale *t, struct afz_outcome *ret)
{
        const struct afz_oom *oom = &t->last[true];
        bool again = t->swallowed_steps >= rule.again;
        bool quiet = oom->swallowed && !oom->stepped_on && (oom->step > 0 || oom->trains) &&
                     c->facts.end.how != AFZ_END_RUNNING;
        bool cell = !oom->swallowed && t->splits == 0;
        unsigned times = t->ooms[true];
        char moment[108];
        struct afz_verdict *v = say(c, oom, again || quiet || cell ? AFZ_LEVEL_WARN : AFZ_LEVEL_OK,
                                    again || cell ? sure.caught : sure.quiet, ret);
        if (!v)
                return;
        put_moment(oom, &v->where, moment, sizeof moment);
        if (times == 1)
                snprintf(v->summary, sizeof v->summary,
                         "the GPU's memory ran out once%s; the program %s", moment,
                         quiet ? "caught the error, and made no step after it"
                               : "caught the error and went on");
        else
                snprintf(v->summary, sizeof v->summary,
                         "the GPU's memory ran out %u times%s%s; the program caught the error%s%s",
                         times, moment[0] ? ", the last time" : "", moment,
                         quiet ? ", and made no step after it" : " and went on",
                         again ? ": these steps are lost" : "");
        if (again)
                afz_verdict_note(v,
                                 "it came in %u different steps: each time a batch was not "
                                 "learned, or was tried anew",
                                 t->swallowed_steps);
}

bool afz_judge_gpu_oom_told(const struct afz_case *c, struct afz_outcome *ret)
{
        struct afz_tale t;
        afz_tale_of(c->flight, &c->facts.end, afz_end_last_start(c->flight), &t);
        if (t.ooms[true] == 0)
                return false;
        if (afz_oom_is_fatal(&t.last[true], &c->facts.end))
                say_fatal(c, &t.last[true], ret);
        else if (t.swallowed[true] > 0 || t.splits == 0)
                say_caught(c, &t, ret);
        return true; /* gotten over by smaller parts: batch-too-large tells that */
}

/* ---- model-too-large ---- */

/* What it had: of a GPU what the framework could get, of the host what the job may use. */
static double limit_of(const struct afz_case *c, const struct afz_oom *oom)
{
        if (!oom->gpu)
                return afz_memory_line_of(c).bytes;
        uint64_t held = oom->reserved_bytes > oom->allocated_bytes ? oom->reserved_bytes
                                                                   : oom->allocated_bytes;
        return (double)held;
}

/* Each way with what it saves, as far as that is known. */
static void put_prices(const struct afz_inside_model *m, bool gpu, struct afz_verdict *v)
{
        struct afz_out out = afz_out_to(-1, v->fix, sizeof v->fix - 1);
        afz_out_str(&out, "activation checkpointing");
        if (m->activations >= rule.least)
                afz_out_fmt(&out, " (saves most of %s)", SIZE(m->activations));
        afz_out_str(&out, ", an 8-bit optimizer");
        if (m->optimizer >= rule.least)
                afz_out_fmt(&out, " (saves %s)", SIZE(rule.eight_bits * (double)m->optimizer));
        afz_out_str(&out, gpu ? ", weights in bf16" : ", smaller numbers (bf16)");
        if (m->parameters >= rule.least)
                afz_out_fmt(&out, " (saves %s)", SIZE((m->parameters + m->gradients) / 2));
        afz_out_str(&out,
                    gpu ? ", a smaller model, or one that is split over several devices (FSDP)"
                        : ", a smaller model, or a larger --budget");
        v->fix[out.len] = '\0';
}

static void say_large(const struct afz_case *c, const struct afz_oom *oom, bool one,
                      struct afz_outcome *ret)
{
        struct afz_inside_model m = {0};
        double limit = limit_of(c, oom);
        const char *where = oom->gpu ? "the GPU" : "what it may use";
        struct afz_verdict *v =
                afz_outcome_add(ret, "model-too-large", AFZ_LEVEL_ACT, one ? sure.one : sure.alone);
        if (!v)
                return;
        (void)afz_oom_model(c->flight, oom, &m);
        afz_oom_where(oom, &v->where);
        if (one)
                snprintf(v->summary, sizeof v->summary,
                         "the model is too large for %s: not even one sample at a time fits%s%s",
                         where, limit > 0 ? " into " : "", limit > 0 ? SIZE(limit) : "");
        else
                snprintf(
                        v->summary, sizeof v->summary,
                        "the model is too large for %s: it alone, without any data, takes %s of %s",
                        where, SIZE(m.fixed), SIZE(limit));
        afz_oom_note_figures(oom, v);
        afz_oom_note_sites(oom, v);
        note_model(&m, v);
        put_prices(&m, oom->gpu, v);
        v->from_ms = v->to_ms = oom->t_ms;
}

/* Whether it ended for want of that memory; on the host it may have been stopped without a word. */
static bool ended_for(const struct afz_case *c, const struct afz_tale *t, bool gpu,
                      struct afz_oom *ret)
{
        *ret = t->last[gpu];
        if (t->ooms[gpu] > 0 && afz_oom_is_fatal(ret, &c->facts.end))
                return true;
        if (gpu || !afz_memory_line_of(c).met)
                return false;
        *ret = (struct afz_oom){.t_ms = c->flight->end_ms};
        return true;
}

/* Steps that were begun until then in the attempt that ended: who made some has a model that
 * fits. */
static uint64_t steps_until(const struct afz_flight *flight, const struct afz_oom *oom)
{
        uint32_t start_ms = afz_end_last_start(flight);
        if (oom->step > 0)
                return oom->step;
        const struct afz_track *trainer = afz_inside_trainer(flight, start_ms);
        int64_t steps = afz_step_count(afz_track_column(trainer, AFZ_INSIDE_STEP), start_ms,
                                       oom->t_ms < UINT32_MAX ? oom->t_ms + 1 : oom->t_ms);
        return steps > 0 ? (uint64_t)steps : 0;
}

static bool not_even_one(const struct afz_flight *flight, const struct afz_oom *oom)
{
        bool one = oom->micro == 1 || (oom->micro == 0 && oom->batch == 1);
        return one && !afz_oom_in_pieces(oom) && steps_until(flight, oom) < rule.steps;
}

AFZ_JUDGE(model_large)
{
        struct afz_tale t;
        struct afz_oom oom;
        struct afz_inside_model m;
        if (afz_leak_said(ret))
                return;
        afz_tale_of(c->flight, &c->facts.end, afz_end_last_start(c->flight), &t);
        for (int gpu = 1; gpu >= 0; gpu--) {
                if (!ended_for(c, &t, gpu, &oom))
                        continue;
                bool one = not_even_one(c->flight, &oom);
                double limit = limit_of(c, &oom);
                bool alone = limit > 0 && afz_oom_model(c->flight, &oom, &m) &&
                             (double)m.fixed >= rule.fixed * limit;
                if (!one && !alone)
                        continue;
                say_large(c, &oom, one, ret);
                return;
        }
}
