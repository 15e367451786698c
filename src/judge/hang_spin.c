#include "hang_spin.h"

#include <stdio.h>

#include "judge_words.h"
#include "stretch.h"

static const struct {
        uint32_t ms;        /* busy without a step, before it is one */
        double cores;       /* used */
        double bytes_per_s; /* read and written, below which it moves nothing */
        double gpu_busy;    /* share of time, from which on the GPU works for it */
        double flat;        /* share by which its memory may move meanwhile */
        int64_t flat_bytes; /* or this much */
} at = {
        .ms = 120000,           /* an evaluation between two steps may take a minute */
        .cores = 0.90,          /* one thread at full speed */
        .bytes_per_s = 4096,    /* as judge_hang.c has it */
        .gpu_busy = 0.30,       /* likewise */
        .flat = 0.01,           /* 1 %: work allocates */
        .flat_bytes = 16 << 20, /* 16 MiB */
};

static bool is_flat(const struct afz_column *need, uint32_t from, uint32_t to)
{
        int64_t least, most;
        if (!afz_column_least(need, from, to, &least) || !afz_column_most(need, from, to, &most))
                return false;
        return (double)most - (double)least <= (double)at.flat_bytes ||
               (double)most - (double)least <= at.flat * (double)most;
}

void afz_judge_spin(const struct afz_case *c, const struct afz_steps *st, struct afz_outcome *ret)
{
        const struct afz_track *job = afz_flight_job(c->flight);
        if (!job || !afz_steps_count(st) || job->last_ms < st->last_ms + at.ms ||
            !afz_steps_stopped(st, job->last_ms))
                return;
        uint32_t from = st->last_ms + 1, to = job->last_ms;
        double cores = afz_rate_or(afz_track_column(job, AFZ_JOB_CPU), from, to, 1e-9);
        double in = afz_rate_or(afz_track_column(job, AFZ_JOB_READ_CALLS), from, to, 1);
        double out = afz_rate_or(afz_track_column(job, AFZ_JOB_WRITE_CALLS), from, to, 1);
        if (cores < at.cores || in < 0 || out < 0 || in + out > at.bytes_per_s ||
            afz_job_gpu_util(c->flight, from, to) >= at.gpu_busy ||
            !is_flat(afz_flight_need(c->flight), from, to) || !afz_job_lived(c->flight, from, to))
                return;
        struct afz_verdict *v = afz_outcome_add(ret, "hang:spin", AFZ_LEVEL_WARN, 0.70);
        if (!v)
                return;
        snprintf(v->summary, sizeof v->summary,
                 "it turns in circles: no step for %s, though %.1f cores were busy all the time",
                 LASTS(to - st->last_ms), cores);
        snprintf(v->fix, sizeof v->fix,
                 "look at the loop after step %lld: a condition that never comes true (a tolerance "
                 "that cannot be met, a flag that nobody sets); while it turns, `py-spy dump "
                 "--pid` shows "
                 "the line of a Python program",
                 (long long)st->count);
        afz_verdict_note(v, "%lld steps came before, the longest took %s", (long long)st->count,
                         LASTS(st->longest_ms));
        afz_verdict_note(v, "nothing read, nothing written, and its memory stayed the same");
        v->from_ms = from;
        v->to_ms = to;
}
