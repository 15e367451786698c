#ifndef AFZ_LADDER_RULES_H
#define AFZ_LADDER_RULES_H
/* Every threshold of the ladder, and what its files share. Only for ladder*.c. */
#include "ladder.h"

#define AFZ_MIB    (UINT64_C(1) << 20)
#define AFZ_MS     UINT64_C(1000000)
#define AFZ_SECOND UINT64_C(1000000000)

/* The tiers differ in what a freeze costs: a cgroup is frozen unseen, SIGSTOP is seen by shells and
 * parents, and without a kernel limit there is less time. */
static const struct {
        uint64_t climb_ns;    /* the brake's total in one climb to the budget */
        uint64_t pressure_ns; /* and in one episode of pressure */
} afz_tier_brake[AFZ_TIER_COUNT] = {
        [AFZ_TIER_NONE] = {1 * AFZ_SECOND, 5 * AFZ_SECOND},
        [AFZ_TIER_CGROUP1] = {3 * AFZ_SECOND, 20 * AFZ_SECOND},
        [AFZ_TIER_CGROUP2] = {3 * AFZ_SECOND, 20 * AFZ_SECOND},
        [AFZ_TIER_SCOPE] = {3 * AFZ_SECOND, 20 * AFZ_SECOND},
};

/* One pulse of the brake: how long frozen, and how long running before the next. */
static const struct {
        uint64_t least_ns, most_ns, run_ns;
        uint64_t rest_ns; /* the reason must be gone so long before the total begins anew */
} afz_brake_pulse[AFZ_BRAKE_COUNT] = {
        /* 30 ms: the look after 20 ms and one more; 250 ms: a job's own timers do not mind */
        [AFZ_BRAKE_BUDGET] = {30 * AFZ_MS, 250 * AFZ_MS, 0, 10 * AFZ_SECOND},
        /* four fifths frozen: the rest of the machine gets its pages back, heartbeats survive */
        [AFZ_BRAKE_PRESSURE] = {250 * AFZ_MS, 800 * AFZ_MS, 200 * AFZ_MS, 30 * AFZ_SECOND},
        /* long enough to see that the count stands */
        [AFZ_BRAKE_STORM] = {100 * AFZ_MS, 200 * AFZ_MS, 20 * AFZ_MS, 10 * AFZ_SECOND},
        /* two thirds frozen: a person has three times as long to make room */
        [AFZ_BRAKE_SPACE] = {500 * AFZ_MS, 500 * AFZ_MS, 250 * AFZ_MS, 60 * AFZ_SECOND},
        /* stacks of 64 threads take 20 to 100 ms; with large libraries it has Python's alone by
         * then */
        [AFZ_BRAKE_PICTURE] = {0, 250 * AFZ_MS, 0, 1 * AFZ_SECOND},
};

static const struct {
        uint64_t near_ns, kill_ns, freeze_ns, fast_bytes_per_s, late_most_ns;
        uint64_t noise_bytes, noise_part, fine_ns, mid_ns, coarse_ns;
        uint64_t again_percent, still_ns, dose_part, ask_again_ns, ask_early_ns;
        uint64_t asking_ns, answer_ns;
        uint64_t shrink_ns, shrinks, shrink_part, sudden_ns, words_ns;
        uint64_t settle_ns, grown_ns, int_part, int_most_ns, hurt_grace_ns;
        uint64_t last_part, last_least, last_most;
        uint64_t own_ns, none_hurt_ns, pressure_gone_ns, pressure_tell_ns, squeeze_ns;
        uint64_t space_ns, storm_ns, rekill_ns, gap_ns;
        uint64_t picture_old_ns, picture_again_ns;
        uint64_t look_fast_ns, look_near_ns, look_calm_ns, look_watch_ns, close_bytes;
} afz_rule = {
        .near_ns = 300 * AFZ_MS,       /* DESIGN: every wait ends when hard is so near */
        .kill_ns = 12 * AFZ_MS,        /* measured: SIGKILL until the memory no longer grows */
        .freeze_ns = 3 * AFZ_MS,       /* from BRAKE until it stands */
        .fast_bytes_per_s = 600000000, /* the growth that must be met in time is 500 MB/s; above
                                        * it the kernel's limit may be first, and stopping a
                                        * burst that would have fitted is worse */
        .late_most_ns = 50 * AFZ_MS,   /* looks later than that are no measure of the next */

        .noise_bytes = AFZ_MIB, /* per-CPU batches of the kernel's counters */
        .noise_part = 4096,     /* or so many-th of hard: a large job's breathing */
        .fine_ns = 8 * AFZ_MS,  /* the shortest window in which a slope can be seen */
        .mid_ns = 150 * AFZ_MS, /* one in which it can be believed for near_ns: half of that */
        .coarse_ns = 250 * AFZ_MS,
        .grown_ns = 2 * AFZ_SECOND, /* a slow leak shows in this */

        .again_percent = 5,               /* below act: the climb is over, and may be told anew */
        .still_ns = 1 * AFZ_SECOND,       /* of its own time without growth: it rests, it fits */
        .dose_part = 16,                  /* doses in the half way to stop */
        .ask_again_ns = 60 * AFZ_SECOND,  /* between two requests to save: saving costs */
        .ask_early_ns = 600 * AFZ_SECOND, /* the same where each step may come so near: who saves
                                           * for 6 s then does so for a hundredth of the time */
        .asking_ns = 100 * AFZ_MS,        /* until the request is seen to be on its way */
        .answer_ns = 5 * AFZ_SECOND,      /* an agent answers at the end of a step */
        .shrink_ns = 5 * AFZ_SECOND,      /* and makes smaller steps from the next one on */
        .shrinks = 2,                     /* in one climb: at its start, and before harder rungs */
        .sudden_ns = 1 * AFZ_SECOND,      /* to stop in less: large things, which are refused */
        .shrink_part = 4, /* but the last quarter of the way to stop is for saving in, and beyond
                           * stop no more than the first quarter of the margin is waited in; */
        .words_ns = 600 * AFZ_MS, /* nor where hard is so near: twice near_ns, so that words come
                                   * before it */

        .settle_ns = 8 * AFZ_MS, /* after BRAKE: from here on a frozen job stands */
        .int_part = 3,           /* of the grace: SIGINT has a third, SIGTERM the rest */
        .int_most_ns = 10 * AFZ_SECOND,
        .hurt_grace_ns = 1 * AFZ_SECOND, /* all the grace there is without a kernel limit while
                                          * the machine suffers */
        .last_part = 4,                  /* of the margin between stop and hard: no more words */
        .last_least = 2 * AFZ_MIB,
        .last_most = 64 * AFZ_MIB,

        .own_ns = 3 * AFZ_SECOND,     /* the machine's last memory goes to the job, dosed so long */
        .none_hurt_ns = 500 * AFZ_MS, /* over act, no kernel limit, and the machine suffers */
        .pressure_gone_ns = 2 * AFZ_SECOND,
        .pressure_tell_ns = 60 * AFZ_SECOND,
        .squeeze_ns = 1 * AFZ_SECOND, /* let the kernel finish before asking for more */
        .space_ns = 30 * AFZ_SECOND,  /* the brake's total for a disk; then it may fill up */

        .storm_ns = 5 * AFZ_SECOND, /* at the kernel's limit of processes for so long: it will
                                     * not stop by itself, and every fork fails */

        .picture_old_ns = 1 * AFZ_SECOND,    /* before a stop: older than this says little of it */
        .picture_again_ns = 60 * AFZ_SECOND, /* between two of a job that may yet come back */

        .rekill_ns = 20 * AFZ_MS,
        .gap_ns = 1 * AFZ_SECOND, /* a look so late: it was not only the job that stood still */
        .look_fast_ns = 2 * AFZ_MS,
        .look_near_ns = 5 * AFZ_MS,
        .look_watch_ns = 10 * AFZ_MS,
        .look_calm_ns = 100 * AFZ_MS,
        .close_bytes = 32 * AFZ_MIB, /* below stop: 64 ms at 500 MB/s, from one look to the next */
};

/* What one look says, for all who decide on it. */
struct afz_look {
        uint64_t t_ns;
        bool has_need;
        uint64_t need;
        uint64_t noise;  /* growth below this is none */
        uint64_t slope;  /* bytes a second of the job's own time; the higher of short and mid */
        uint64_t steady; /* the mid one alone: to be believed */
        bool growing;
        uint64_t react_ns; /* until a look after this one has been turned into a deed */
        uint64_t stop;     /* the stop line at this slope */
        uint64_t guard;    /* above it even a job at rest is too near */
        bool near;         /* hard within 300 ms at this slope */
        bool last;         /* no more words */
};

static inline uint64_t afz_less(uint64_t a, uint64_t b)
{
        return a > b ? a - b : 0;
}

static inline uint64_t afz_least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

static inline uint64_t afz_most(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

/* How far `rate` comes in `ns`. */
static inline uint64_t afz_reach(uint64_t bytes_per_s, uint64_t ns)
{
        return (uint64_t)((double)bytes_per_s * ((double)ns / 1e9));
}

/* ladder_look.c: keeps time, slopes and lateness, and sums a pulse up. */
void afz_ladder_look(struct afz_ladder *l, const struct afz_pulse *pulse, struct afz_look *ret);

/* ladder_brake.c: the one brake. */
bool afz_brake_start(struct afz_ladder *l, enum afz_brake_reason reason, uint64_t t_ns, uint64_t ns,
                     uint64_t total_ns, struct afz_decision *ret);
void afz_brake_lift(struct afz_ladder *l, uint64_t t_ns, struct afz_decision *ret);
/* Counts its time, and lifts it when its time is over. */
void afz_brake_turn(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret);
/* The memory of a frozen job is being filled by the kernel, and it will not fit. */
bool afz_brake_fails(struct afz_ladder *l, const struct afz_look *look);
/* The dose of a climb to the budget: freezes where it is due. */
void afz_brake_dose(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret);

/* ladder_picture.c. Before a rung: true, it stands still for a picture, and the rung waits. */
bool afz_picture_first(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret);
/* A dose that has just begun is time enough for one. */
void afz_picture_in_dose(struct afz_ladder *l, const struct afz_look *look,
                         struct afz_decision *ret);
/* It is to be killed instead of thawed: true, it stands a little longer for one. */
bool afz_picture_unthawed(struct afz_ladder *l, const struct afz_look *look,
                          struct afz_decision *ret);
/* It is stopped now: says so if there is none of it. */
void afz_picture_last(const struct afz_ladder *l, const struct afz_look *look,
                      struct afz_decision *ret);

/* ladder_press.c: what is not the budget. They may brake, tell and squeeze; the return value says
 * that the job must be stopped for it (true), at once (*ret_now). */
bool afz_ladder_press(struct afz_ladder *l, const struct afz_pulse *pulse,
                      const struct afz_look *look, struct afz_decision *ret, bool *ret_now);
bool afz_ladder_storm(struct afz_ladder *l, const struct afz_pulse *pulse,
                      const struct afz_look *look, struct afz_decision *ret);
void afz_ladder_fill(struct afz_ladder *l, const struct afz_look *look, struct afz_decision *ret);

/* Sets TELL with its cause, unless another cause speaks in this look already. */
bool afz_ladder_tell(struct afz_decision *ret, enum afz_cause cause);

static inline void afz_do(struct afz_decision *ret, enum afz_action action)
{
        ret->actions |= 1U << action;
}

static inline bool afz_does(const struct afz_decision *ret, enum afz_action action)
{
        return ret->actions >> action & 1;
}

#endif
