/* leak: the memory that the job keeps grows and grows. */
#include <stdio.h>
#include <string.h>

#include "end_clues.h"
#include "judge_words.h"
#include "judges.h"
#include "leak.h"
#include "leak_kind.h"
#include "leak_stretch.h"
#include "memory_line.h"
#include "site_use.h"
#include "stall_feed.h"
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
        double named_share;             /* of the growth: what a role must have, to be named */
        double steps;                   /* so many make a figure by the step */
        double close;       /* of its line: who came so near and ended all the same is looked at, */
        double close_steps; /* if it made so many steps meanwhile, and kept something of each */
        double close_age;   /* of those steps: what is alive is so old on the mean */
        double close_sure;
        double by_pool; /* no surer, where a framework's own pool hides the line */
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
        .named_share = 0.5,
        .steps = 10,
        .close = 0.9, /* the guard brakes from about here on */
        .close_steps = 100,
        .close_age = 0.25, /* evenly kept: the half; what a step gives back: none */
        .close_sure = 0.65,
        .by_pool = 0.75,
};

/* ---- what it may be instead ---- */

/* What grew is about what read() handed out, as fast as it came: data that is being loaded. */
static bool loads(const struct afz_flight *flight, const struct afz_trend *trend)
{
        double growth = (double)trend->floor_last - (double)trend->floor_first;
        double read = afz_leak_rose(
                afz_track_column(afz_flight_one(flight, AFZ_KIND_JOB), AFZ_JOB_READ_CALLS), trend);
        return read > rule.reads_least * growth && read < rule.reads_most * growth &&
               !afz_work_rests(flight, trend->from_ms, trend->to_ms);
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
                    -afz_leak_rose(afz_track_column(fs, AFZ_FS_AVAILABLE), trend) >
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

static void put_who(const struct afz_leak_who *who, char *buf, size_t cap)
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

static void note_who(const struct afz_leak_growth *growth, struct afz_verdict *v)
{
        const struct afz_leak_who *who = &growth->who;
        char name[80];
        if (!who->track || who->role_bytes <= rule.named_share * growth->bytes)
                return;
        put_who(who, name, sizeof name);
        afz_verdict_note(v, "%s grew by %s of that", name, SIZE(who->role_bytes));
        if (who->in_role > 1)
                afz_verdict_note(v, "most of them %.40s (pid %llu): by %s", who->track->name,
                                 (unsigned long long)who->track->subject.id, SIZE(who->bytes));
}

/* "what is alive there is 40 s (800 steps) old on the mean, and some is from each of 8 parts". */
static void note_age(const struct afz_site_row *row, struct afz_verdict *v)
{
        char steps[40] = "";
        if (row->age_ms <= 0)
                return;
        if (row->age_steps > 0)
                snprintf(steps, sizeof steps, " (%.0f steps)", row->age_steps);
        afz_verdict_note(
                v, "what is alive of it is %s%s old on the mean%s", LASTS(row->age_ms), steps,
                row->parts + 1 >= AFZ_SITE_PARTS ? ", and some is from every part of that time"
                                                 : "");
}

/* The line to look at, where that is not the one that grew. */
static void name_place(const struct afz_leak_seen *seen, const struct afz_leak_kind *kind,
                       struct afz_verdict *v)
{
        struct afz_site_row row;
        size_t n = strlen(v->summary);
        if (!kind->place(&seen->growth, &row))
                return;
        afz_site_where(row.track, &v->where);
        snprintf(v->summary + n, sizeof v->summary - n, "%s %s", kind->place_words,
                 row.track->name);
        afz_verdict_note(v, "%s %s %s", SIZE(row.bytes), kind->place_note, row.track->name);
}

/* The line that made most of what grew, if one did. */
static void name_line(const struct afz_leak_seen *seen, struct afz_verdict *v)
{
        const struct afz_leak_line *line = &seen->line;
        size_t n = strlen(v->summary);
        double bytes = line->bytes < seen->growth.bytes ? line->bytes : seen->growth.bytes;
        char steps[48] = "";
        if (!seen->has_line)
                return;
        v->where = line->where;
        snprintf(v->summary + n, sizeof v->summary - n, ", %s %s%s",
                 line->is_below  ? "allocated below"
                 : line->by_pool ? "likely from"
                                 : "allocated at",
                 line->name, line->in_function ? " and the lines beside it" : "");
        if (line->by_pool) {
                afz_verdict_note(v,
                                 line->asked
                                         ? "TensorFlow's own pool grew, by %s when this line asked "
                                           "for memory and it was empty: %s"
                                         : "TensorFlow's own pool grew: %s of what is seen; who "
                                           "filled it is not told, but of what else stayed, most "
                                           "was made at %s",
                                 SIZE(bytes), line->name);
                return;
        }
        if (seen->growth.steps >= rule.steps)
                snprintf(steps, sizeof steps, ", %s with every step",
                         SIZE(bytes / seen->growth.steps));
        afz_verdict_note(v, "of what grew the probe saw %s; %.0f %% of that was allocated %s %s%s",
                         SIZE(bytes / line->share), 100 * line->share,
                         line->is_below      ? "below"
                         : line->in_function ? "in the function around"
                                             : "at",
                         line->name, steps);
        if (!line->is_below)
                note_age(line->row, v);
}

/* Its kind, its line, and what to change: behind what the summary says already. */
static void say_kind(const struct afz_leak_seen *seen, const struct afz_leak_kind *kind,
                     const struct afz_trend *trend, struct afz_verdict *v)
{
        size_t n = strlen(v->summary);
        snprintf(v->id, sizeof v->id, "%s", kind->id);
        snprintf(v->summary + n, sizeof v->summary - n, "%s", kind->words);
        snprintf(v->fix, sizeof v->fix, "%s", kind->fix);
        if (v->confidence > kind->sure)
                v->confidence = kind->sure;
        if (seen->has_line && seen->line.by_pool && v->confidence > rule.by_pool)
                v->confidence = rule.by_pool;
        if (kind->place)
                name_place(seen, kind, v);
        else
                name_line(seen, v);
        if (kind->note)
                kind->note(seen, v);
        note_growth(trend, v);
        note_who(&seen->growth, v);
}

/* A loader that counts what it has handed out knows more than that memory is kept. */
static void note_batches(const struct afz_flight *flight, const struct afz_trend *trend,
                         struct afz_verdict *v)
{
        uint64_t held = afz_feed_held(flight, trend->from_ms);
        if (held > 0)
                afz_verdict_note(v, "it held %llu batches of its data at once",
                                 (unsigned long long)held);
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
        struct afz_leak_stretch s = {.from_ms = afz_end_last_start(flight), .to_ms = UINT32_MAX};
        int64_t line;
        *ret_trend = afz_leak_trend_of(flight, afz_flight_need(flight), &s, when);
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

/* Whether what grows may be data on its way into memory, as far as can be told. */
static bool may_be_loading(const struct afz_flight *flight, const struct afz_trend *trend,
                           enum afz_work work)
{
        return (trend->lived_s < rule.long_s && work == AFZ_WORK_NONE) ||
               (trend->lived_s < rule.loads_s && loads(flight, trend));
}

static double confidence_of(const struct afz_trend *trend, const struct afz_leak_stretch *s,
                            bool is_short, enum afz_work work)
{
        double growth = (double)trend->floor_last - (double)trend->floor_first;
        double sure = trend->lived_s < 60    ? rule.brief
                      : trend->lived_s < 300 ? rule.minutes
                                             : rule.longer;
        if (s->met_line)
                sure = is_short ? rule.stopped_short : rule.stopped;
        else if (is_short)
                sure = rule.close_sure;
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

/* That is how a table, a model or the first step of a large batch comes into memory. TensorFlow's
 * pool fills its pieces bit by bit with what is kept, too: there it counts where no work was seen.
 */
static bool fills_a_few(const struct afz_leak_seen *seen, enum afz_work work)
{
        const struct afz_leak_growth *growth = &seen->growth;
        double bytes = 0;
        if (growth->steps >= rule.steps || !growth->has_sites)
                return false;
        for (unsigned i = 0; i < growth->sites.rows; i++) {
                const struct afz_site_row *row = &growth->sites.row[i];
                if ((work != AFZ_WORK_SEEN || !afz_site_is_pool(growth->flight, row->track)) &&
                    afz_leak_fills(growth, row))
                        bytes += row->bytes;
        }
        return bytes > rule.named_share * growth->bytes;
}

static void say(const struct afz_case *c, const struct afz_trend *trend,
                const struct afz_leak_stretch *s, bool is_short, struct afz_outcome *ret)
{
        const char *sign;
        enum afz_work work = work_of(c->flight, trend, s->met_line, &sign);
        /* The weaker the sign, the straighter the line: there was no time to see a cache fade. */
        bool bent = !s->met_line && trend->lived_s < rule.long_s && work != AFZ_WORK_SEEN &&
                    !trend->is_straight;
        struct afz_leak_seen seen;
        afz_leak_see(c->flight, trend, &seen);
        const struct afz_leak_kind *kind = afz_leak_kind_of(&seen);
        if ((!kind->no_data && (bent || may_be_loading(c->flight, trend, work))) ||
            goes_to_files(c->flight, trend) || fills_a_few(&seen, work))
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
                 is_short && s->met_line ? "memory grew steadily, by %s, until it was stopped: %s "
                                           "after %s, %s %s%s"
                 : is_short ? "memory grew steadily, by %s, and was all but full: %s after %s, %s "
                              "%s%s"
                            : "memory grows by %s and never comes back: %s after %s, %s %s%s",
                 rate, SIZE(trend->floor_first), LASTS(trend->from_ms - s->from_ms), SIZE(now),
                 live          ? "now"
                 : s->met_line ? "when it was stopped"
                               : "at the end",
                 c->facts.attempt > 0 ? " of the last attempt" : "");
        say_kind(&seen, kind, trend, v);
        note_batches(c->flight, trend, v);
        note_forecast(c, trend, v);
        if (is_short && s->met_line && !kind->no_data)
                afz_verdict_note(v,
                                 "only %s were seen: it might also be data that is built up in "
                                 "memory and would have ended",
                                 LASTS(trend->lived_s * 1000));
        if (work >= AFZ_WORK_HINTED)
                afz_verdict_note(v, "%s", sign);
}

/* The tree goes up and down too much to tell; one of its processes does not. */
static void say_process(const struct afz_case *c, const struct afz_trend *tree,
                        const struct afz_leak_stretch *s, struct afz_outcome *ret)
{
        enum afz_trend_when when =
                c->facts.end.how == AFZ_END_RUNNING ? AFZ_TREND_LIVE : AFZ_TREND_ENDED;
        struct afz_trend top = {0};
        struct afz_leak_who who = {0};
        const struct afz_track *track;
        for (size_t at = 0; (track = afz_flight_next(c->flight, AFZ_KIND_PROC, &at));) {
                struct afz_trend trend =
                        afz_leak_trend_of(c->flight, afz_leak_need_of(track), s, when);
                double growth = (double)trend.floor_last - (double)trend.floor_first;
                if (trend.growth == AFZ_GROWTH_LEAK && growth > who.bytes &&
                    growth > rule.process_share * (double)tree->floor_last) {
                        top = trend;
                        who = (struct afz_leak_who){growth, growth, 1, afz_leak_role_of(track),
                                                    track};
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
        struct afz_leak_seen seen;
        afz_leak_see(c->flight, &top, &seen);
        say_kind(&seen, afz_leak_kind_of(&seen), &top, v);
}

/* It ended by itself, but was all but stopped: of one that keeps something of every step that is
 * told, too, however short it was seen. */
static bool came_close(const struct afz_case *c, const struct afz_leak_stretch *s,
                       struct afz_trend *ret)
{
        struct afz_memory_line line = afz_memory_line_of(c);
        struct afz_leak_seen seen;
        bool is_short;
        if (s->met_line || line.peak_bytes < rule.close * line.bytes)
                return false;
        struct afz_trend trend =
                afz_leak_trend_to_line(c, afz_flight_need(c->flight), s, &is_short);
        if (trend.growth != AFZ_GROWTH_LEAK)
                return false;
        afz_leak_see(c->flight, &trend, &seen);
        if (!seen.has_line || seen.growth.steps < rule.close_steps ||
            seen.line.bytes < rule.named_share * seen.growth.bytes ||
            seen.line.row->age_steps < rule.close_age * seen.growth.steps)
                return false;
        *ret = trend;
        return true;
}

void afz_judge_leak(const struct afz_case *c, struct afz_outcome *ret)
{
        const struct afz_column *need = afz_flight_need(c->flight);
        struct afz_leak_stretch s = afz_leak_stretch_of(c);
        bool live = c->facts.end.how == AFZ_END_RUNNING, is_short = false;
        if (!need)
                return;
        struct afz_trend trend =
                s.met_line ? afz_leak_trend_to_line(c, need, &s, &is_short)
                           : afz_leak_trend_of(c->flight, need, &s,
                                               live ? AFZ_TREND_LIVE : AFZ_TREND_ENDED);
        if (trend.growth == AFZ_GROWTH_LEAK)
                say(c, &trend, &s, is_short, ret);
        else if (!live && came_close(c, &s, &trend))
                say(c, &trend, &s, true, ret);
        else if (trend.growth == AFZ_GROWTH_UNKNOWN)
                say_process(c, &trend, &s, ret);
}
