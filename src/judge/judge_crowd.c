/* cpu-oversubscription: the job's own threads stood in each other's way, on a machine whose cores
 * are all busy, or in a container that may use only some of them. */
#include <stdio.h>

#include "judge_words.h"
#include "judges.h"
#include "stretch.h"

/* Every threshold. Where bottleneck.c judges the same thing live, it has the same number. */
static const struct {
        double share;           /* of its life, from which on it is worth a verdict */
        double runnable_factor; /* runnable threads of the job a core */
        double runnable_more;   /* and more than cores */
        double idle_cores;      /* share of all cores' time, below which all are busy */
        double cpu_pressure;    /* share of time in which some task waited for a core */
        uint32_t crowd_ms;      /* in all */
        double quota_held;      /* seconds a second that a cpu limit held the job back */
} at = {
        .share = 0.50,          /* most of it: a slow start alone is none */
        .runnable_factor = 2.0, /* live says it at 1.5; over a whole run that costs little */
        .runnable_more = 3,     /* two cores and a worker too many are usual and harmless */
        .idle_cores = 0.10,     /* the rest is the machine's own breathing */
        .cpu_pressure = 0.30,   /* as live */
        .crowd_ms = 30000,      /* longer than a build step or an import */
        .quota_held = 0.20,     /* a fifth of the time: more than a burst */
};

struct crowd {
        float runnable[AFZ_SLOTS_MAX]; /* threads of the job; negative: not known of all */
        unsigned processes;            /* that had a thread running, on the mean */
        unsigned known, crowded;
        uint32_t from_ms, to_ms;
        double runnable_sum, pressure_sum, cores_sum;
        unsigned held;    /* of the crowded, by a cpu limit */
        unsigned pressed; /* of the crowded, confirmed by pressure */
};

/* Of a stretch, the part in which it lived: fifty compilers one after the other are one, not fifty.
 */
static double part_of(const struct afz_track *proc, uint32_t from, uint32_t to)
{
        uint32_t a = proc->first_ms > from ? proc->first_ms : from;
        uint32_t b = proc->last_ms < to ? proc->last_ms : to;
        return b > a ? (double)(b - a) / (double)(to - from) : 0;
}

/* A process with too many threads to be looked at one by one is not known, and then the job is
 * not. */
static void add_threads(const struct afz_slots *s, const struct afz_track *proc,
                        struct crowd *crowd)
{
        const struct afz_column *running = afz_track_column(proc, AFZ_PROC_THREADS_RUNNING);
        const struct afz_column *state = afz_track_column(proc, AFZ_PROC_STATE);
        unsigned end;
        for (unsigned i = afz_slots_of_track(s, proc, &end); i < end; i++) {
                uint32_t from = afz_slot_start(s, i), to = from + s->slot_ms;
                double mean = afz_mean_or(running, from, to, 1);
                int64_t last;
                bool whole = proc->first_ms <= from && proc->last_ms >= to;
                if (mean >= 0 && crowd->runnable[i] >= 0)
                        crowd->runnable[i] += (float)(mean * part_of(proc, from, to));
                else if (whole && !(afz_column_last(state, to, &last) && last == 'Z'))
                        crowd->runnable[i] = -1;
        }
}

/* Where the job's own threads are not known, the machine's are the job's if it has the cores. */
static double runnable_in(const struct afz_flight *flight, const struct crowd *crowd, unsigned i,
                          uint32_t from, uint32_t to, double job_cores, double cores)
{
        const struct afz_track *all = afz_flight_find(flight, AFZ_KIND_CPU, AFZ_CPU_ALL);
        if (crowd->runnable[i] >= 0)
                return (double)crowd->runnable[i];
        return job_cores >= (1 - at.idle_cores) * cores
                       ? afz_mean_or(afz_track_column(all, AFZ_CPU_RUNNING), from, to, 1)
                       : -1;
}

/* Seconds a second that a cpu limit held the job back; negative: none is known of. */
static double held_by_limit(const struct afz_flight *flight, uint32_t from, uint32_t to)
{
        const struct afz_track *group;
        double most = -1;
        for (size_t cursor = 0; (group = afz_flight_next(flight, AFZ_KIND_CGROUP, &cursor));) {
                double held = afz_rate_or(afz_track_column(group, AFZ_CGROUP_CPU_THROTTLED), from,
                                          to, 1e-9);
                most = held > most ? held : most;
        }
        return most;
}

static void judge_slot(const struct afz_flight *flight, const struct afz_slots *s, unsigned i,
                       double cores, struct crowd *crowd)
{
        uint32_t from = afz_slot_start(s, i), to = from + s->slot_ms;
        const struct afz_track *psi = afz_flight_one(flight, AFZ_KIND_PSI);
        double job_cores =
                afz_rate_or(afz_track_column(afz_flight_job(flight), AFZ_JOB_CPU), from, to, 1e-9);
        double pressure = afz_rate_or(afz_track_column(psi, AFZ_PSI_CPU_SOME), from, to, 1e-9);
        double idle = afz_flight_idle_cores(flight, from, to) / cores;
        bool held = held_by_limit(flight, from, to) >= at.quota_held;
        if (held && job_cores >= 0) { /* the cores it may use are those it used */
                cores = job_cores > 1 ? job_cores : 1;
                idle = 0;
                pressure = -1;
        }
        double runnable = runnable_in(flight, crowd, i, from, to, job_cores, cores);
        if (job_cores < 0 || idle < 0 || runnable < 0 || !afz_job_lived(flight, from, to))
                return;
        crowd->known++;
        if (idle > at.idle_cores || runnable < at.runnable_factor * cores ||
            runnable < cores + at.runnable_more)
                return;
        if (crowd->crowded++ == 0)
                crowd->from_ms = from;
        crowd->to_ms = to;
        crowd->runnable_sum += runnable;
        crowd->cores_sum += cores;
        crowd->held += held;
        /* Linux 6.18 was seen to count next to no pressure with six tasks a core: it confirms, and
         * its absence proves nothing. */
        if (pressure >= at.cpu_pressure) {
                crowd->pressure_sum += pressure;
                crowd->pressed++;
        }
}

static bool find_crowd(const struct afz_flight *flight, double cores, struct crowd *crowd,
                       struct afz_slots *slots)
{
        const struct afz_track *proc;
        *slots = afz_slots_of(flight);
        *crowd = (struct crowd){0};
        if (slots->count == 0 || cores <= 0)
                return false;
        size_t seen = 0;
        for (size_t cursor = 0; (proc = afz_flight_next(flight, AFZ_KIND_PROC, &cursor)); seen++)
                add_threads(slots, proc, crowd);
        for (unsigned i = 0; seen == 0 && i < slots->count; i++)
                crowd->runnable[i] = -1;
        for (unsigned i = 0; i < slots->count; i++)
                judge_slot(flight, slots, i, cores, crowd);
        uint64_t crowded_ms = (uint64_t)crowd->crowded * slots->slot_ms;
        return crowd->crowded > 0 && (double)crowd->crowded >= at.share * crowd->known &&
               crowded_ms >= at.crowd_ms;
}

/* Processes that had a thread running for half of that time or more, and the one with the most. */
static const struct afz_track *count_runners(const struct afz_flight *flight, struct crowd *crowd,
                                             double *ret_most)
{
        const struct afz_track *proc, *top = NULL;
        *ret_most = 0;
        for (size_t cursor = 0; (proc = afz_flight_next(flight, AFZ_KIND_PROC, &cursor));) {
                double mean = afz_mean_or(afz_track_column(proc, AFZ_PROC_THREADS_RUNNING),
                                          crowd->from_ms, crowd->to_ms, 1);
                crowd->processes += mean >= 0.5;
                if (mean > *ret_most) {
                        *ret_most = mean;
                        top = proc;
                }
        }
        return top;
}

static void say_crowd_fix(const struct crowd *crowd, double most, double cores,
                          struct afz_verdict *v)
{
        double threads = crowd->processes > 0 ? cores / crowd->processes : cores;
        if (crowd->processes <= 1)
                snprintf(v->fix, sizeof v->fix,
                         "give it as many threads as there are cores: OMP_NUM_THREADS=%.0f (and "
                         "MKL_NUM_THREADS, OPENBLAS_NUM_THREADS; in PyTorch "
                         "torch.set_num_threads(%.0f))",
                         cores, cores);
        else if (most >= 2)
                snprintf(
                        v->fix, sizeof v->fix,
                        "%u processes each with threads of their own: set OMP_NUM_THREADS=%.0f for "
                        "them (torch.set_num_threads(%.0f) in each worker), or start fewer "
                        "(num_workers=%.0f)",
                        crowd->processes, threads < 1 ? 1 : threads, threads < 1 ? 1 : threads,
                        cores > 1 ? cores - 1 : 1);
        else
                snprintf(v->fix, sizeof v->fix,
                         "start fewer processes: not more than %.0f beside the main one for %.0f "
                         "cores (num_workers=%.0f)",
                         cores > 1 ? cores - 1 : 1, cores, cores > 1 ? cores - 1 : 1);
}

AFZ_JUDGE(cpu_oversubscription)
{
        struct crowd crowd;
        struct afz_slots slots;
        double cores = afz_flight_cores(c->flight), most;
        if (!find_crowd(c->flight, cores, &crowd, &slots))
                return;
        struct afz_verdict *v =
                afz_outcome_add(ret, "cpu-oversubscription", AFZ_LEVEL_WARN,
                                (crowd.pressed + crowd.held) * 2 >= crowd.crowded ? 0.85 : 0.75);
        if (!v)
                return;
        const struct afz_track *top = count_runners(c->flight, &crowd, &most);
        bool held = crowd.held * 2 > crowd.crowded;
        cores = held ? (double)(unsigned)(crowd.cores_sum / crowd.crowded + 0.5) : cores;
        v->from_ms = crowd.from_ms;
        v->to_ms = crowd.to_ms;
        snprintf(v->summary, sizeof v->summary,
                 "its threads stood in each other's way: %.0f wanted to run at once on %.0f cores",
                 crowd.runnable_sum / crowd.crowded, cores);
        afz_verdict_note(v, "for %s, %.0f %% of the time, %s",
                         LASTS((double)crowd.crowded * slots.slot_ms),
                         100.0 * crowd.crowded / crowd.known,
                         held ? "held back by the cpu limit of its container or session"
                              : "with every core busy");
        if (crowd.pressed > 0)
                afz_verdict_note(v, "some thread waited for a core %.0f %% of that time",
                                 100 * crowd.pressure_sum / crowd.pressed);
        if (top && most >= 2)
                afz_verdict_note(v, "%.40s (process %llu) alone had %.0f running", top->name,
                                 (unsigned long long)top->subject.id, most);
        say_crowd_fix(&crowd, most, cores, v);
}
