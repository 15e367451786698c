#include "ladder_rules.h"

/* The job's own time: a frozen job has none, but for the moment until the brake bites. */
static void keep_time(struct afz_ladder *l, const struct afz_pulse *pulse)
{
        uint64_t t = pulse->t_ns;
        if (l->has_last && t > l->last_wake_ns + afz_rule.gap_ns)
                l->gap = true;
        if (l->gap) {
                afz_trail_clear(&l->fine);
                afz_trail_clear(&l->coarse);
                afz_pressure_gap(&l->pressure);
                l->frozen_t_ns = 0;
                l->gap = false;
                l->has_last = false;
        }
        if (l->has_last) {
                uint64_t dt = afz_less(t, l->last_t_ns);
                uint64_t late = afz_least(afz_less(t, l->last_wake_ns), afz_rule.late_most_ns);
                l->late_ns = afz_most(late, l->late_ns - l->late_ns / 16);
                if (!l->braked)
                        l->run_ns += dt;
                else if (l->spill)
                        l->run_ns += afz_least(dt, afz_rule.freeze_ns);
                if (l->braked)
                        l->used_ns[l->reason] += dt;
        }
        l->spill = false;
        l->has_last = true;
        l->last_t_ns = t;
}

static uint64_t noise_of(const struct afz_ladder *l)
{
        return afz_most(afz_rule.noise_bytes, l->setup.lines.hard_bytes / afz_rule.noise_part);
}

/* The slope that is believed for the next react_ns. It is taken over half as long: what a job that
 * was frozen catches up with in a few milliseconds says nothing of the next hundred. In so short a
 * window the counters' batches would look like a flood: they are taken off. */
static uint64_t short_slope(const struct afz_ladder *l, uint64_t react_ns)
{
        int64_t change;
        uint64_t ns, window_ns = afz_most(afz_rule.fine_ns, react_ns / 2);
        if (!afz_trail_change(&l->fine, window_ns, &change, &ns) ||
            change <= (int64_t)afz_rule.noise_bytes)
                return 0;
        return (uint64_t)((double)(change - (int64_t)afz_rule.noise_bytes) * 1e9 / (double)ns);
}

static bool grew(const struct afz_trail *trail, uint64_t window_ns, uint64_t noise)
{
        int64_t change;
        uint64_t ns;
        return afz_trail_change(trail, window_ns, &change, &ns) && change > (int64_t)noise;
}

static void sum_up(struct afz_ladder *l, struct afz_look *k)
{
        const struct afz_lines *lines = &l->setup.lines;
        k->noise = noise_of(l);
        /* The next look and its deed, each as late as the last ones were, and the kill. */
        k->react_ns = 2 * (afz_rule.look_fast_ns + l->late_ns) + afz_rule.kill_ns;
        int64_t mid = afz_trail_rate(&l->coarse, afz_rule.mid_ns);
        k->steady = mid > 0 ? (uint64_t)mid : 0;
        k->slope = afz_most(k->steady, short_slope(l, k->react_ns));
        k->growing = grew(&l->coarse, afz_rule.coarse_ns, k->noise) ||
                     grew(&l->coarse, afz_rule.grown_ns, k->noise) ||
                     grew(&l->fine, afz_rule.fine_ns, k->noise * 2);

        uint64_t margin = lines->hard_bytes - lines->stop_bytes;
        uint64_t way = afz_reach(afz_least(k->slope, afz_rule.fast_bytes_per_s), k->react_ns);
        k->stop = afz_most(lines->hard_bytes - afz_most(margin, afz_least(way, lines->hard_bytes)),
                           lines->act_bytes);
        if (l->setup.refuses)
                k->stop = lines->stop_bytes;
        way = afz_least(afz_reach(afz_rule.fast_bytes_per_s, k->react_ns), margin);
        k->guard = lines->hard_bytes - way;

        uint64_t left = afz_less(lines->hard_bytes, k->need);
        /* A job that does not grow is not near, wherever it stands: it is still spoken to. */
        k->near = k->growing && k->slope && (!l->setup.refuses || k->need >= k->stop) &&
                  (afz_reach(k->steady, afz_rule.near_ns) >= left ||
                   afz_reach(k->slope, k->react_ns) >= left);
        uint64_t last = afz_least(afz_most(margin / afz_rule.last_part, afz_rule.last_least),
                                  afz_rule.last_most);
        k->last = k->growing && left <= afz_least(last, margin);
}

void afz_ladder_look(struct afz_ladder *l, const struct afz_pulse *pulse, struct afz_look *ret)
{
        *ret = (struct afz_look){.t_ns = pulse->t_ns};
        keep_time(l, pulse);
        afz_pressure_look(&l->pressure, &l->setup.lines, pulse, l->braked);
        ret->has_need = afz_lines_need(&l->setup.lines, pulse, &ret->need);
        if (!ret->has_need)
                return;
        afz_trail_add(&l->fine, l->run_ns, ret->need);
        afz_trail_add(&l->coarse, l->run_ns, ret->need);
        sum_up(l, ret);
}
