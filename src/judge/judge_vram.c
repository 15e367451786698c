/* Why a GPU's memory ran out where the batch is not to blame: data that lies there whole, and room
 * that is there but in pieces. */
#include <stdio.h>

#include "end_clues.h"
#include "judge_oom.h"
#include "judge_words.h"
#include "judges.h"
#include "memory_line.h"

static const struct {
        double pieces; /* of what the framework held, from which on it is more than the last gaps */
        double line;   /* of what stays, that one line made: it is this that stays */
        double ever;   /* of what was there at last, that was there at every look before */
} rule = {.pieces = 0.2, .line = 0.5, .ever = 0.5};

/* The figures are the allocator's own; that they are the cause is inferred. */
static const struct {
        double pieces, data;
} sure = {.pieces = 0.85, .data = 0.8};

/* The last time that a GPU's memory ran out, if the run ended for that or was hurt by it: gpu-oom
 * is said there at *warn* or more. */
static bool ran_out(const struct afz_case *c, struct afz_oom *ret, enum afz_level *ret_level)
{
        struct afz_outcome said = {0};
        struct afz_tale t;
        afz_tale_of(c->flight, &c->facts.end, afz_end_last_start(c->flight), &t);
        if (!afz_judge_gpu_oom_told(c, &said) || said.verdicts == 0 ||
            said.verdict[0].level < AFZ_LEVEL_WARN)
                return false;
        *ret = t.last[true];
        *ret_level = said.verdict[0].level;
        return true;
}

static void begin(const struct afz_oom *oom, struct afz_verdict *v)
{
        afz_oom_note_figures(oom, v);
        afz_oom_note_sites(oom, v);
        v->from_ms = v->to_ms = oom->t_ms;
}

AFZ_JUDGE(gpu_fragmentation)
{
        struct afz_oom oom;
        enum afz_level level;
        if (!ran_out(c, &oom, &level) || !afz_oom_in_pieces(&oom))
                return;
        uint64_t pieces = oom.reserved_bytes - oom.allocated_bytes;
        if ((double)pieces < rule.pieces * (double)oom.reserved_bytes)
                return;
        struct afz_verdict *v = afz_outcome_add(ret, "gpu-fragmentation", level, sure.pieces);
        if (!v)
                return;
        afz_oom_where(&oom, &v->where);
        snprintf(v->summary, sizeof v->summary,
                 "the GPU's memory is in pieces: %s of the %s that the framework holds were free, "
                 "and none of it was %s in one piece",
                 SIZE(pieces), SIZE(oom.reserved_bytes), SIZE(oom.asked_bytes));
        begin(&oom, v);
        snprintf(v->fix, sizeof v->fix,
                 "run it with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; keep what stays in "
                 "one tensor that is made once (torch.empty, then copied into) rather than in many "
                 "that are made between others");
}

/* Data lies there before the first step. What is kept of each step, or comes and goes with it, was
 * not there at the first look, or not at all of them. */
static bool was_ever_there(const struct afz_flight *flight, const struct afz_oom *oom)
{
        uint32_t start_ms = afz_end_last_start(flight);
        const struct afz_column *all =
                afz_track_column(afz_inside_trainer(flight, start_ms), AFZ_INSIDE_GPU_ALLOCATED);
        int64_t least, last;
        uint32_t to_ms = oom->t_ms < UINT32_MAX ? oom->t_ms + 1 : oom->t_ms;
        return afz_column_least(all, start_ms, to_ms, &least) &&
               afz_column_last(all, to_ms, &last) && (double)least >= rule.ever * (double)last;
}

AFZ_JUDGE(dataset_in_vram)
{
        struct afz_oom oom;
        enum afz_level level;
        struct afz_inside_model m;
        struct afz_where where;
        uint64_t bytes;
        if (afz_leak_said(ret) || !ran_out(c, &oom, &level) || !afz_oom_model(c->flight, &oom, &m))
                return;
        uint64_t kept = afz_oom_kept(c->flight, &oom, &m);
        if (kept == 0 || !afz_oom_site(&oom, 0, &where, &bytes) ||
            (double)bytes < rule.line * (double)kept || !was_ever_there(c->flight, &oom))
                return;
        struct afz_verdict *v = afz_outcome_add(ret, "dataset-in-vram", level, sure.data);
        if (!v)
                return;
        v->where = where;
        snprintf(v->summary, sizeof v->summary,
                 "the data lies on the GPU whole: %s stay there from step to step that are neither "
                 "the model's nor the optimizer's",
                 SIZE(kept));
        begin(&oom, v);
        snprintf(v->fix, sizeof v->fix,
                 "keep the data in RAM or in a file, and put one batch at a time onto the GPU "
                 "(x.cuda(non_blocking=True) from a DataLoader with pin_memory=True, or "
                 "antifreeze.Loader(..., device=\"cuda\"))");
}
