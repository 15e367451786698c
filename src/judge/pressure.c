#include "pressure.h"

#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define MS  UINT64_C(1000000)

static const struct {
        uint64_t spacing_ns, window_ns, least_ns;
        int64_t hurting_ns_per_s, swap_in_pages_per_s;
        uint64_t calm_percent, critical_percent, last_percent, squeeze_percent, squeeze_least;
        uint64_t blame_least_ns, small_percent, own_part, peak_part;
} limit = {
        .spacing_ns = 64 * MS,             /* 32 points: the last two seconds */
        .window_ns = 2000 * MS,            /* what the kernel's own unprivileged triggers use */
        .least_ns = 500 * MS,              /* a share of less time than this is no share */
        .hurting_ns_per_s = 100 * 1000000, /* a tenth of the time: people notice */
        .swap_in_pages_per_s = 2000,       /* 8 MB/s: more than a disk of the lab can do twice */
        .calm_percent = 125,               /* of the low line: where low ends again */
        .critical_percent = 50,            /* of the low line */
        .last_percent = 15,                /* of the low line: the kernel begins to kill soon */
        .squeeze_percent = 10,             /* of need at a time: its hot pages stay */
        .squeeze_least = MIB,              /* not worth a system call below it */
        .blame_least_ns = 1000 * MS,       /* of each kind before frozen and running compare */
        .small_percent = 5,                /* of the RAM in use */
        .own_part = 16,  /* of the low line: growing by less is what every program does */
        .peak_part = 32, /* of its peak so far: no two breaths are alike */
};

void afz_pressure_init(struct afz_pressure *pressure)
{
        memset(pressure, 0, sizeof(*pressure));
        struct afz_trail *trails[] = {&pressure->stall, &pressure->job_stall, &pressure->swap_ins};
        for (unsigned i = 0; i < sizeof(trails) / sizeof(trails[0]); i++)
                afz_trail_init(trails[i], limit.spacing_ns);
}

void afz_pressure_gap(struct afz_pressure *pressure)
{
        afz_trail_clear(&pressure->stall);
        afz_trail_clear(&pressure->job_stall);
        afz_trail_clear(&pressure->swap_ins);
        pressure->has_last = false;
}

void afz_pressure_calm(struct afz_pressure *pressure)
{
        pressure->frozen_ns = pressure->frozen_stall_ns = 0;
        pressure->running_ns = pressure->running_stall_ns = 0;
        pressure->blamed = false;
}

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

static void follow(struct afz_trail *trail, const struct afz_pulse *pulse,
                   enum afz_pulse_figure figure)
{
        uint64_t value;
        if (afz_pulse_get(pulse, figure, &value))
                afz_trail_add(trail, pulse->t_ns, value);
}

/* By the second, over the window; 0 when there is too little of it to say. */
static int64_t share(const struct afz_trail *trail)
{
        int64_t change;
        uint64_t ns;
        if (!afz_trail_change(trail, limit.window_ns, &change, &ns) || ns < limit.least_ns)
                return 0;
        return afz_trail_rate(trail, limit.window_ns);
}

/* Stall while frozen against stall while running. */
static void compare(struct afz_pressure *p, const struct afz_pulse *pulse, bool braked)
{
        uint64_t stall;
        if (!afz_pulse_get(pulse, AFZ_PULSE_STALL, &stall))
                return;
        if (p->has_last && stall >= p->last_stall_ns && pulse->t_ns > p->last_t_ns) {
                *(braked ? &p->frozen_ns : &p->running_ns) += pulse->t_ns - p->last_t_ns;
                *(braked ? &p->frozen_stall_ns : &p->running_stall_ns) += stall - p->last_stall_ns;
        }
        p->last_t_ns = pulse->t_ns;
        p->last_stall_ns = stall;
        p->has_last = true;
        if (p->frozen_ns >= limit.blame_least_ns && p->running_ns >= limit.blame_least_ns) {
                double frozen = (double)p->frozen_stall_ns / (double)p->frozen_ns;
                double running = (double)p->running_stall_ns / (double)p->running_ns;
                p->blamed = frozen < running * 0.7; /* three parts in ten went with it */
        }
}

/* What the job held before memory became scarce it may hold again: a job that breathes is not the
 * one that took the last of it. */
static bool whose(struct afz_pressure *p, const struct afz_lines *lines, uint64_t available,
                  uint64_t need)
{
        bool scarce = available < lines->low_bytes * 2;
        if (!scarce && need > p->peak_bytes)
                p->peak_bytes = need;
        if (scarce && !p->was_scarce) {
                p->scarce_need = need;
                p->scarce_available = available;
        }
        p->was_scarce = scarce;
        if (!scarce || need < p->peak_bytes + p->peak_bytes / limit.peak_part ||
            need < p->scarce_need + lines->low_bytes / limit.own_part)
                return false;
        uint64_t lost = p->scarce_available > available ? p->scarce_available - available : 0;
        return need - p->scarce_need >= lost / 2;
}

/* Is it low, how much should go out, and who took it? */
static void look_available(struct afz_pressure *p, const struct afz_lines *lines,
                           const struct afz_pulse *pulse)
{
        uint64_t available, need, swap = 0, swap_free = UINT64_MAX;
        p->low = p->critical = p->last = p->own = p->largest = p->small = false;
        p->squeeze_bytes = 0;
        if (!lines->low_bytes || !afz_pulse_get(pulse, AFZ_PULSE_AVAILABLE, &available))
                return;
        uint64_t line = lines->low_bytes / 100 * (p->was_low ? limit.calm_percent : 100);
        p->low = p->was_low = available < line;
        p->critical = available < lines->low_bytes / 100 * limit.critical_percent;
        p->last = available < lines->low_bytes / 100 * limit.last_percent;
        if (!afz_pulse_get(pulse, AFZ_PULSE_NEED, &need))
                return;
        (void)afz_pulse_get(pulse, AFZ_PULSE_SWAP, &swap);
        uint64_t in_ram = need > swap ? need - swap : 0;
        if (lines->total_bytes > available) {
                uint64_t used = lines->total_bytes - available;
                p->largest = in_ram >= used / 2;
                p->small = in_ram < used / 100 * limit.small_percent;
        }

        p->own = whose(p, lines, available, need);
        uint64_t want = lines->low_bytes * 2;
        if (available >= want)
                return;
        (void)afz_pulse_get(pulse, AFZ_PULSE_SWAP_FREE, &swap_free);
        uint64_t bytes = least(want - available, in_ram / 100 * limit.squeeze_percent);
        bytes = least(bytes, swap_free);
        p->squeeze_bytes = bytes >= limit.squeeze_least ? bytes : 0;
}

static void look_stall(struct afz_pressure *p, const struct afz_lines *lines,
                       const struct afz_pulse *pulse)
{
        uint64_t available;
        bool scarce = lines->low_bytes && afz_pulse_get(pulse, AFZ_PULSE_AVAILABLE, &available) &&
                      available < lines->low_bytes;
        int64_t all = share(&p->stall), own = share(&p->job_stall);
        /* Machine-wide "full" is also what a job does to itself inside its limit on an otherwise
         * idle machine, above all while its growth is held to what swap takes. Where memory is at
         * hand, only what is not the job's own is pressure; and some is at hand when the job is
         * at its budget, for that leaves the reserve, twice the low line. */
        int64_t others = scarce || own < 0 ? all : all - own;
        p->hurting = others > limit.hurting_ns_per_s;
        if (!(pulse->has >> AFZ_PULSE_STALL & 1)) /* no PSI in this kernel */
                p->hurting = scarce && share(&p->swap_ins) > limit.swap_in_pages_per_s;
        p->thrashes = own > limit.hurting_ns_per_s && !p->hurting && !p->low;
}

void afz_pressure_look(struct afz_pressure *pressure, const struct afz_lines *lines,
                       const struct afz_pulse *pulse, bool braked)
{
        follow(&pressure->stall, pulse, AFZ_PULSE_STALL);
        follow(&pressure->job_stall, pulse, AFZ_PULSE_JOB_STALL);
        follow(&pressure->swap_ins, pulse, AFZ_PULSE_SWAP_INS);
        look_available(pressure, lines, pulse);
        look_stall(pressure, lines, pulse);
        if (pressure->low || pressure->hurting)
                compare(pressure, pulse, braked);
        else
                pressure->has_last = false;
}
