#include "stall_wait.h"

#include <stdio.h>

#include "end_clues.h"
#include "inside.h"
#include "judge_words.h"
#include "role.h"
#include "stall_feed.h"
#include "step_clock.h"
#include "stretch.h"

static const struct {
        int64_t after;     /* steps: before them, loaders start */
        int64_t steps;     /* at least */
        uint32_t least_ms; /* of steps, for so long */
        double share;      /* of their time: most of it */
        double gpu_busy;   /* a GPU that computes half of the time is fed, whatever the clock says:
                              it is handed its work ahead */
        double idle_cores; /* without a GPU: so many must stand idle, or nobody could load faster */
        double feed_part;  /* of that share: what a loader must have been waited for, to be named */
        double sure, told; /* by the clock alone; and the loader says what held it up */
} rule = {
        .after = 3,
        .steps = 10,
        .least_ms = 20000,
        .share = 0.5,
        .gpu_busy = 0.5,
        .idle_cores = 0.5,
        .feed_part = 0.5,
        .sure = 0.8,
        .told = 0.9,
};

bool afz_stall_wait_of(const struct afz_flight *flight, struct afz_stall_wait *ret)
{
        const struct afz_track *trainer = afz_inside_trainer(flight, afz_end_last_start(flight));
        const struct afz_column *steps = afz_track_column(trainer, AFZ_INSIDE_STEP);
        const struct afz_column *wait = afz_track_column(trainer, AFZ_INSIDE_WAIT);
        struct afz_stall_wait w = {0};
        int64_t before, after;
        if (!wait || !afz_step_steady(steps, rule.after, &w.from_ms, &w.to_ms) ||
            !afz_column_last(wait, w.from_ms, &before) ||
            !afz_column_last(wait, w.to_ms + 1, &after) || after < before)
                return false;
        double ms = (double)w.to_ms - (double)w.from_ms + 1;
        w.steps = afz_step_count(steps, w.from_ms, w.to_ms + 1);
        w.share = ((double)after - (double)before) / 1e6 / ms;
        w.share = w.share < 1 ? w.share : 1;
        w.step_s = w.steps > 0 ? ms / 1e3 / (double)w.steps : 0;
        *ret = w;
        return w.steps > 0;
}

/* Whether something could have worked meanwhile. is_told: a loader that takes all cores to decode
 * holds up the steps as well. */
static bool has_idle(const struct afz_flight *flight, const struct afz_stall_wait *w, bool is_told,
                     double *ret_gpu, double *ret_cores)
{
        const struct afz_track *trainer = afz_inside_trainer(flight, afz_end_last_start(flight));
        double cores = afz_flight_cores(flight);
        double used = afz_rate_or(afz_track_column(afz_flight_job(flight), AFZ_JOB_CPU), w->from_ms,
                                  w->to_ms, 1e-9);
        *ret_gpu = afz_job_gpu_util(flight, w->from_ms, w->to_ms);
        double idle = afz_flight_idle_cores(flight, w->from_ms, w->to_ms);
        *ret_cores = cores >= 0 && used >= 0 ? cores - used : -1;
        if (idle >= 0 && idle < *ret_cores)
                *ret_cores = idle; /* what others of the machine take is not free, either */
        if (afz_track_column(trainer, AFZ_INSIDE_GPU_ALLOCATED))
                return *ret_gpu >= 0 && *ret_gpu < rule.gpu_busy;
        return is_told || *ret_cores >= rule.idle_cores;
}

static unsigned workers_in(const struct afz_flight *flight, const struct afz_stall_wait *w)
{
        const struct afz_track *proc;
        unsigned n = 0;
        for (size_t at = 0; (proc = afz_flight_next(flight, AFZ_KIND_PROC, &at));) {
                int64_t role = 0;
                n += proc->first_ms <= w->to_ms && proc->last_ms >= w->from_ms &&
                     afz_column_last(afz_track_column(proc, AFZ_PROC_ROLE), UINT32_MAX, &role) &&
                     role == AFZ_ROLE_WORKER;
        }
        return n;
}

static void say_workers(unsigned workers, struct afz_verdict *v)
{
        if (workers == 0)
                snprintf(v->fix, sizeof v->fix,
                         "let workers make the batches while it computes: DataLoader(..., "
                         "num_workers=4, persistent_workers=True), or "
                         "dataset.prefetch(tf.data.AUTOTUNE)");
        else
                snprintf(v->fix, sizeof v->fix,
                         "more than the %u loader worker%s, or less work for each sample: resize "
                         "and "
                         "decode once and store that, cache what does not change",
                         workers, workers == 1 ? "" : "s");
}

void afz_stall_wait_say(const struct afz_case *c, struct afz_outcome *ret)
{
        struct afz_stall_wait w;
        struct afz_feed feed;
        double gpu, cores;
        if (!afz_stall_wait_of(c->flight, &w) || w.share < rule.share || w.steps < rule.steps ||
            w.to_ms - w.from_ms < rule.least_ms)
                return;
        bool told = afz_feed_of(c->flight, w.from_ms, rule.feed_part * w.share, &feed);
        if (!has_idle(c->flight, &w, told, &gpu, &cores))
                return;
        struct afz_verdict *v =
                afz_outcome_add(ret, "data-stall", AFZ_LEVEL_WARN, told ? rule.told : rule.sure);
        if (!v)
                return;
        if (told)
                snprintf(v->summary, sizeof v->summary,
                         "its steps wait for their data %.0f %% of the time; what holds the loader "
                         "up is %.*s",
                         100 * w.share, (int)feed.rate.n, feed.rate.p);
        else
                snprintf(v->summary, sizeof v->summary,
                         "its steps wait for their data: %.0f %% of the time goes by until the "
                         "next batch is there",
                         100 * w.share);
        if (told)
                afz_feed_say(&feed, cores, v);
        else
                say_workers(workers_in(c->flight, &w), v);
        afz_verdict_note(v, "%lld steps of %.3g s each, of which %.3g s are waiting",
                         (long long)w.steps, w.step_s, w.step_s * w.share);
        if (gpu >= 0)
                afz_verdict_note(v, "the GPU worked %.0f %% of the time", 100 * gpu);
        if (cores >= 0)
                afz_verdict_note(v, "%.1f cores were free meanwhile", cores);
        v->from_ms = w.from_ms;
        v->to_ms = w.to_ms;
}
