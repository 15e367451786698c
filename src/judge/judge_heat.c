/* What slowed the machine down to save itself: overheat (heat held the clocks down) and power-limit
 * (the supply did). Both need the line that was met and the clocks that were held: a machine that
 * is merely warm, or a GPU that merely uses what it may, is well. */
#include <stdio.h>

#include "judge_words.h"
#include "judges.h"
#include "stretch.h"

static const struct {
        uint32_t hot_ms;          /* at the line, in all */
        double hot_share;         /* of the time that is known */
        int64_t lowest_line_mc;   /* below which a line is no line, millicelsius */
        int64_t near_critical_mc; /* to the point where it turns itself off, millicelsius */
        uint32_t last_ms;         /* before the end, in which that counts */
        double throttles_per_s;   /* of all cores together */
        uint32_t power_ms;        /* at the power limit, in all */
        double power_share;       /* of the time in which the GPU worked */
        double clock_share;       /* of its highest clock, above which nothing is lost */
        uint32_t brake_ms;        /* of the hardware's own power brake */
        double gpu_works;         /* share of time */
        double battery_share;     /* of the time */
        double battery_clock;     /* of the cores' highest clock */
        double job_cores;         /* used: an idle core's clock is low anyway */
} at = {
        .hot_ms = 30000,          /* spikes of seconds are what the margin is for */
        .hot_share = 0.20,        /* a fifth of the run */
        .lowest_line_mc = 50000,  /* 50 degrees: some boards tell 0 or room temperature */
        .near_critical_mc = 3000, /* 3 degrees: a reading is two seconds old */
        .last_ms = 30000,         /* 30 s: it turned itself off in the heat */
        .throttles_per_s = 1,     /* one core each second, all the time */
        .power_ms = 60000,        /* boost clocks come and go within seconds */
        .power_share = 0.50,      /* most of its work */
        .clock_share = 0.75,      /* large GPUs run at their limit by design, at 80 % and more */
        .brake_ms = 10000,        /* it is never on in a healthy machine */
        .gpu_works = 0.30,        /* an idle GPU's clock is low anyway */
        .battery_share = 0.80,    /* nearly all of it */
        .battery_clock = 0.60,    /* what laptops fall to without their charger */
        .job_cores = 0.70,        /* as live: it computes */
};

/* NVML's bits of why clocks are held down. */
enum {
        REASON_POWER_CAP = 0x04,
        REASON_HEAT = 0x20 | 0x40,
        REASON_POWER_BRAKE = 0x80,
};

/* A thinned point has the least and the most of its time: what both have was there throughout. */
static bool has_bits(const struct afz_point *p, const void *bits)
{
        return (p->least & p->most & *(const int64_t *)bits) != 0;
}

static bool is_at_least(const struct afz_point *p, const void *line)
{
        return p->mean >= *(const int64_t *)line;
}

static bool long_enough(const struct afz_tally *t)
{
        return t->held_ms >= at.hot_ms && (double)t->held_ms >= at.hot_share * t->known_ms;
}

static double degrees(int64_t millicelsius)
{
        return (double)millicelsius / 1000;
}

static const char *name_of(const struct afz_track *track, const char *otherwise)
{
        return track && track->name[0] ? track->name : otherwise;
}

/* ---- overheat ---- */

struct heat {
        const struct afz_track *track;
        struct afz_tally tally;
        int64_t line_mc, most_mc; /* line 0: not known, the driver itself says it is heat */
        bool gpu;
};

static void keep_longer(struct heat *best, const struct heat *found)
{
        if (!best->track || found->tally.held_ms > best->tally.held_ms)
                *best = *found;
}

static void find_hot_gpu(const struct afz_flight *flight, struct heat *best)
{
        static const int64_t heat = REASON_HEAT;
        const struct afz_track *gpu;
        for (size_t cursor = 0; (gpu = afz_flight_next(flight, AFZ_KIND_GPU, &cursor));) {
                const struct afz_column *temp = afz_track_column(gpu, AFZ_GPU_TEMP);
                struct heat h = {.track = gpu, .gpu = true};
                if (!afz_job_may_use_gpu(flight, gpu->subject.id))
                        continue;
                (void)afz_column_most(temp, 0, UINT32_MAX, &h.most_mc);
                (void)afz_column_last(afz_track_column(gpu, AFZ_GPU_TEMP_SLOWDOWN), UINT32_MAX,
                                      &h.line_mc);
                h.tally =
                        afz_column_tally(afz_track_column(gpu, AFZ_GPU_THROTTLE), has_bits, &heat);
                if (!long_enough(&h.tally) && h.line_mc >= at.lowest_line_mc)
                        h.tally = afz_column_tally(temp, is_at_least, &h.line_mc);
                if (long_enough(&h.tally))
                        keep_longer(best, &h);
        }
}

/* Times a second that a core was slowed for heat, over all cores; negative: not told. */
static double throttles(const struct afz_flight *flight, uint32_t from, uint32_t to)
{
        const struct afz_track *core = afz_flight_find(flight, AFZ_KIND_CPU, AFZ_CPU_ALL);
        double sum = afz_rate_or(afz_track_column(core, AFZ_CPU_THROTTLES), from, to, 1);
        if (sum >= 0)
                return sum; /* the machine's own sum */
        for (size_t cursor = 0; (core = afz_flight_next(flight, AFZ_KIND_CPU, &cursor));) {
                double rate = afz_rate_or(afz_track_column(core, AFZ_CPU_THROTTLES), from, to, 1);
                if (rate >= 0)
                        sum = (sum < 0 ? 0 : sum) + rate;
        }
        return sum;
}

static void find_hot_cores(const struct afz_flight *flight, struct heat *best)
{
        const struct afz_track *sensor;
        for (size_t cursor = 0; (sensor = afz_flight_next(flight, AFZ_KIND_THERMAL, &cursor));) {
                const struct afz_column *temp = afz_track_column(sensor, AFZ_THERMAL_TEMP);
                struct heat h = {.track = sensor};
                if (!afz_column_last(afz_track_column(sensor, AFZ_THERMAL_HOT), UINT32_MAX,
                                     &h.line_mc) ||
                    h.line_mc < at.lowest_line_mc)
                        continue;
                (void)afz_column_most(temp, 0, UINT32_MAX, &h.most_mc);
                h.tally = afz_column_tally(temp, is_at_least, &h.line_mc);
                if (long_enough(&h.tally) &&
                    throttles(flight, h.tally.from_ms, h.tally.to_ms) >= at.throttles_per_s)
                        keep_longer(best, &h);
        }
}

/* A machine that went down, and was about to turn itself off for heat. */
static bool find_last_heat(const struct afz_case *c, struct heat *ret)
{
        const struct afz_track *sensor;
        uint32_t end = c->flight->end_ms, from = end > at.last_ms ? end - at.last_ms : 0;
        for (size_t cursor = 0;
             c->rebooted && (sensor = afz_flight_next(c->flight, AFZ_KIND_THERMAL, &cursor));) {
                int64_t critical, most;
                if (afz_column_last(afz_track_column(sensor, AFZ_THERMAL_CRITICAL), UINT32_MAX,
                                    &critical) &&
                    critical >= at.lowest_line_mc &&
                    afz_column_most(afz_track_column(sensor, AFZ_THERMAL_TEMP), from, UINT32_MAX,
                                    &most) &&
                    most >= critical - at.near_critical_mc) {
                        *ret = (struct heat){.track = sensor,
                                             .tally = {.from_ms = from, .to_ms = end},
                                             .line_mc = critical,
                                             .most_mc = most};
                        return true;
                }
        }
        return false;
}

static void note_heat(const struct afz_case *c, const struct heat *h, struct afz_verdict *v)
{
        const char *name = name_of(h->track, h->gpu ? "the GPU" : "a thermometer");
        v->from_ms = h->tally.from_ms;
        v->to_ms = h->tally.to_ms;
        if (h->line_mc > 0 && h->most_mc > 0)
                afz_verdict_note(v, "%.60s: up to %.0f degrees, its line is %.0f", name,
                                 degrees(h->most_mc), degrees(h->line_mc));
        if (h->tally.held_ms > 0)
                afz_verdict_note(v, "for %s, %.0f %% of the time", LASTS(h->tally.held_ms),
                                 100.0 * h->tally.held_ms / h->tally.known_ms);
        double slowed = h->gpu ? -1 : throttles(c->flight, h->tally.from_ms, h->tally.to_ms);
        if (slowed > 0)
                afz_verdict_note(v, "cores were slowed for heat %.0f times a second", slowed);
        double clock = h->gpu ? afz_mean_or(afz_track_column(h->track, AFZ_GPU_CLOCK),
                                            h->tally.from_ms, h->tally.to_ms, 1e-6)
                              : -1;
        if (clock > 0)
                afz_verdict_note(v, "its clock went at %.0f MHz meanwhile", clock);
}

AFZ_JUDGE(overheat)
{
        struct heat h = {0};
        bool fatal = find_last_heat(c, &h);
        if (!fatal) {
                find_hot_gpu(c->flight, &h);
                find_hot_cores(c->flight, &h);
        }
        if (!h.track)
                return;
        struct afz_verdict *v = afz_outcome_add(
                ret, "overheat", fatal ? AFZ_LEVEL_ACT : AFZ_LEVEL_WARN, fatal ? 0.80 : 0.90);
        if (!v)
                return;
        const char *what = h.gpu ? "GPU" : "processor";
        if (fatal)
                snprintf(v->summary, sizeof v->summary,
                         "the machine went down at %.0f degrees, where it turns itself off",
                         degrees(h.most_mc));
        else
                snprintf(v->summary, sizeof v->summary,
                         "the %s was too hot, and slowed itself down for %.0f %% of the time", what,
                         100.0 * h.tally.held_ms / h.tally.known_ms);
        snprintf(v->fix, sizeof v->fix, "clean fans and filters, and give it air%s",
                 h.gpu ? "; or allow it less power (nvidia-smi -pl WATTS), which costs little speed"
                       : "; use fewer threads, or a lower clock (cpupower frequency-set -u)");
        note_heat(c, &h, v);
}

/* ---- power-limit ---- */

struct want {
        const struct afz_track *track;
        struct afz_tally tally;
        double clock_share; /* of its highest; negative: not known */
        bool brake;
};

/* How far below its highest clock it went while it worked. */
static double clock_share(const struct afz_track *gpu, const struct afz_tally *t)
{
        int64_t most;
        double clock = afz_mean_or(afz_track_column(gpu, AFZ_GPU_CLOCK), t->from_ms, t->to_ms, 1);
        if (clock < 0 ||
            !afz_column_last(afz_track_column(gpu, AFZ_GPU_CLOCK_MAX), UINT32_MAX, &most) ||
            most <= 0)
                return -1;
        return clock / (double)most;
}

static bool held_by_power(const struct afz_track *gpu, struct want *ret)
{
        static const int64_t brake = REASON_POWER_BRAKE,
                             cap = REASON_POWER_CAP | REASON_POWER_BRAKE;
        const struct afz_column *reasons = afz_track_column(gpu, AFZ_GPU_THROTTLE);
        struct want w = {.track = gpu, .tally = afz_column_tally(reasons, has_bits, &brake)};
        w.brake = w.tally.held_ms >= at.brake_ms;
        if (!w.brake)
                w.tally = afz_column_tally(reasons, has_bits, &cap);
        w.clock_share = clock_share(gpu, &w.tally);
        *ret = w;
        if (w.brake)
                return true;
        double util = afz_mean_or(afz_track_column(gpu, AFZ_GPU_UTIL), w.tally.from_ms,
                                  w.tally.to_ms, 1e-4);
        return w.tally.held_ms >= at.power_ms &&
               (double)w.tally.held_ms >= at.power_share * w.tally.known_ms &&
               util >= at.gpu_works && w.clock_share >= 0 && w.clock_share < at.clock_share;
}

static void say_gpu_power(const struct want *w, struct afz_outcome *ret)
{
        struct afz_verdict *v =
                afz_outcome_add(ret, "power-limit", AFZ_LEVEL_WARN, w->brake ? 0.90 : 0.85);
        if (!v)
                return;
        double power = afz_mean_or(afz_track_column(w->track, AFZ_GPU_POWER), w->tally.from_ms,
                                   w->tally.to_ms, 1e-3);
        int64_t limit;
        v->from_ms = w->tally.from_ms;
        v->to_ms = w->tally.to_ms;
        snprintf(v->summary, sizeof v->summary,
                 "%s %.60s back: it may not draw more, and ran slower for %s",
                 w->brake ? "the power supply held the GPU" : "its power limit held the GPU",
                 name_of(w->track, "here"), LASTS(w->tally.held_ms));
        snprintf(v->fix, sizeof v->fix, "%s",
                 w->brake ? "the hardware's power brake was on: check the supply, its cables and "
                            "the server's power settings"
                          : "raise the limit if the cooling allows (nvidia-smi -pl WATTS; on a "
                            "laptop: the charger and the performance profile)");
        if (w->clock_share >= 0)
                afz_verdict_note(v, "its clock was at %.0f %% of its highest",
                                 100 * w->clock_share);
        if (power >= 0 &&
            afz_column_last(afz_track_column(w->track, AFZ_GPU_POWER_LIMIT), UINT32_MAX, &limit) &&
            limit > 0)
                afz_verdict_note(v, "it drew %.0f of the %.0f W it may", power,
                                 (double)limit / 1000);
        afz_verdict_note(v, "held back %.0f %% of the time, the driver says",
                         100.0 * w->tally.held_ms / w->tally.known_ms);
}

/* Mean clock of the cores by their highest; negative: not told. */
static double core_clock(const struct afz_flight *flight, uint32_t from, uint32_t to)
{
        const struct afz_track *core;
        double sum = 0;
        unsigned cores = 0; /* or one for all of them, as they were recorded */
        for (size_t cursor = 0; (core = afz_flight_next(flight, AFZ_KIND_CPU, &cursor));) {
                int64_t most;
                double clock = afz_mean_or(afz_track_column(core, AFZ_CPU_FREQUENCY), from, to, 1);
                if (clock < 0 ||
                    !afz_column_last(afz_track_column(core, AFZ_CPU_FREQUENCY_MAX), UINT32_MAX,
                                     &most) ||
                    most <= 0)
                        continue;
                sum += clock / (double)most;
                cores++;
        }
        return cores > 0 ? sum / cores : -1;
}

/* All cores must be at work: the mean of a machine with one busy core is low by itself. */
static bool all_cores_work(const struct afz_flight *flight, uint32_t from, uint32_t to)
{
        const struct afz_track *all = afz_flight_find(flight, AFZ_KIND_CPU, AFZ_CPU_ALL);
        double idle = afz_rate_or(afz_track_column(all, AFZ_CPU_IDLE), from, to, 1e-9);
        return idle >= 0 && flight->head.cores > 0 && idle < 0.5 * flight->head.cores &&
               afz_rate_or(afz_track_column(afz_flight_job(flight), AFZ_JOB_CPU), from, to, 1e-9) >=
                       at.job_cores;
}

static void judge_battery(const struct afz_flight *flight, struct afz_outcome *ret)
{
        static const int64_t yes = 1;
        const struct afz_track *battery;
        for (size_t cursor = 0; (battery = afz_flight_next(flight, AFZ_KIND_POWER, &cursor));) {
                struct afz_tally t = afz_column_tally(
                        afz_track_column(battery, AFZ_POWER_DISCHARGING), is_at_least, &yes);
                if (t.held_ms < at.power_ms || (double)t.held_ms < at.battery_share * t.known_ms)
                        continue;
                double clock = core_clock(flight, t.from_ms, t.to_ms);
                if (clock < 0 || clock >= at.battery_clock ||
                    !all_cores_work(flight, t.from_ms, t.to_ms))
                        continue;
                struct afz_verdict *v = afz_outcome_add(ret, "power-limit", AFZ_LEVEL_WARN, 0.80);
                if (!v)
                        return;
                v->from_ms = t.from_ms;
                v->to_ms = t.to_ms;
                snprintf(v->summary, sizeof v->summary,
                         "the machine ran on its battery and held the processor back: %.0f %% of "
                         "its highest clock",
                         100 * clock);
                snprintf(v->fix, sizeof v->fix, "plug in the charger before a long run");
                afz_verdict_note(v, "the battery (%.40s) emptied for %.0f %% of the time",
                                 name_of(battery, "BAT"), 100.0 * t.held_ms / t.known_ms);
                return;
        }
}

AFZ_JUDGE(power_limit)
{
        const struct afz_track *gpu;
        struct want best = {0}, w;
        for (size_t cursor = 0; (gpu = afz_flight_next(c->flight, AFZ_KIND_GPU, &cursor));)
                if (afz_job_may_use_gpu(c->flight, gpu->subject.id) && held_by_power(gpu, &w) &&
                    w.tally.held_ms > best.tally.held_ms)
                        best = w;
        if (best.track)
                say_gpu_power(&best, ret);
        else
                judge_battery(c->flight, ret);
}
