/* What goes wrong on a GPU: gpu-oom, gpu-held-by-other, gpu-preallocated, gpu-spill.
 *
 * They speak only of GPUs that the job was seen on. A GPU whose memory is the
 * machine's own is none of theirs: there the judges of RAM speak. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "judge_oom.h"
#include "judge_words.h"
#include "judges.h"
#include "stretch.h"

static const struct {
        double used_by_job; /* share of VRAM that came while the job lived: it is its own */
        double full;        /* share of VRAM, from which on nothing more fits */
        double full_always; /* the same, where it had stood there for long */
        uint32_t last_ms;   /* before the job left the GPU, in which it must have been full */
        uint32_t leave_ms;  /* between that and its end: it ended for it */
        double grew;        /* share of VRAM by which it had grown */
        uint32_t grew_ms;   /* in this time */
        double gave_back;   /* share of VRAM that was let go at once after it was full */
        uint32_t gave_ms;   /* at once */
        uint32_t lived_ms;  /* and it went on for so long */
        double others;      /* share of VRAM that others hold */
        double tight;       /* share of VRAM that is left, at which that hurts */
        double pre_part, pre_part_off; /* share that JAX takes, and how far off it may be */
        double pre_all;                /* share from which on it is "all of it" */
        double pre_start;              /* share before the jump */
        uint32_t pre_jump_ms;          /* the jump */
        double pre_flat;               /* share by which it moves after that */
        uint32_t pre_flat_ms;          /* for so long */
        double spill_full;             /* share of VRAM in use while system RAM is taken instead */
        double spill;                  /* share of VRAM that was taken of it */
        int64_t spill_bytes;           /* and at least */
} at = {
        .used_by_job = 0.10,  /* a tenth: a desktop moves by less */
        .full = 0.95,         /* frameworks keep a few hundred MB for themselves and the driver */
        .full_always = 0.98,  /* a cache that fills what there is stands just below */
        .last_ms = 5000,      /* ten looks */
        .leave_ms = 15000,    /* printing a traceback and ending takes seconds */
        .grew = 0.05,         /* a twentieth */
        .grew_ms = 30000,     /* a few steps */
        .gave_back = 0.25,    /* a quarter: more than one step's buffers */
        .gave_ms = 5000,      /* between a few looks */
        .lived_ms = 10000,    /* it did not end for it */
        .others = 0.50,       /* most of it is not the job's */
        .tight = 0.10,        /* a tenth */
        .pre_part = 0.75,     /* XLA_PYTHON_CLIENT_MEM_FRACTION's default */
        .pre_part_off = 0.02, /* the context's own memory */
        .pre_all = 0.90,      /* TensorFlow takes all but some hundred MB */
        .pre_start = 0.05,    /* a CUDA context alone */
        .pre_jump_ms = 3000,  /* one allocation; loading that much from disk takes longer */
        .pre_flat = 0.005,    /* half a per cent: compiled programs come and go */
        .pre_flat_ms = 20000, /* real training moves by then */
        .spill_full = 0.95,   /* the driver moves buffers out only when it must */
        .spill = 0.10,        /* a tenth: staging buffers are less */
        .spill_bytes = 512 << 20, /* 512 MiB: staging buffers are less */
};

/* ---- who ---- */

/* "python3 (process 4711)"; without a name "process 4711": its name could not be read, as it is
 * another namespace's, or was gone by then. One of the job is known by its name all the same. */
#define WHO(flight, proc) who_is((flight), (proc), (char[80]){0}, 80)

static const char *who_is(const struct afz_flight *flight, const struct afz_track *proc, char *buf,
                          size_t cap)
{
        unsigned long long pid = proc->subject.id & UINT32_MAX;
        const struct afz_track *own = afz_flight_find(flight, AFZ_KIND_PROC, pid);
        const char *name = strcmp(proc->name, "?") != 0 ? proc->name : own ? own->name : "";
        if (name[0] != '\0')
                snprintf(buf, cap, "%.40s (process %llu)", name, pid);
        else
                snprintf(buf, cap, "process %llu", pid);
        return buf;
}

/* ---- a GPU and the job on it ---- */

struct place {
        const struct afz_track *gpu;
        int64_t total_bytes;
        const struct afz_column *used;
        uint32_t from_ms, to_ms; /* when the job was on it */
        int64_t ours_bytes;      /* the most it held; 0: the driver does not say */
};

static void find_processes(const struct afz_flight *flight, struct place *p)
{
        const struct afz_track *proc;
        int64_t bytes;
        for (size_t cursor = 0; (proc = afz_flight_next(flight, AFZ_KIND_GPU_PROC, &cursor));) {
                if (proc->subject.id >> 32 != p->gpu->subject.id || !afz_gpu_proc_is_ours(proc))
                        continue;
                p->from_ms = proc->first_ms < p->from_ms ? proc->first_ms : p->from_ms;
                p->to_ms = proc->last_ms > p->to_ms ? proc->last_ms : p->to_ms;
                if (afz_column_most(afz_track_column(proc, AFZ_GPU_PROC_MEM), 0, UINT32_MAX,
                                    &bytes) &&
                    bytes > p->ours_bytes)
                        p->ours_bytes = bytes;
        }
}

/* Where no process is told of (in a container), a GPU whose memory filled while the job lived was
 * used by it. */
static void guess_from_use(const struct afz_flight *flight, struct place *p)
{
        const struct afz_track *job = afz_flight_job(flight);
        int64_t least, most;
        if (!job || afz_flight_one(flight, AFZ_KIND_GPU_PROC) ||
            !afz_column_least(p->used, job->first_ms, job->last_ms + 1, &least) ||
            !afz_column_most(p->used, job->first_ms, job->last_ms + 1, &most) ||
            (double)most - (double)least < at.used_by_job * (double)p->total_bytes)
                return;
        p->from_ms = job->first_ms;
        p->to_ms = job->last_ms;
}

/* False: the job was not there, or too little is known. */
static bool find_place(const struct afz_flight *flight, const struct afz_track *gpu,
                       struct place *ret)
{
        int64_t unified = 0;
        struct place p = {.gpu = gpu, .from_ms = UINT32_MAX};
        (void)afz_column_last(afz_track_column(gpu, AFZ_GPU_UNIFIED), UINT32_MAX, &unified);
        p.used = afz_track_column(gpu, AFZ_GPU_MEM_USED);
        if (unified || !p.used ||
            !afz_column_last(afz_track_column(gpu, AFZ_GPU_MEM_TOTAL), UINT32_MAX,
                             &p.total_bytes) ||
            p.total_bytes <= 0)
                return false;
        find_processes(flight, &p);
        if (p.from_ms > p.to_ms)
                guess_from_use(flight, &p);
        *ret = p;
        return p.from_ms <= p.to_ms;
}

static const char *name_of(const struct afz_track *gpu)
{
        return gpu->name[0] ? gpu->name : "GPU";
}

static double share_of(const struct place *p, int64_t bytes)
{
        return (double)bytes / (double)p->total_bytes;
}

/* Its own exit status for failure, or the signal of a program that gave up. */
static bool is_well(const struct afz_case *c)
{
        return c->facts.end.how == AFZ_END_EXIT && c->facts.end.code == 0;
}

static bool ended_in_error(const struct afz_case *c)
{
        const struct afz_end *end = &c->facts.end;
        return (end->how == AFZ_END_EXIT && end->code > 0 && end->code <= 128) ||
               (end->how == AFZ_END_SIGNAL && end->code == SIGABRT);
}

/* ---- gpu-preallocated ---- */

static bool jumps_to(const struct place *p, const struct afz_track *proc, int64_t *ret_bytes)
{
        const struct afz_column *mem = afz_track_column(proc, AFZ_GPU_PROC_MEM);
        int64_t start = 0, least, most;
        uint32_t after = proc->first_ms + at.pre_jump_ms;
        if (proc->last_ms < after + at.pre_flat_ms || after < proc->first_ms)
                return false;
        /* It is seen at its full size, or as a mere context first. */
        size_t i = mem ? afz_column_at(mem, 0) : 0;
        for (; mem && i < mem->count && share_of(p, mem->point[i].most) <= at.pre_start; i++)
                start = (int64_t)mem->point[i].t_ms;
        if (start > 0)
                after = (uint32_t)start + at.pre_jump_ms;
        if (!afz_column_least(mem, after, UINT32_MAX, &least) ||
            !afz_column_most(mem, after, UINT32_MAX, &most) ||
            proc->last_ms < after + at.pre_flat_ms)
                return false;
        double share = share_of(p, most), off = share - at.pre_part;
        *ret_bytes = most;
        return share_of(p, most) - share_of(p, least) <= at.pre_flat &&
               (share >= at.pre_all || (off < at.pre_part_off && off > -at.pre_part_off));
}

static bool is_preallocated(const struct afz_flight *flight, const struct place *p,
                            const struct afz_track **ret_proc, int64_t *ret_bytes)
{
        const struct afz_track *proc;
        for (size_t cursor = 0; (proc = afz_flight_next(flight, AFZ_KIND_GPU_PROC, &cursor));)
                if (proc->subject.id >> 32 == p->gpu->subject.id && afz_gpu_proc_is_ours(proc) &&
                    jumps_to(p, proc, ret_bytes)) {
                        *ret_proc = proc;
                        return true;
                }
        return false;
}

/* The largest process of somebody else there; 0: none. */
static int64_t others_on(const struct afz_flight *flight, const struct place *p,
                         const struct afz_track **ret_largest)
{
        const struct afz_track *proc;
        double sum = 0, most = -1;
        *ret_largest = NULL;
        for (size_t cursor = 0; (proc = afz_flight_next(flight, AFZ_KIND_GPU_PROC, &cursor));) {
                double mean = afz_mean_or(afz_track_column(proc, AFZ_GPU_PROC_MEM), p->from_ms,
                                          p->to_ms + 1, 1);
                if (proc->subject.id >> 32 != p->gpu->subject.id || afz_gpu_proc_is_ours(proc) ||
                    mean < 0)
                        continue;
                sum += mean;
                if (mean > most) {
                        most = mean;
                        *ret_largest = proc;
                }
        }
        return sum < (double)INT64_MAX ? (int64_t)sum : 0;
}

AFZ_JUDGE(gpu_preallocated)
{
        const struct afz_track *gpu, *proc, *other;
        struct place p;
        int64_t bytes;
        for (size_t cursor = 0; (gpu = afz_flight_next(c->flight, AFZ_KIND_GPU, &cursor));) {
                if (!find_place(c->flight, gpu, &p) ||
                    !is_preallocated(c->flight, &p, &proc, &bytes))
                        continue;
                /* Nobody is hurt by it unless somebody else wants some, or it ran out inside. */
                bool hurts = others_on(c->flight, &p, &other) > 0 || ended_in_error(c);
                struct afz_verdict *v = afz_outcome_add(
                        ret, "gpu-preallocated", hurts ? AFZ_LEVEL_WARN : AFZ_LEVEL_OK, 0.75);
                if (!v)
                        return;
                snprintf(v->summary, sizeof v->summary,
                         "it took %.0f %% of the memory of %.60s at once, before it knew what it "
                         "needs",
                         100 * share_of(&p, bytes), name_of(gpu));
                snprintf(v->fix, sizeof v->fix,
                         "JAX: XLA_PYTHON_CLIENT_PREALLOCATE=false; TensorFlow: "
                         "TF_FORCE_GPU_ALLOW_GROWTH=true; then it takes what it uses, and the "
                         "figures tell its true need");
                afz_verdict_note(v, "%s: %s of %s, and not a byte more or less after that",
                                 WHO(c->flight, proc), SIZE(bytes), SIZE(p.total_bytes));
                v->from_ms = p.from_ms;
                v->to_ms = p.to_ms;
                return;
        }
}

/* ---- gpu-oom ---- */

struct full {
        struct place place;
        int64_t most_bytes;
        uint32_t at_ms;
        double sure;
};

/* Full when it left, and it left for its end. */
static bool full_at_end(const struct afz_case *c, const struct place *p, struct full *ret)
{
        const struct afz_track *proc;
        uint32_t from = p->to_ms > at.last_ms ? p->to_ms - at.last_ms : 0;
        uint32_t before = from > at.grew_ms ? from - at.grew_ms : 0;
        int64_t most, was;
        if (!ended_in_error(c) || c->flight->end_ms > p->to_ms + at.leave_ms ||
            is_preallocated(c->flight, p, &proc, &was) ||
            !afz_column_most(p->used, from, p->to_ms + 1, &most) || share_of(p, most) < at.full)
                return false;
        bool grew = before <= p->from_ms || (afz_column_last(p->used, before, &was) &&
                                             share_of(p, most) - share_of(p, was) >= at.grew);
        if (!grew && share_of(p, most) < at.full_always)
                return false;
        *ret = (struct full){*p, most, p->to_ms, grew ? 0.85 : 0.65};
        return true;
}

/* Full, then a large part let go at once, and it went on: it caught the error, or its framework
 * emptied its caches and tried again. */
static bool full_on_the_way(const struct place *p, struct full *ret)
{
        for (size_t i = afz_column_at(p->used, p->from_ms); i < p->used->count; i++) {
                const struct afz_point *a = &p->used->point[i];
                int64_t least;
                if (a->t_ms > p->to_ms || a->t_ms > UINT32_MAX - at.gave_ms - at.lived_ms ||
                    p->to_ms < a->t_ms + at.lived_ms)
                        return false;
                if (share_of(p, a->most) < at.full_always ||
                    !afz_column_least(p->used, a->t_ms, a->t_ms + at.gave_ms, &least) ||
                    share_of(p, a->most) - share_of(p, least) < at.gave_back)
                        continue;
                *ret = (struct full){*p, a->most, a->t_ms, 0.60};
                return true;
        }
        return false;
}

static void say_full(const struct full *f, bool ended, struct afz_outcome *ret)
{
        const struct place *p = &f->place;
        struct afz_verdict *v =
                afz_outcome_add(ret, "gpu-oom", ended ? AFZ_LEVEL_ACT : AFZ_LEVEL_WARN, f->sure);
        if (!v)
                return;
        snprintf(v->summary, sizeof v->summary,
                 ended ? "the memory of %.60s was full when it ended with an error: %s of %s"
                       : "the memory of %.60s was full once (%s of %s); it let go of much and went "
                         "on",
                 name_of(p->gpu), SIZE(f->most_bytes), SIZE(p->total_bytes));
        snprintf(v->fix, sizeof v->fix,
                 "halve the batch and accumulate gradients over two; then mixed precision (bf16) "
                 "and activation checkpointing. If the need varies: "
                 "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
        if (p->ours_bytes > 0)
                afz_verdict_note(v, "the job itself held up to %s there", SIZE(p->ours_bytes));
        afz_verdict_note(v, "%.1f %% of the GPU's memory was in use %s after the start",
                         100 * share_of(p, f->most_bytes), LASTS(f->at_ms));
        v->from_ms = f->at_ms > at.grew_ms ? f->at_ms - at.grew_ms : 0;
        v->to_ms = f->at_ms;
}

AFZ_JUDGE(gpu_oom)
{
        const struct afz_track *gpu;
        struct place p;
        struct full f;
        if (afz_judge_gpu_oom_told(c, ret))
                return;
        for (size_t cursor = 0; (gpu = afz_flight_next(c->flight, AFZ_KIND_GPU, &cursor));) {
                if (!find_place(c->flight, gpu, &p))
                        continue;
                bool ended = full_at_end(c, &p, &f);
                if (!ended && !full_on_the_way(&p, &f))
                        continue;
                say_full(&f, ended, ret);
                return;
        }
}

/* ---- gpu-held-by-other ---- */

/* Another GPU with more room than this one; its number, or -1. */
static int64_t freer_gpu(const struct afz_flight *flight, const struct place *p)
{
        const struct afz_track *gpu;
        int64_t best = -1, most = p->total_bytes / 2;
        for (size_t cursor = 0; (gpu = afz_flight_next(flight, AFZ_KIND_GPU, &cursor));) {
                int64_t free_bytes;
                if (gpu != p->gpu &&
                    afz_column_last(afz_track_column(gpu, AFZ_GPU_MEM_FREE), UINT32_MAX,
                                    &free_bytes) &&
                    free_bytes > most) {
                        most = free_bytes;
                        best = (int64_t)(gpu->subject.id & INT32_MAX);
                }
        }
        return best;
}

static void say_held(const struct afz_case *c, const struct place *p, int64_t held,
                     const struct afz_track *other, struct afz_outcome *ret)
{
        bool ended = ended_in_error(c);
        int64_t else_gpu = freer_gpu(c->flight, p);
        struct afz_verdict *v = afz_outcome_add(ret, "gpu-held-by-other",
                                                ended        ? AFZ_LEVEL_ACT
                                                : is_well(c) ? AFZ_LEVEL_OK
                                                             : AFZ_LEVEL_WARN,
                                                0.85);
        if (!v)
                return;
        unsigned pid = (unsigned)(other->subject.id & UINT32_MAX);
        snprintf(v->summary, sizeof v->summary,
                 "most of the memory of %.60s was held by another program: %s, %s of %s",
                 name_of(p->gpu), WHO(c->flight, other), SIZE(held), SIZE(p->total_bytes));
        if (else_gpu >= 0)
                snprintf(v->fix, sizeof v->fix,
                         "use the freer GPU: CUDA_VISIBLE_DEVICES=%lld; or end process %u if it is "
                         "yours and forgotten",
                         (long long)else_gpu, pid);
        else
                snprintf(v->fix, sizeof v->fix,
                         "end process %u if it is yours and forgotten (a notebook's kernel, a run "
                         "that was not stopped whole), or wait until it is done",
                         pid);
        afz_verdict_note(v, "the job itself held up to %s there", SIZE(p->ours_bytes));
        v->from_ms = p->from_ms;
        v->to_ms = p->to_ms;
}

AFZ_JUDGE(gpu_held_by_other)
{
        const struct afz_track *gpu, *other;
        struct place p;
        for (size_t cursor = 0; (gpu = afz_flight_next(c->flight, AFZ_KIND_GPU, &cursor));) {
                int64_t most;
                if (!find_place(c->flight, gpu, &p))
                        continue;
                int64_t held = others_on(c->flight, &p, &other);
                /* Who has room enough beside them is not hurt. */
                if (!other || share_of(&p, held) < at.others ||
                    !afz_column_most(p.used, p.from_ms, p.to_ms + 1, &most) ||
                    share_of(&p, most) < 1 - at.tight)
                        continue;
                say_held(c, &p, held, other, ret);
                return;
        }
}

/* ---- gpu-spill ---- */

/* How much system RAM the GPU took from the moment on that its own was full. */
static int64_t spilled(const struct place *p, uint32_t *ret_from_ms)
{
        const struct afz_column *gtt = afz_track_column(p->gpu, AFZ_GPU_GTT_USED);
        int64_t before, most;
        size_t i = afz_column_at(p->used, p->from_ms);
        while (i < p->used->count && share_of(p, p->used->point[i].most) < at.spill_full)
                i++;
        if (i == p->used->count || p->used->point[i].t_ms > p->to_ms ||
            !afz_column_last(gtt, p->from_ms + 1, &before) ||
            !afz_column_most(gtt, p->used->point[i].t_ms, p->to_ms + 1, &most))
                return 0;
        *ret_from_ms = p->used->point[i].t_ms;
        return before >= 0 && most > before ? most - before : 0;
}

AFZ_JUDGE(gpu_spill)
{
        const struct afz_track *gpu;
        struct place p;
        for (size_t cursor = 0; (gpu = afz_flight_next(c->flight, AFZ_KIND_GPU, &cursor));) {
                uint32_t from = 0;
                int64_t more = find_place(c->flight, gpu, &p) ? spilled(&p, &from) : 0;
                if (more < at.spill_bytes || share_of(&p, more) < at.spill)
                        continue;
                struct afz_verdict *v = afz_outcome_add(ret, "gpu-spill", AFZ_LEVEL_WARN, 0.80);
                if (!v)
                        return;
                snprintf(v->summary, sizeof v->summary,
                         "%.60s had no memory left and used %s of the machine's RAM instead, which "
                         "is many times slower",
                         name_of(gpu), SIZE(more));
                snprintf(v->fix, sizeof v->fix,
                         "make it fit: a smaller batch with gradient accumulation, mixed precision "
                         "(bf16), activation checkpointing");
                afz_verdict_note(v, "its own %s were in use to %.0f %% and more",
                                 SIZE(p.total_bytes), 100 * at.spill_full);
                v->from_ms = from;
                v->to_ms = p.to_ms;
                return;
        }
}
