#include "stretch.h"

static const struct {
        uint32_t slot_ms;  /* shortest slot */
        uint32_t stand_ms; /* longest time that one reading stands for */
        uint32_t gap_ms;   /* between two readings of the job, beyond which it did not live */
        uint32_t pace_ms;  /* over which a counter's rate is taken */
        size_t ends;       /* readings in the tail from which a quiet is looked for */
} at = {
        .slot_ms = 5000,  /* the slowest sense (threads) looks each 5 s */
        .stand_ms = 5000, /* the same */
        .gap_ms = 15000,  /* a machine that thrashes can hold the scout up for ten seconds */
        .pace_ms = 5000,  /* CPU time comes in ticks of 10 ms: 0.2 % of a core over 5 s */
        .ends = 512,      /* a tail has a hundred; one that was made to deceive, millions */
};

static uint32_t end_of(const struct afz_point *p)
{
        return p->t_ms > UINT32_MAX - p->span_ms ? UINT32_MAX : p->t_ms + p->span_ms;
}

/* Spans of a damaged recording may overlap: negative then. */
static int64_t apart(const struct afz_point *a, const struct afz_point *b)
{
        return (int64_t)end_of(b) - (int64_t)end_of(a);
}

static uint32_t length(const struct afz_quiet *q)
{
        return q->to_ms > q->from_ms ? q->to_ms - q->from_ms : 0;
}

const struct afz_track *afz_flight_job(const struct afz_flight *flight)
{
        const struct afz_track *track, *last = NULL;
        for (size_t cursor = 0; (track = afz_flight_next(flight, AFZ_KIND_JOB, &cursor));)
                if (!last || track->last_ms >= last->last_ms)
                        last = track;
        return last;
}

double afz_flight_cores(const struct afz_flight *flight)
{
        int64_t cores;
        const struct afz_track *all = afz_flight_find(flight, AFZ_KIND_CPU, AFZ_CPU_ALL);
        if (flight->head.cores > 0)
                return flight->head.cores;
        return afz_column_last(afz_track_column(all, AFZ_CPU_CORES), UINT32_MAX, &cores) &&
                               cores > 0
                       ? (double)cores
                       : -1;
}

static uint32_t longest_span(const struct afz_column *column)
{
        uint32_t most = 0;
        for (size_t i = 0; column && i < column->count; i++)
                if (column->point[i].span_ms > most)
                        most = column->point[i].span_ms;
        return most;
}

struct afz_slots afz_slots_of(const struct afz_flight *flight)
{
        const struct afz_track *job = afz_flight_job(flight);
        struct afz_slots s = {.slot_ms = at.slot_ms};
        const struct afz_column *cpu = afz_track_column(job, AFZ_JOB_CPU);
        if (!job || job->first_ms >= job->last_ms)
                return s;
        uint32_t life_ms = job->last_ms - job->first_ms, span_ms = longest_span(cpu);
        s.from_ms = job->first_ms;
        if (span_ms > UINT32_MAX / 4)
                return s; /* one point for all of a life longer than any: nothing to divide */
        if (s.slot_ms < 2 * span_ms)
                s.slot_ms = 2 * span_ms;
        if (s.slot_ms < life_ms / AFZ_SLOTS_MAX + 1)
                s.slot_ms = life_ms / AFZ_SLOTS_MAX + 1;
        s.count = life_ms / s.slot_ms;
        return s;
}

unsigned afz_slots_of_track(const struct afz_slots *s, const struct afz_track *track,
                            unsigned *ret_end)
{
        if (track->last_ms < s->from_ms || track->first_ms > track->last_ms) {
                *ret_end = 0;
                return 0;
        }
        unsigned end = (track->last_ms - s->from_ms) / s->slot_ms + 1;
        *ret_end = end < s->count ? end : s->count;
        return track->first_ms <= s->from_ms ? 0 : (track->first_ms - s->from_ms) / s->slot_ms;
}

static bool all_stopped(const struct afz_track *job, uint32_t from_ms, uint32_t to_ms)
{
        double stopped, processes, zombies = 0;
        if (!afz_column_mean(afz_track_column(job, AFZ_JOB_STOPPED), from_ms, to_ms, &stopped) ||
            !afz_column_mean(afz_track_column(job, AFZ_JOB_PROCESSES), from_ms, to_ms, &processes))
                return false;
        (void)afz_column_mean(afz_track_column(job, AFZ_JOB_ZOMBIES), from_ms, to_ms, &zombies);
        return stopped > 0 && stopped + zombies >= processes;
}

static bool was_frozen(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms)
{
        const struct afz_track *group;
        int64_t flag;
        for (size_t cursor = 0; (group = afz_flight_next(flight, AFZ_KIND_CGROUP, &cursor));)
                if (group->subject.id == 0 &&
                    afz_column_most(afz_track_column(group, AFZ_CGROUP_FROZEN), from_ms, to_ms,
                                    &flag) &&
                    flag)
                        return true;
        return false;
}

bool afz_job_lived(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms)
{
        const struct afz_track *job = afz_flight_job(flight);
        const struct afz_track *hold = afz_flight_one(flight, AFZ_KIND_HOLD);
        int64_t flag;
        if (!afz_column_most(afz_track_column(job, AFZ_JOB_CPU), from_ms, to_ms, &flag))
                return false;
        if (afz_column_most(afz_track_column(hold, AFZ_HOLD_BRAKED), from_ms, to_ms, &flag) && flag)
                return false;
        return !was_frozen(flight, from_ms, to_ms) && !all_stopped(job, from_ms, to_ms);
}

double afz_rate_or(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms, double scale)
{
        double rate;
        return afz_column_rate(column, from_ms, to_ms, &rate) ? rate * scale : -1;
}

double afz_mean_or(const struct afz_column *column, uint32_t from_ms, uint32_t to_ms, double scale)
{
        double mean;
        return afz_column_mean(column, from_ms, to_ms, &mean) && mean >= 0 ? mean * scale : -1;
}

bool afz_gpu_proc_is_ours(const struct afz_track *gpu_proc)
{
        int64_t ours;
        return afz_column_most(afz_track_column(gpu_proc, AFZ_GPU_PROC_IN_JOB), 0, UINT32_MAX,
                               &ours) &&
               ours > 0;
}

bool afz_job_on_gpu(const struct afz_flight *flight, uint64_t gpu)
{
        const struct afz_track *proc;
        for (size_t cursor = 0; (proc = afz_flight_next(flight, AFZ_KIND_GPU_PROC, &cursor));)
                if (proc->subject.id >> 32 == gpu && afz_gpu_proc_is_ours(proc))
                        return true;
        return false;
}

bool afz_job_may_use_gpu(const struct afz_flight *flight, uint64_t gpu)
{
        return !afz_flight_one(flight, AFZ_KIND_GPU_PROC) || afz_job_on_gpu(flight, gpu);
}

static bool job_on_any_gpu(const struct afz_flight *flight)
{
        const struct afz_track *proc;
        for (size_t cursor = 0; (proc = afz_flight_next(flight, AFZ_KIND_GPU_PROC, &cursor));)
                if (afz_gpu_proc_is_ours(proc))
                        return true;
        return false;
}

double afz_flight_idle_cores(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms)
{
        const struct afz_track *all = afz_flight_find(flight, AFZ_KIND_CPU, AFZ_CPU_ALL);
        double idle = afz_rate_or(afz_track_column(all, AFZ_CPU_IDLE), from_ms, to_ms, 1e-9);
        double iowait = afz_rate_or(afz_track_column(all, AFZ_CPU_IOWAIT), from_ms, to_ms, 1e-9);
        return idle < 0 ? -1 : idle + (iowait > 0 ? iowait : 0);
}

double afz_job_gpu_util(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms)
{
        const struct afz_track *gpu;
        double most = -1;
        bool known = job_on_any_gpu(flight);
        for (size_t cursor = 0; (gpu = afz_flight_next(flight, AFZ_KIND_GPU, &cursor));) {
                if (known && !afz_job_on_gpu(flight, gpu->subject.id))
                        continue;
                double util =
                        afz_mean_or(afz_track_column(gpu, AFZ_GPU_UTIL), from_ms, to_ms, 1e-4);
                if (util > most)
                        most = util;
        }
        return most;
}

struct afz_tally afz_column_tally(const struct afz_column *column,
                                  bool (*holds)(const struct afz_point *point, const void *ctx),
                                  const void *ctx)
{
        struct afz_tally t = {0};
        for (size_t i = 0; column && i < column->count; i++) {
                const struct afz_point *p = &column->point[i];
                uint32_t stood = p->span_ms;
                if (stood == 0 && i + 1 < column->count)
                        stood = p[1].t_ms - p->t_ms;
                if (p->span_ms == 0 && stood > at.stand_ms)
                        stood = at.stand_ms;
                if (stood > UINT32_MAX - t.known_ms)
                        break; /* more time than a recording can have: not one of ours */
                t.known_ms += stood;
                if (!holds(p, ctx))
                        continue;
                if (t.held_ms == 0)
                        t.from_ms = p->t_ms;
                t.held_ms += stood;
                t.to_ms = p->t_ms > UINT32_MAX - stood ? UINT32_MAX : p->t_ms + stood;
        }
        return t;
}

/* The point from which the counter's rate up to point `end` can be told: some seconds before.
 * Returns `end` itself when there is none, with a gap between. */
static size_t pace_before(const struct afz_column *c, size_t end, bool *ret_gap)
{
        size_t i = end;
        *ret_gap = false;
        while (i > 0 && apart(&c->point[i], &c->point[end]) < at.pace_ms) {
                const struct afz_point *before = &c->point[i - 1];
                if (c->point[i].t_ms - before->t_ms > at.gap_ms + before->span_ms) {
                        *ret_gap = true;
                        return end;
                }
                i--;
        }
        return i;
}

/* A counter that falls was begun anew: that is no quiet. */
static bool moved(const struct afz_point *a, const struct afz_point *b, double per_s)
{
        double ms = (double)apart(a, b);
        return b->mean < a->mean || (double)b->mean - (double)a->mean > per_s * ms / 1000;
}

static struct afz_quiet quiet_until(const struct afz_column *c, size_t end, double per_s)
{
        struct afz_quiet q = {end_of(&c->point[end]), end_of(&c->point[end]), AFZ_QUIET_ALL};
        while (end > 0) {
                bool gap;
                size_t from = pace_before(c, end, &gap);
                if (gap) {
                        q.cut = AFZ_QUIET_GAP;
                        return q;
                }
                if (moved(&c->point[from], &c->point[end], per_s)) {
                        q.cut = AFZ_QUIET_WORK;
                        return q;
                }
                if (end_of(&c->point[from]) < q.from_ms)
                        q.from_ms = end_of(&c->point[from]);
                end = from;
        }
        return q;
}

struct afz_quiet afz_column_quiet(const struct afz_column *counter, double per_s, uint32_t tail_ms)
{
        struct afz_quiet best = {0};
        if (!counter || counter->count < 2)
                return best;
        const struct afz_point *last = &counter->point[counter->count - 1];
        for (size_t end = counter->count; end-- > 1;) {
                if (apart(&counter->point[end], last) > tail_ms || counter->count - end > at.ends)
                        break;
                struct afz_quiet q = quiet_until(counter, end, per_s);
                if (best.cut == AFZ_QUIET_UNKNOWN || length(&q) > length(&best))
                        best = q;
                /* From a quiet end nothing longer can follow. */
                if (length(&q) > tail_ms)
                        break;
        }
        return best;
}
