/* leak: the memory that the job keeps grows and grows. */
#include <stdio.h>
#include <string.h>

#include "end_clues.h"
#include "judge_words.h"
#include "judges.h"
#include "leak.h"
#include "role.h"
#include "site_top.h"
#include "work_signs.h"

static const struct {
        double stopped, stopped_short; /* it met its line; seen for 20 s or less than that */
        double brief, minutes, longer; /* it did not; seen for less than 1 min, 5 min, more */
        double little;                 /* off for growth of less than a tenth */
        double unseen;                 /* off where it is not known whether it worked */
        double long_s;        /* lived so long: a data set would have been loaded by then */
        double process;       /* the tree as a whole does not show it */
        double process_share; /* of the tree's level: what one must have grown by then */
        double reads_least, reads_most; /* read() handed out so much of the growth: it loads data */
        double loads_s;                 /* and that may take longer */
        double near_top;                /* of the most: as good as there */
        double named_share;             /* of the growth: what a role must have, to be named */
        double line_share, line_need;   /* what a line must have, of all lines' and of the job's */
        uint32_t dead_ms;               /* not seen for so long before the end: it is gone */
} rule = {
        .stopped = 0.9,
        .stopped_short = 0.75, /* a data set that is built in memory looks the same for seconds */
        .brief = 0.7,          /* a cache that is filled in a minute does, too */
        .minutes = 0.8,
        .longer = 0.9,
        .little = 0.1,
        .unseen = 0.1,
        .long_s = 60, /* tens of gigabytes by any disk, a few by any parser */
        .process = 0.6,
        .process_share = 0.1,
        .reads_least = 0.1, /* what was read is kept, and objects take ten times their text; */
        .reads_most = 4,    /* streams read far more than they keep */
        .loads_s = 180,     /* an index, a table: interpreters parse some MB a second */
        .near_top = 0.9,    /* where the ladder, and the kernel's reclaim, begin to hold it */
        .named_share = 0.5,
        .line_share = 0.5, /* most of it; */
        .line_need = 0.25, /* and what no line is known of must not be nearly all */
        .dead_ms = 5000,   /* processes are looked at once a second, busy machines less often */
};

/* ---- which stretch of the run ---- */

struct stretch {
        uint32_t from_ms, to_ms;
        bool met_line; /* it ended because of memory */
};

/* The first mark of one of these actions in the stretch; `otherwise` where there is none. */
static uint32_t first_action(const struct afz_flight *flight, const struct stretch *s,
                             uint32_t actions, uint32_t otherwise)
{
        for (size_t i = 0; i < flight->marks; i++) {
                const struct afz_mark *m = &flight->mark[i];
                if (m->kind == AFZ_MARK_ACTION && m->t_ms >= s->from_ms && m->t_ms < s->to_ms &&
                    m->code >= 0 && m->code < AFZ_ACTION_COUNT && actions >> m->code & 1)
                        return m->t_ms;
        }
        return otherwise;
}

#define A(name) (1U << AFZ_ACTION_##name)

static bool ended_for_memory(const struct afz_case *c)
{
        const struct afz_facts *f = &c->facts;
        if (f->end.how == AFZ_END_STOPPED)
                return !f->storm &&
                       (f->stop_cause == AFZ_CAUSE_BUDGET || f->stop_cause == AFZ_CAUSE_PRESSURE ||
                        f->stop_cause == AFZ_CAUSE_KERNEL);
        if (f->end.how == AFZ_END_SIGNAL || (f->end.how == AFZ_END_EXIT && f->end.code != 0))
                return afz_kill_clue_of(c).of != AFZ_LIMIT_NONE;
        return f->end.how == AFZ_END_OOM_KILLED;
}

static struct stretch stretch_of(const struct afz_case *c)
{
        struct stretch s = {.from_ms = afz_end_last_start(c->flight),
                            .to_ms = UINT32_MAX,
                            .met_line = ended_for_memory(c)};
        /* What happens after it was told to end is no growth of its own. */
        s.to_ms = first_action(c->flight, &s, A(INTERRUPT) | A(TERMINATE) | A(KILL), UINT32_MAX);
        return s;
}

static struct afz_trend trend_of(const struct afz_flight *flight, const struct afz_column *column,
                                 const struct stretch *s, enum afz_trend_when when)
{
        const struct afz_track *hold = afz_flight_one(flight, AFZ_KIND_HOLD);
        return afz_trend_judge(&(struct afz_trend_ask){
                .column = column,
                .braked = afz_track_column(hold, AFZ_HOLD_BRAKED),
                .steps = flight,
                .from_ms = s->from_ms,
                .to_ms = s->to_ms,
                .when = when,
        });
}

/* ---- who grew ---- */

struct grower {
        double bytes, role_bytes; /* of the process, and of all with its role */
        unsigned in_role;
        enum afz_role role;
        const struct afz_track *track; /* NULL: none is known */
};

static const struct afz_column *need_of(const struct afz_track *track)
{
        const struct afz_column *need = afz_track_column(track, AFZ_PROC_NEED);
        return need ? need : afz_track_column(track, AFZ_PROC_RSS_ANON);
}

static enum afz_role role_of(const struct afz_track *track)
{
        int64_t role;
        bool known = afz_column_last(afz_track_column(track, AFZ_PROC_ROLE), UINT32_MAX, &role);
        return known && role >= 0 && role < AFZ_ROLE_COUNT ? (enum afz_role)role : AFZ_ROLE_OTHER;
}

/* From the stretch's start, or its own birth, to its end; below 0: it is gone, or never told. */
static double grown(const struct afz_track *track, const struct afz_trend *trend)
{
        int64_t before = 0, after;
        const struct afz_column *need = need_of(track);
        if ((uint64_t)track->last_ms + rule.dead_ms < trend->to_ms ||
            !afz_column_last(need, trend->to_ms, &after))
                return -1;
        (void)afz_column_last(need, trend->from_ms, &before);
        return (double)after - (double)before;
}

static struct grower who_grew(const struct afz_flight *flight, const struct afz_trend *trend)
{
        double sum[AFZ_ROLE_COUNT] = {0};
        unsigned count[AFZ_ROLE_COUNT] = {0};
        struct grower top = {0};
        const struct afz_track *track;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_PROC, &at));) {
                double bytes = grown(track, trend);
                if (bytes <= 0)
                        continue;
                sum[role_of(track)] += bytes;
                count[role_of(track)]++;
        }
        for (unsigned r = 0; r < AFZ_ROLE_COUNT; r++)
                if (sum[r] > top.role_bytes)
                        top = (struct grower){.role_bytes = sum[r],
                                              .in_role = count[r],
                                              .role = (enum afz_role)r};
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_PROC, &at));) {
                double bytes = grown(track, trend);
                if (role_of(track) == top.role && bytes > top.bytes) {
                        top.bytes = bytes;
                        top.track = track;
                }
        }
        return top;
}

/* How much a column rose over what was looked at; 0 where it is not known. */
static double rose(const struct afz_column *column, const struct afz_trend *trend)
{
        int64_t before, after;
        if (!afz_column_last(column, trend->from_ms + 1, &before) ||
            !afz_column_last(column, trend->to_ms + 1, &after))
                return 0;
        return (double)after - (double)before;
}

static double shared_growth(const struct afz_flight *flight, const struct afz_trend *trend)
{
        return rose(afz_track_column(afz_flight_one(flight, AFZ_KIND_CGROUP), AFZ_CGROUP_SHMEM),
                    trend);
}

/* What grew is about what read() handed out: data that is being loaded. */
static bool loads(const struct afz_flight *flight, const struct afz_trend *trend)
{
        double growth = (double)trend->floor_last - (double)trend->floor_first;
        double read = rose(
                afz_track_column(afz_flight_one(flight, AFZ_KIND_JOB), AFZ_JOB_READ_CALLS), trend);
        return read > rule.reads_least * growth && read < rule.reads_most * growth;
}

/* What grew are files that it writes to a file system in memory: log-growth says that. */
static bool goes_to_files(const struct afz_flight *flight, const struct afz_trend *trend)
{
        double growth = (double)trend->floor_last - (double)trend->floor_first;
        const struct afz_track *fs;
        int64_t writes;
        for (size_t at = 0; (fs = afz_flight_next(flight, AFZ_KIND_FS, &at));)
                if (strncmp(fs->detail, "tmpfs", 5) == 0 && strcmp(fs->name, "/dev/shm") != 0 &&
                    afz_column_most(afz_track_column(fs, AFZ_FS_JOB_WRITES), trend->from_ms,
                                    trend->to_ms, &writes) &&
                    writes > 0 &&
                    -rose(afz_track_column(fs, AFZ_FS_AVAILABLE), trend) >
                            rule.named_share * growth)
                        return true;
        return false;
}

/* ---- the words ---- */

/* "12M every second", "3.1M every minute", "900K with every step". */
static void put_rate(const struct afz_trend *trend, char *buf, size_t cap)
{
        static const struct {
                double seconds;
                const char *word;
        } every[] = {{1, "second"}, {60, "minute"}, {3600, "hour"}};
        unsigned i = 0;
        while (i < 2 && trend->slope_per_s * every[i].seconds < 1 << 20)
                i++;
        if (trend->per_step > 0)
                snprintf(buf, cap, "%s with every step", SIZE(trend->per_step));
        else
                snprintf(buf, cap, "%s every %s", SIZE(trend->slope_per_s * every[i].seconds),
                         every[i].word);
}

static void put_who(const struct grower *who, char *buf, size_t cap)
{
        const char *role = afz_role_name(who->role);
        unsigned long long pid = who->track->subject.id;
        if (who->in_role > 1)
                snprintf(buf, cap, "%u %s%s", who->in_role, role[0] ? role : "processes",
                         role[0] ? "s" : "");
        else
                snprintf(buf, cap, "%.40s (%s%spid %llu)", who->track->name, role,
                         role[0] ? ", " : "", pid);
}

static void note_growth(const struct afz_trend *trend, struct afz_verdict *v)
{
        const char *low = SIZE(trend->slope_low), *high = SIZE(trend->slope_high);
        bool same = strcmp(low, high) == 0;
        afz_verdict_note(
                v,
                "the memory that it keeps rose from %s to %s in %s: by %s%s%s a second, in "
                "nearly all of %u stretches of that time",
                SIZE(trend->floor_first), SIZE(trend->floor_last),
                LASTS(trend->to_ms - trend->from_ms), low, same ? "" : " to ", same ? "" : high,
                trend->blocks);
}

static void note_who(const struct afz_case *c, const struct afz_trend *trend,
                     const struct grower *who, struct afz_verdict *v)
{
        double growth = (double)trend->floor_last - (double)trend->floor_first;
        double shared = shared_growth(c->flight, trend);
        char name[80];
        if (who->track && who->role_bytes > rule.named_share * growth) {
                put_who(who, name, sizeof name);
                afz_verdict_note(v, "%s grew by %s of that", name, SIZE(who->role_bytes));
                if (who->in_role > 1)
                        afz_verdict_note(
                                v, "most of them %.40s (pid %llu): by %s", who->track->name,
                                (unsigned long long)who->track->subject.id, SIZE(who->bytes));
        }
        if (shared > rule.named_share * growth)
                afz_verdict_note(v, "%s of that is shared memory (/dev/shm)", SIZE(shared));
}

/* The line that keeps most of what grew, if one does. */
static void name_line(const struct afz_case *c, const struct afz_trend *trend,
                      struct afz_verdict *v)
{
        double growth = (double)trend->floor_last - (double)trend->floor_first;
        struct afz_site_top top;
        if (!afz_site_growth(c->flight, trend->from_ms, trend->to_ms, &top))
                return;
        const struct afz_site_row *first = &top.row[0];
        if (first->bytes < rule.line_share * top.seen_bytes ||
            first->bytes < rule.line_need * growth)
                return;
        afz_site_where(first->track, &v->where);
        size_t n = strlen(v->summary);
        snprintf(v->summary + n, sizeof v->summary - n, ", allocated at %s", first->track->name);
        afz_verdict_note(v, "of what grew, %s (%.0f %% of what is seen of it) was allocated at %s",
                         SIZE(first->bytes), 100 * first->bytes / top.seen_bytes,
                         first->track->name);
}

static void put_fix(const struct afz_case *c, const struct afz_trend *trend,
                    const struct grower *who, struct afz_verdict *v)
{
        double growth = (double)trend->floor_last - (double)trend->floor_first;
        const char *fix =
                "look for what every step adds to and nothing empties: a list that keeps tensors "
                "(store loss.item(), not loss; .detach() what you keep), a cache without a limit, "
                "a history of outputs";
        if (shared_growth(c->flight, trend) > rule.named_share * growth)
                fix = "what loader workers hand over stays in shared memory for as long as it is "
                      "referred to: keep a copy (.clone()) of what you need, and drop the batch";
        else if (who->track && who->role == AFZ_ROLE_WORKER)
                fix = "the loader workers grow: let the data set hold NumPy arrays, not lists of "
                      "Python objects (each look at one copies its page), and cache nothing in "
                      "__getitem__; persistent_workers=False starts them anew each epoch";
        snprintf(v->fix, sizeof v->fix, "%s", fix);
}

/* ---- when it gets there ---- */

/* What its need may come to: the guard's own line, or what the machine still has. */
static bool line_of(const struct afz_flight *flight, int64_t *ret)
{
        const struct afz_track *hold = afz_flight_one(flight, AFZ_KIND_HOLD);
        int64_t need, available;
        if (afz_column_last(afz_track_column(hold, AFZ_HOLD_HARD), UINT32_MAX, ret) ||
            afz_column_last(afz_track_column(hold, AFZ_HOLD_BUDGET), UINT32_MAX, ret))
                return *ret > 0;
        if (!afz_column_last(afz_flight_need(flight), UINT32_MAX, &need) ||
            !afz_column_last(afz_track_column(hold, AFZ_HOLD_AVAILABLE), UINT32_MAX, &available))
                return false;
        return !__builtin_add_overflow(need, available, ret);
}

bool afz_leak_forecast(const struct afz_flight *flight, enum afz_trend_when when,
                       struct afz_trend *ret_trend, struct afz_forecast *ret)
{
        struct stretch s = {.from_ms = afz_end_last_start(flight), .to_ms = UINT32_MAX};
        int64_t line;
        *ret_trend = trend_of(flight, afz_flight_need(flight), &s, when);
        return line_of(flight, &line) && afz_forecast_of(ret_trend, line, ret);
}

static void note_forecast(const struct afz_case *c, const struct afz_trend *trend,
                          struct afz_verdict *v)
{
        struct afz_forecast when;
        int64_t line;
        if (c->facts.end.how != AFZ_END_RUNNING || !line_of(c->flight, &line) ||
            !afz_forecast_of(trend, line, &when))
                return;
        if (when.latest_ms < 1e15)
                afz_verdict_note(v, "at this rate it meets the %s it may use in %s (%s to %s)",
                                 SIZE(line), LASTS(when.at_ms), LASTS(when.soonest_ms),
                                 LASTS(when.latest_ms));
        else
                afz_verdict_note(v,
                                 "at this rate it meets the %s it may use in %s, at the soonest "
                                 "in %s",
                                 SIZE(line), LASTS(when.at_ms), LASTS(when.soonest_ms));
}

/* ---- the judge ---- */

/* Where it came near what it had at the end of the stretch: from there on, a machine that runs out
 * of memory lets nobody grow. */
static uint32_t near_top(const struct afz_column *need, const struct stretch *s)
{
        int64_t most;
        size_t i = afz_column_at(need, s->from_ms);
        if (!afz_column_most(need, s->from_ms, s->to_ms, &most))
                return s->to_ms;
        for (; i < need->count && need->point[i].t_ms < s->to_ms; i++)
                if ((double)need->point[i].most >= rule.near_top * (double)most)
                        return need->point[i].t_ms;
        return s->to_ms;
}

/* Where it met its line: the stretch up to there, then (a job that is braked, squeezed or asked to
 * save grows otherwise) up to the first of these, then up to where it came near the line; each
 * first as of any run, then as one that is known to have grown. */
static struct afz_trend trend_to_line(const struct afz_case *c, const struct afz_column *need,
                                      struct stretch *s, bool *ret_short)
{
        struct afz_trend trend = {0};
        for (int round = 0; round < 3; round++) {
                *ret_short = false;
                trend = trend_of(c->flight, need, s, AFZ_TREND_ENDED);
                if (trend.growth == AFZ_GROWTH_LEAK)
                        break;
                *ret_short = true;
                trend = trend_of(c->flight, need, s, AFZ_TREND_STOPPED);
                if (trend.growth == AFZ_GROWTH_LEAK)
                        break;
                uint32_t held =
                        first_action(c->flight, s, A(BRAKE) | A(SQUEEZE) | A(CHECKPOINT), s->to_ms);
                s->to_ms = held == s->to_ms ? near_top(need, s) : held;
        }
        return trend;
}

/* Whether what grows may be data on its way into memory, as far as can be told. */
static bool may_be_loading(const struct afz_flight *flight, const struct afz_trend *trend,
                           enum afz_work work)
{
        return (trend->lived_s < rule.long_s && work == AFZ_WORK_NONE) ||
               (trend->lived_s < rule.loads_s && loads(flight, trend));
}

static double confidence_of(const struct afz_trend *trend, const struct stretch *s, bool is_short,
                            enum afz_work work)
{
        double growth = (double)trend->floor_last - (double)trend->floor_first;
        double sure = trend->lived_s < 60    ? rule.brief
                      : trend->lived_s < 300 ? rule.minutes
                                             : rule.longer;
        if (s->met_line)
                sure = is_short ? rule.stopped_short : rule.stopped;
        if (work < AFZ_WORK_HINTED && trend->lived_s < rule.long_s)
                sure -= rule.unseen;
        return growth < 0.1 * (double)trend->floor_last ? sure - rule.little : sure;
}

/* Whether it worked while it grew. Of one that met its line the time that it computed is no sign:
 * data that are made up in memory take some, too, and how it ended says what is known. */
static enum afz_work work_of(const struct afz_flight *flight, const struct afz_trend *trend,
                             bool met_line, const char **ret_sign)
{
        enum afz_work work = afz_work_in(flight, trend->from_ms, trend->to_ms, ret_sign);
        if (work >= AFZ_WORK_HINTED || met_line ||
            !afz_work_computes(flight, trend->from_ms, trend->to_ms))
                return work;
        *ret_sign = "it computed for far longer than it takes to load what it keeps, and read "
                    "nothing";
        return AFZ_WORK_HINTED;
}

static void say(const struct afz_case *c, const struct afz_trend *trend, const struct stretch *s,
                bool is_short, struct afz_outcome *ret)
{
        const char *sign;
        enum afz_work work = work_of(c->flight, trend, s->met_line, &sign);
        /* The weaker the sign, the straighter the line: there was no time to see a cache fade. */
        bool bent = !s->met_line && trend->lived_s < rule.long_s && work != AFZ_WORK_SEEN &&
                    !trend->is_straight;
        if (bent || may_be_loading(c->flight, trend, work) || goes_to_files(c->flight, trend))
                return;
        struct afz_verdict *v =
                afz_outcome_add(ret, "leak", s->met_line ? AFZ_LEVEL_ACT : AFZ_LEVEL_WARN,
                                confidence_of(trend, s, is_short, work));
        bool live = c->facts.end.how == AFZ_END_RUNNING;
        int64_t now = trend->floor_last;
        char rate[40];
        if (!v)
                return;
        if (s->met_line) /* with what came and went on top: that is what met it */
                (void)afz_column_last(afz_flight_need(c->flight), trend->to_ms + 1, &now);
        put_rate(trend, rate, sizeof rate);
        v->from_ms = trend->from_ms;
        v->to_ms = trend->to_ms;
        snprintf(v->summary, sizeof v->summary,
                 is_short ? "memory grew steadily, by %s, until it was stopped: %s after %s, %s "
                            "%s%s"
                          : "memory grows by %s and never comes back: %s after %s, %s %s%s",
                 rate, SIZE(trend->floor_first), LASTS(trend->from_ms - s->from_ms), SIZE(now),
                 live          ? "now"
                 : s->met_line ? "when it was stopped"
                               : "at the end",
                 c->facts.attempt > 0 ? " of the last attempt" : "");
        struct grower who = who_grew(c->flight, trend);
        name_line(c, trend, v);
        note_growth(trend, v);
        note_who(c, trend, &who, v);
        note_forecast(c, trend, v);
        if (work >= AFZ_WORK_HINTED)
                afz_verdict_note(v, "%s", sign);
        if (is_short)
                afz_verdict_note(v,
                                 "only %s were seen: it might also be data that is built up in "
                                 "memory and would have ended",
                                 LASTS(trend->lived_s * 1000));
        put_fix(c, trend, &who, v);
}

/* The tree goes up and down too much to tell; one of its processes does not. */
static void say_process(const struct afz_case *c, const struct afz_trend *tree,
                        const struct stretch *s, struct afz_outcome *ret)
{
        enum afz_trend_when when =
                c->facts.end.how == AFZ_END_RUNNING ? AFZ_TREND_LIVE : AFZ_TREND_ENDED;
        struct afz_trend top = {0};
        struct grower who = {0};
        const struct afz_track *track;
        for (size_t at = 0; (track = afz_flight_next(c->flight, AFZ_KIND_PROC, &at));) {
                struct afz_trend trend = trend_of(c->flight, need_of(track), s, when);
                double growth = (double)trend.floor_last - (double)trend.floor_first;
                if (trend.growth == AFZ_GROWTH_LEAK && growth > who.bytes &&
                    growth > rule.process_share * (double)tree->floor_last) {
                        top = trend;
                        who = (struct grower){growth, growth, 1, role_of(track), track};
                }
        }
        struct afz_verdict *v =
                who.track ? afz_outcome_add(ret, "leak", AFZ_LEVEL_WARN, rule.process) : NULL;
        char rate[40], name[80];
        if (!v)
                return;
        put_rate(&top, rate, sizeof rate);
        put_who(&who, name, sizeof name);
        v->from_ms = top.from_ms;
        v->to_ms = top.to_ms;
        snprintf(v->summary, sizeof v->summary,
                 "%s grows by %s and never gives it back: from %s to %s", name, rate,
                 SIZE(top.floor_first), SIZE(top.floor_last));
        name_line(c, &top, v);
        note_growth(&top, v);
        put_fix(c, &top, &who, v);
}

void afz_judge_leak(const struct afz_case *c, struct afz_outcome *ret)
{
        const struct afz_column *need = afz_flight_need(c->flight);
        struct stretch s = stretch_of(c);
        bool live = c->facts.end.how == AFZ_END_RUNNING, is_short = false;
        if (!need)
                return;
        struct afz_trend trend =
                s.met_line ? trend_to_line(c, need, &s, &is_short)
                           : trend_of(c->flight, need, &s, live ? AFZ_TREND_LIVE : AFZ_TREND_ENDED);
        if (trend.growth == AFZ_GROWTH_LEAK)
                say(c, &trend, &s, is_short, ret);
        else if (trend.growth == AFZ_GROWTH_UNKNOWN)
                say_process(c, &trend, &s, ret);
}
