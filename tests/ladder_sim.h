#ifndef AFZ_TEST_LADDER_SIM_H
#define AFZ_TEST_LADDER_SIM_H
/* A machine, a job and a guard in virtual time: what the ladder says is done to the job, late as on
 * a real machine, and what the job then does is what the ladder sees. Nothing sleeps; a run of a
 * minute takes a millisecond or two.
 *
 * The kernel: a freeze bites after 1 to 3 ms, a thaw within 1 ms, a kill after 1 to 12 ms; the
 * charge is 1 MiB more than need. A look comes up to 1 ms late, and its deeds `cost` later than
 * what it read. All of it random, from a seed.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ladder.h"

#define MIB    (UINT64_C(1) << 20)
#define GIB    (UINT64_C(1) << 30)
#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

enum sim_shape {
        SIM_STEADY,   /* to `level`, and stays */
        SIM_LEAK,     /* for ever */
        SIM_PEAK,     /* to `level`, stays for `hold`, back to `floor`, stays */
        SIM_SAWTOOTH, /* between floor and level for ever */
        SIM_WALK,     /* at random between floor and level */
};

struct sim {
        /* The job. */
        enum sim_shape shape;
        uint64_t floor, level;
        double rate;                        /* bytes a second, of its own time */
        uint64_t hold_ns, start_ns;         /* start: it rests at its floor so long */
        bool kernel_filled;                 /* grows though frozen, while it grows */
        uint64_t dies_of_int, dies_of_term; /* so long after; 0: never */
        bool frees_at_int;                  /* drops all it has and lives on */
        uint64_t saves_ns;                  /* a checkpoint takes so long; 0: nobody listens */
        bool by_signal;                     /* which may be meant for its end */
        bool calm_after_save;               /* it grows no more then */
        uint64_t less_ns; /* to smaller steps takes so long: back to its floor, and half as far
                             from there on; 0: nobody listens; UINT64_MAX: who does cannot */
        bool in_vain;     /* only what is large is refused, and it is not */
        bool refused;     /* and the same at once, when it would get half way from act to stop */
        /* The guard. */
        struct afz_budget budget;
        enum afz_tier tier;
        enum afz_policy policy;
        uint64_t grace_ns, cost_ns, fill;
        bool no_brake;
        uint64_t picture_ns; /* a picture takes so long; 0: nobody takes one */
        /* The machine. */
        uint64_t ram, others; /* others: held by everybody else */
        uint64_t swap;
        double neighbour_rate; /* of others, from neighbour_ns on, up to neighbour_most more */
        uint64_t neighbour_ns, neighbour_most;
        bool neighbour_hurts; /* the machine stands still while it is short */
        uint64_t run_for_ns, seed;

        /* What became of it. */
        struct {
                uint64_t need_peak, end_ns, frozen_ns, longest_ns, act_ns;
                uint64_t first[AFZ_ACTION_COUNT], count[AFZ_ACTION_COUNT]; /* when (0: not) */
                uint64_t need_at_act_end; /* need when it first stood still after act */
                uint64_t available_least, looks, halved;
                uint64_t pictures, missed, picture_ns; /* when the last one was begun */
                uint64_t picture_still_ns; /* the longest that it was frozen for one alone */
                bool unfrozen_picture;
                enum afz_cause cause;
                bool oom, ended, killed, broke; /* broke: an invariant; `what` */
                const char *what;
        } out;

        /* Within. */
        struct afz_ladder ladder;
        uint64_t t, need, in_swap, neighbour, stall, stalled;
        uint64_t pictured_at; /* 0: none is being taken */
        uint64_t hold_left, freeze_at, thaw_at, kill_at, die_at, frozen_since, saved_at, less_at;
        bool frozen, falling, braked, back;
        enum afz_ack ack;
};

static uint64_t sim_random(struct sim *s)
{
        s->seed ^= s->seed << 13;
        s->seed ^= s->seed >> 7;
        s->seed ^= s->seed << 17;
        return s->seed;
}

static uint64_t sim_between(struct sim *s, uint64_t least, uint64_t most)
{
        return most > least ? least + sim_random(s) % (most - least) : least;
}

/* Bytes that the job gains or loses in dt of its own time. */
static int64_t sim_wants(struct sim *s, uint64_t dt)
{
        int64_t way = (int64_t)(s->rate * (double)dt / 1e9);
        if (s->t < SECOND + s->start_ns || (s->calm_after_save && s->ack == AFZ_ACK_SAVED))
                return 0;
        switch (s->shape) {
        case SIM_LEAK:
                return way;
        case SIM_STEADY:
                return s->need < s->level ? way : 0;
        case SIM_PEAK:
                if (s->back)
                        return s->need > s->floor ? -way : 0;
                if (s->need < s->level)
                        return way;
                s->hold_left = s->hold_left > dt ? s->hold_left - dt : 0;
                s->back = !s->hold_left;
                return 0;
        case SIM_SAWTOOTH:
                if (s->need >= s->level)
                        s->falling = true;
                if (s->need <= s->floor)
                        s->falling = false;
                return s->falling ? -way : way;
        case SIM_WALK:
                if (sim_random(s) % 64 == 0)
                        s->falling = !s->falling;
                if (s->need + (uint64_t)way >= s->level)
                        s->falling = true;
                if (s->need <= s->floor + (uint64_t)way)
                        s->falling = false;
                return s->falling ? -way : way;
        }
        return 0;
}

static uint64_t sim_available(const struct sim *s)
{
        uint64_t used = s->others + s->neighbour + s->need - s->in_swap;
        return s->ram > used ? s->ram - used : 0;
}

/* The kernel pages out of the job, at 100 MB/s, what does not fit; who waits for it stands still.
 */
static void sim_machine(struct sim *s, uint64_t dt)
{
        if (s->neighbour_rate > 0 && s->t >= s->neighbour_ns && s->neighbour < s->neighbour_most &&
            sim_available(s) > s->ram / 100)
                s->neighbour += (uint64_t)(s->neighbour_rate * (double)dt / 1e9);
        uint64_t available = sim_available(s);
        if (available < s->out.available_least)
                s->out.available_least = available;
        if (available >= s->ram / 50)
                return;
        if (s->in_swap < s->swap && s->in_swap < s->need)
                s->in_swap += (uint64_t)(100e6 * (double)dt / 1e9);
        if (s->neighbour_hurts)
                s->stall += dt / 2;
}

static void sim_less(struct sim *s)
{
        s->level = s->floor + (s->level - s->floor) / 2;
        s->need = s->floor;
        s->out.halved++;
}

static void sim_advance(struct sim *s, uint64_t to)
{
        const struct afz_lines *lines = &s->ladder.setup.lines;
        uint64_t line = (lines->act_bytes + lines->stop_bytes) / 2 - MIB / 2;
        while (s->t < to && !s->out.ended) {
                uint64_t dt = to - s->t < 500000 ? to - s->t : 500000;
                s->t += dt;
                if (s->freeze_at && s->t >= s->freeze_at) {
                        s->frozen = true;
                        s->freeze_at = 0;
                        s->frozen_since = s->t;
                }
                if (s->thaw_at && s->t >= s->thaw_at) {
                        s->frozen = false;
                        s->thaw_at = 0;
                }
                if (s->frozen)
                        s->out.frozen_ns += dt;
                int64_t more = s->frozen && !s->kernel_filled ? 0 : sim_wants(s, dt);
                s->need = more < 0 && (uint64_t)-more > s->need ? 0 : s->need + (uint64_t)more;
                if (s->in_swap > s->need)
                        s->in_swap = s->need;
                sim_machine(s, dt);
                if (s->need > s->out.need_peak)
                        s->out.need_peak = s->need;
                if (!s->out.act_ns && s->need >= s->ladder.setup.lines.act_bytes)
                        s->out.act_ns = s->t;
                if (s->need + MIB >= s->ladder.setup.lines.hard_bytes && s->tier != AFZ_TIER_NONE)
                        s->out.oom = true;
                if (s->less_at && s->t >= s->less_at && !s->frozen) {
                        s->less_at = 0;
                        sim_less(s);
                }
                if (s->refused && s->need >= line)
                        sim_less(s);
                if (s->saved_at && s->t >= s->saved_at && !s->frozen)
                        s->ack = AFZ_ACK_SAVED;
                if ((s->kill_at && s->t >= s->kill_at) || (s->die_at && s->t >= s->die_at)) {
                        s->out.ended = true;
                        s->out.end_ns = s->t;
                        s->out.killed = s->kill_at && s->t >= s->kill_at;
                }
        }
}

static void sim_broke(struct sim *s, const char *what)
{
        if (!s->out.broke)
                s->out.what = what;
        s->out.broke = true;
}

/* What must hold of every decision, whatever the job is. */
static void sim_check(struct sim *s, const struct afz_decision *d)
{
        uint32_t a = d->actions;
        bool braked = s->braked;
        if (a >> AFZ_ACTION_RELEASE & 1)
                braked = false;
        uint32_t words = 1U << AFZ_ACTION_SHRINK | 1U << AFZ_ACTION_CHECKPOINT |
                         1U << AFZ_ACTION_INTERRUPT | 1U << AFZ_ACTION_TERMINATE;
        if (braked && a & words)
                sim_broke(s, "words to a frozen job");
        if (a & words && a >> AFZ_ACTION_BRAKE & 1)
                sim_broke(s, "words and a freeze at once");
        if (a >> AFZ_ACTION_BRAKE & 1 && s->braked)
                sim_broke(s, "braked twice");
        if (a >> AFZ_ACTION_RELEASE & 1 && !s->braked)
                sim_broke(s, "released twice");
        if (a && d->cause == AFZ_CAUSE_NONE)
                sim_broke(s, "a deed without a cause");
        if (s->policy == AFZ_POLICY_WATCH && a & ~(1U << AFZ_ACTION_TELL))
                sim_broke(s, "watch acts");
        if ((s->policy != AFZ_POLICY_ADAPT || !s->less_ns) && a >> AFZ_ACTION_SHRINK & 1)
                sim_broke(s, "shrinks without adapt, or what cannot");
        if (d->wake_ns <= s->ladder.last_t_ns)
                sim_broke(s, "wakes in the past");
        if (d->picture == AFZ_PICTURE_TAKE && (!s->picture_ns || s->pictured_at))
                sim_broke(s, "a picture that nobody takes");
        if (d->picture == AFZ_PICTURE_TAKE && !s->no_brake && a & (words | 1U << AFZ_ACTION_KILL))
                sim_broke(s, "words before the picture is taken");
        if (d->picture == AFZ_PICTURE_MISSED &&
            !(a &
              (1U << AFZ_ACTION_INTERRUPT | 1U << AFZ_ACTION_TERMINATE | 1U << AFZ_ACTION_KILL)))
                sim_broke(s, "a picture is missed without a stop");
        if (s->out.killed && !d->over)
                sim_broke(s, "not over after kill");
}

static void sim_deeds(struct sim *s, const struct afz_decision *d)
{
        sim_check(s, d);
        for (unsigned i = 0; i < AFZ_ACTION_COUNT; i++)
                if (d->actions >> i & 1) {
                        if (!s->out.count[i]++)
                                s->out.first[i] = s->t;
                        if (i > AFZ_ACTION_SQUEEZE || !s->out.cause)
                                s->out.cause = d->cause;
                }
        if (d->actions >> AFZ_ACTION_RELEASE & 1) {
                s->pictured_at = 0; /* what is not there by now comes too late */
                if (s->ladder.reason == AFZ_BRAKE_PICTURE &&
                    s->t - s->out.picture_ns > s->out.picture_still_ns)
                        s->out.picture_still_ns = s->t - s->out.picture_ns;
                s->thaw_at = s->t + sim_between(s, 1, MS);
                s->freeze_at = 0;
                s->braked = false;
                if (s->t - s->frozen_since > s->out.longest_ns)
                        s->out.longest_ns = s->t - s->frozen_since;
        }
        if (d->actions >> AFZ_ACTION_BRAKE & 1) {
                s->freeze_at = s->t + sim_between(s, MS, 3 * MS);
                s->thaw_at = 0;
                s->braked = true;
                s->frozen_since = s->t;
        }
        s->out.missed += d->picture == AFZ_PICTURE_MISSED;
        if (d->picture == AFZ_PICTURE_TAKE) {
                s->out.pictures++;
                s->out.picture_ns = s->t;
                s->out.unfrozen_picture |= !s->braked;
                s->pictured_at = s->t + sim_between(s, s->picture_ns / 2, s->picture_ns);
        }
        if (d->actions >> AFZ_ACTION_SQUEEZE & 1 && s->in_swap + d->squeeze_bytes <= s->swap &&
            s->in_swap + d->squeeze_bytes <= s->need)
                s->in_swap += d->squeeze_bytes;
        if (d->actions >> AFZ_ACTION_SHRINK & 1 && !s->less_at && s->less_ns < UINT64_MAX)
                s->less_at = s->t + s->less_ns;
        if (d->actions >> AFZ_ACTION_CHECKPOINT & 1) {
                s->ack = AFZ_ACK_SAVING;
                s->saved_at = s->t + s->saves_ns;
        }
        if (d->actions >> AFZ_ACTION_INTERRUPT & 1) {
                if (s->dies_of_int)
                        s->die_at = s->t + s->dies_of_int;
                if (s->frees_at_int) {
                        s->need = s->level = s->budget.ram_bytes / 4;
                        s->shape = SIM_STEADY;
                }
        }
        if (d->actions >> AFZ_ACTION_TERMINATE & 1 && s->dies_of_term && !s->die_at)
                s->die_at = s->t + s->dies_of_term;
        if (d->actions >> AFZ_ACTION_KILL & 1 && !s->kill_at)
                s->kill_at = s->t + sim_between(s, MS, 12 * MS);
}

static void sim_run(struct sim *s)
{
        struct afz_ladder_setup setup = {
                .policy = s->policy,
                .lines = afz_lines_of(&s->budget, s->ram),
                .tier = s->tier,
                .grace_ns = s->grace_ns,
                .can_checkpoint = s->saves_ns > 0,
                .can_ask_early = s->saves_ns > 0 && !s->by_signal,
                .can_shrink = s->less_ns > 0,
                .refuses = s->refused || s->in_vain,
                .can_brake = !s->no_brake,
                .can_picture = s->picture_ns > 0,
        };
        s->seed = s->seed * UINT64_C(2654435761) + 88172645463325252ULL;
        s->t = SECOND;
        s->need = s->floor;
        s->hold_left = s->hold_ns;
        s->out.available_least = UINT64_MAX;
        afz_ladder_init(&s->ladder, &setup);
        uint64_t until = s->t + s->run_for_ns;
        while (s->t < until && !s->out.ended) {
                struct afz_pulse pulse = {.t_ns = s->t};
                struct afz_decision d;
                /* The counters come in batches. */
                uint64_t seen = s->need + sim_between(s, 0, MIB / 4);
                afz_pulse_set(&pulse, AFZ_PULSE_NEED, seen);
                afz_pulse_set(&pulse, AFZ_PULSE_SWAP, s->in_swap);
                afz_pulse_set(&pulse, AFZ_PULSE_AVAILABLE, sim_available(s));
                afz_pulse_set(&pulse, AFZ_PULSE_SWAP_FREE, s->swap - s->in_swap);
                afz_pulse_set(&pulse, AFZ_PULSE_STALL, s->stall);
                if (s->pictured_at && s->t >= s->pictured_at) {
                        s->pictured_at = 0;
                        afz_ladder_pictured(&s->ladder);
                }
                afz_ladder_step(&s->ladder, &pulse, s->ack, &d);
                uint64_t pace = pulse.t_ns + afz_pace_ns(&setup.lines, &pulse, s->fill);
                uint64_t next = pace < d.wake_ns ? pace : d.wake_ns;
                s->out.looks++;
                sim_advance(s, s->t + s->cost_ns);
                sim_deeds(s, &d);
                if (next < s->t)
                        next = s->t;
                sim_advance(s, next + sim_between(s, 1, MS));
        }
        if (!s->out.ended)
                s->out.end_ns = s->t;
}

#endif
