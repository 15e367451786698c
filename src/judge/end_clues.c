#include "end_clues.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "judge_words.h"

static const struct {
        uint32_t near_ms;         /* so long before the end still belongs to it */
        uint32_t signs_ms;        /* and of a machine that went down */
        uint32_t hardware_ms;     /* a hardware error may take its time */
        double at_limit;          /* need by the limit: it was met */
        double full;              /* need by what it may use */
        double short_of_ram;      /* available by all of RAM */
        int64_t hot_millicelsius; /* so near to where it turns itself off */
        int64_t battery_permyriad;
        double met_limit; /* need by the limit, where nobody counted the kill */
        double by_line, by_own_count, by_count_above, by_machine,
                by_need; /* how sure of a kill for memory */
} rule = {
        .near_ms = 5000,       /* counters are read once a second, and the job takes time to go */
        .signs_ms = 30000,     /* what a person would call just before */
        .hardware_ms = 600000, /* a machine check that was survived for ten minutes was another */
        .at_limit = 0.90,      /* the rest is page cache in use and what grew since the look */
        .full = 0.90,          /* the ladder begins there */
        .short_of_ram =
                0.03, /* the kernel kills below about 1 %, guards of memory from 10 to 4 % */
        .hot_millicelsius = 3000, /* sensors are some degrees off, and read every two seconds */
        .battery_permyriad = 500, /* laptops turn themselves off at 3 to 5 % */
        .met_limit = 0.95,        /* closer than to be at it: there is no other sign */
        .by_line = 0.98,          /* the kernel says so, or the guard counted it */
        .by_own_count = 0.9,      /* one in the job's cgroup, which may hold others, too */
        .by_count_above = 0.8,    /* one in the container; another could have been the victim */
        .by_machine = 0.75,       /* one on a machine that was short of memory, as ours ended */
        .by_need = 0.75, /* killed while it stood at the limit; counters are a second old */
};

static uint32_t before_end(const struct afz_case *c, uint32_t ms)
{
        return c->flight->end_ms > ms ? c->flight->end_ms - ms : 0;
}

uint32_t afz_end_last_start(const struct afz_flight *flight)
{
        for (size_t i = flight->marks; i-- > 0;)
                if (flight->mark[i].kind == AFZ_MARK_ATTEMPT)
                        return flight->mark[i].t_ms;
        return 0;
}

static bool is_event(const struct afz_mark *mark, enum afz_event_kind kind)
{
        return mark->kind == AFZ_MARK_EVENT && (uint64_t)mark->code >> 32 == (uint64_t)kind;
}

static uint64_t event_code(const struct afz_mark *mark)
{
        return (uint64_t)mark->code & UINT32_MAX;
}

/* A process of the job. A pid can be another's in the log of the machine around a container. */
static const struct afz_track *process_of(const struct afz_case *c, uint64_t pid)
{
        return pid ? afz_flight_find(c->flight, AFZ_KIND_PROC, pid) : NULL;
}

/* Some process of the job has the name that stands in the line: "(python3)", "python3[". */
static bool names_one(const struct afz_case *c, const char *line)
{
        const struct afz_track *track;
        for (size_t cursor = 0; (track = afz_flight_next(c->flight, AFZ_KIND_PROC, &cursor));) {
                char quoted[64];
                int n = snprintf(quoted, sizeof quoted, "(%.40s)", track->name);
                if (n > 2 && strstr(line, quoted))
                        return true;
                quoted[n - 1] = '[';
                if (n > 2 && strstr(line, quoted + 1))
                        return true;
        }
        return false;
}

/* Whether a line of the kernel is of the job: by its pid, or by its time and a name of ours. */
static bool is_of_job(const struct afz_case *c, const struct afz_mark *mark, bool end_fits)
{
        if (process_of(c, event_code(mark)) ||
            (c->facts.largest.pid && c->facts.largest.pid == event_code(mark)))
                return true;
        if (!end_fits || mark->t_ms < before_end(c, rule.near_ms))
                return false;
        return names_one(c, mark->text) || !afz_flight_one(c->flight, AFZ_KIND_PROC);
}

/* The last line of this kind that is of the job. */
static const struct afz_mark *last_line(const struct afz_case *c, enum afz_event_kind kind,
                                        bool end_fits)
{
        uint32_t start = afz_end_last_start(c->flight);
        for (size_t i = c->flight->marks; i-- > 0;) {
                const struct afz_mark *mark = &c->flight->mark[i];
                if (mark->t_ms >= start && is_event(mark, kind) && is_of_job(c, mark, end_fits))
                        return mark;
        }
        return NULL;
}

/* A counter that went up since. A cgroup that is made anew for another attempt begins at 0. */
static bool rose(const struct afz_track *track, enum afz_metric metric, uint32_t from_ms)
{
        const struct afz_column *column = afz_track_column(track, metric);
        int64_t before, least, after;
        if (!column || column->count < 2 || !afz_column_last(column, UINT32_MAX, &after))
                return false;
        if (!afz_column_last(column, from_ms, &before))
                before = column->point[0].mean;
        if (afz_column_least(column, from_ms, UINT32_MAX, &least) && least < before)
                before = least;
        return after > before;
}

static bool last_of(const struct afz_track *track, enum afz_metric metric, int64_t *ret)
{
        return afz_column_last(afz_track_column(track, metric), UINT32_MAX, ret);
}

static int64_t level_of(const struct afz_track *track)
{
        int64_t level;
        return last_of(track, AFZ_CGROUP_LEVEL, &level) ? level : (int64_t)track->subject.id;
}

static bool is_ours(const struct afz_case *c, const struct afz_track *track)
{
        return !c->facts.watch_only && afz_flight_is_own_cgroup(c->flight, track);
}

bool afz_end_was_full(const struct afz_case *c)
{
        int64_t most;
        return !c->facts.watch_only && c->facts.hard_bytes > 0 &&
               afz_column_most(afz_flight_need(c->flight), before_end(c, rule.near_ms), UINT32_MAX,
                               &most) &&
               (double)most >= (double)c->facts.hard_bytes * rule.full;
}

static bool is_at_limit(const struct afz_case *c, const struct afz_track *track, double share)
{
        int64_t limit, most;
        return last_of(track, AFZ_CGROUP_MAX, &limit) && limit > 0 &&
               afz_column_most(afz_track_column(track, AFZ_CGROUP_NEED),
                               before_end(c, rule.near_ms), UINT32_MAX, &most) &&
               (double)most >= (double)limit * share;
}

/* The cgroup whose limit was met: the kernel counts that where it was, and in all above. Where it
 * does not count (v1), the one that stands at its limit. NULL: not known. */
static const struct afz_track *limit_met(const struct afz_case *c)
{
        const struct afz_track *track, *counted = NULL, *near = NULL;
        bool full = c->facts.end.how == AFZ_END_OOM_KILLED && afz_end_was_full(c);
        for (size_t cursor = 0; (track = afz_flight_next(c->flight, AFZ_KIND_CGROUP, &cursor));) {
                if (rose(track, AFZ_CGROUP_EVENT_OOM, afz_end_last_start(c->flight)) &&
                    (!counted || level_of(track) < level_of(counted)))
                        counted = track;
                if (!full && is_at_limit(c, track, rule.at_limit) &&
                    (!near || level_of(track) < level_of(near)))
                        near = track;
        }
        return counted ? counted : near;
}

/* Kills in the cgroup that the job is in, or in one around it. Where we have not made it there are
 * others in it, too: who ended by a signal that is not SIGKILL was none of those killed. */
static bool counted_kill(const struct afz_case *c, bool own, uint32_t from_ms)
{
        const struct afz_track *track;
        const struct afz_end *end = &c->facts.end;
        bool fits = end->how != AFZ_END_SIGNAL || end->code == SIGKILL;
        for (size_t cursor = 0; (track = afz_flight_next(c->flight, AFZ_KIND_CGROUP, &cursor));)
                if ((level_of(track) == 0) == own && (fits || is_ours(c, track)) &&
                    rose(track, AFZ_CGROUP_OOM_KILLS, from_ms))
                        return true;
        return false;
}

/* Kills for want of memory on a machine that had none left. The counter alone says nothing: it
 * counts those at the limits of other cgroups, too. */
static bool machine_kill(const struct afz_case *c, uint32_t from_ms)
{
        uint64_t available;
        return rose(afz_flight_one(c->flight, AFZ_KIND_VM), AFZ_VM_OOM_KILLS, from_ms) &&
               afz_end_was_short(c, &available);
}

/* Kills that the guard counted in the cgroup which it made. */
static bool held_kill(const struct afz_case *c)
{
        return rose(afz_flight_one(c->flight, AFZ_KIND_HOLD), AFZ_HOLD_OOM_KILLS,
                    afz_end_last_start(c->flight));
}

static void set_place(const struct afz_case *c, const struct afz_track *met,
                      struct afz_kill_clue *ret)
{
        uint64_t available;
        int64_t limit;
        bool ours = met ? is_ours(c, met) : c->facts.end.how == AFZ_END_OOM_KILLED || held_kill(c);
        ret->of = ours ? AFZ_LIMIT_OURS : AFZ_LIMIT_ABOVE;
        /* A cgroup also counts those in it that the whole machine's want has killed. */
        if (!met && !ours && !ret->line && afz_end_was_short(c, &available))
                ret->of = AFZ_LIMIT_MACHINE;
        if (!met || ours)
                return;
        ret->place = met->name;
        if (last_of(met, AFZ_CGROUP_MAX, &limit) && limit > 0)
                ret->limit_bytes = (uint64_t)limit;
}

static void set_line(const struct afz_case *c, const struct afz_mark *line,
                     struct afz_kill_clue *ret)
{
        const struct afz_track *process = process_of(c, event_code(line));
        ret->line = line->text;
        ret->t_ms = line->t_ms;
        ret->pid = event_code(line);
        if (process && process->name[0] != '\0')
                ret->name = process->name;
}

/* By SIGKILL, told by itself or by a shell. */
static bool ended_by_kill(const struct afz_end *end)
{
        return (end->how == AFZ_END_SIGNAL && end->code == SIGKILL) ||
               (end->how == AFZ_END_EXIT && end->code == 128 + SIGKILL);
}

struct afz_kill_clue afz_kill_clue_of(const struct afz_case *c)
{
        const struct afz_end *end = &c->facts.end;
        struct afz_kill_clue ret = {.t_ms = c->flight->end_ms};
        bool certain = end->how == AFZ_END_OOM_KILLED, killed = certain || ended_by_kill(end);
        const struct afz_mark *line = last_line(c, AFZ_EVENT_OOM_KILL, killed);
        const struct afz_track *met;
        uint32_t late = before_end(c, rule.near_ms);
        if (line)
                set_line(c, line, &ret);
        if (line && strncmp(line->text, "Memory cgroup", 13) != 0) {
                ret.of = AFZ_LIMIT_MACHINE;
                ret.confidence = rule.by_line;
        } else if (certain || line || counted_kill(c, true, late) || held_kill(c)) {
                set_place(c, limit_met(c), &ret);
                ret.confidence = certain || line ? rule.by_line : rule.by_own_count;
        } else if (killed && counted_kill(c, false, late)) {
                set_place(c, limit_met(c), &ret);
                ret.confidence = rule.by_count_above;
        } else if (killed && machine_kill(c, late)) {
                ret.of = AFZ_LIMIT_MACHINE;
                ret.confidence = rule.by_machine;
        } else if (killed && (met = limit_met(c)) && is_at_limit(c, met, rule.met_limit)) {
                set_place(c, met, &ret);
                ret.confidence = rule.by_need;
        }
        return ret;
}

const struct afz_mark *afz_fault_clue_of(const struct afz_case *c)
{
        return last_line(c, AFZ_EVENT_SEGFAULT, true);
}

bool afz_end_was_short(const struct afz_case *c, uint64_t *ret_available_bytes)
{
        int64_t least, total = (int64_t)c->flight->head.ram_total_bytes;
        const struct afz_track *host = afz_flight_one(c->flight, AFZ_KIND_HOST);
        const struct afz_column *column =
                afz_track_column(afz_flight_one(c->flight, AFZ_KIND_HOLD), AFZ_HOLD_AVAILABLE);
        if (!column)
                column = afz_track_column(host, AFZ_HOST_MEM_AVAILABLE);
        if (total <= 0 && !last_of(host, AFZ_HOST_MEM_TOTAL, &total))
                return false;
        if (!afz_column_least(column, before_end(c, rule.near_ms), UINT32_MAX, &least) ||
            least < 0 || (double)least > (double)total * rule.short_of_ram)
                return false;
        *ret_available_bytes = (uint64_t)least;
        return true;
}

/* ---- a machine that went down ---- */

static bool hardware_sign(const struct afz_case *c, struct afz_verdict *v)
{
        for (size_t i = c->flight->marks; i-- > 0;) {
                const struct afz_mark *mark = &c->flight->mark[i];
                if (mark->t_ms < before_end(c, rule.hardware_ms))
                        return false;
                if (!is_event(mark, AFZ_EVENT_MACHINE_CHECK))
                        continue;
                afz_verdict_note(v, "the kernel reported a hardware error %s before: %.110s",
                                 LASTS(c->flight->end_ms - mark->t_ms), mark->text);
                return true;
        }
        return false;
}

static bool heat_sign(const struct afz_case *c, struct afz_verdict *v)
{
        const struct afz_track *track;
        int64_t hot, off;
        for (size_t cursor = 0; (track = afz_flight_next(c->flight, AFZ_KIND_THERMAL, &cursor));) {
                if (!last_of(track, AFZ_THERMAL_CRITICAL, &off) || off < rule.hot_millicelsius ||
                    !afz_column_most(afz_track_column(track, AFZ_THERMAL_TEMP),
                                     before_end(c, rule.signs_ms), UINT32_MAX, &hot) ||
                    hot < off - rule.hot_millicelsius)
                        continue;
                afz_verdict_note(v, "%.60s was at %lld °C; the machine turns itself off at %lld",
                                 track->name[0] ? track->name : "a thermometer",
                                 (long long)hot / 1000, (long long)off / 1000);
                return true;
        }
        return false;
}

static bool battery_sign(const struct afz_case *c, struct afz_verdict *v)
{
        const struct afz_track *track;
        int64_t charge, empties;
        for (size_t cursor = 0; (track = afz_flight_next(c->flight, AFZ_KIND_POWER, &cursor));) {
                if (!last_of(track, AFZ_POWER_BATTERY, &charge) ||
                    !last_of(track, AFZ_POWER_DISCHARGING, &empties) || !empties ||
                    charge > rule.battery_permyriad)
                        continue;
                afz_verdict_note(v, "the battery was at %lld %%, and nothing charged it",
                                 (long long)charge / 100);
                return true;
        }
        return false;
}

static bool memory_sign(const struct afz_case *c, struct afz_verdict *v)
{
        uint64_t available;
        if (!afz_end_was_short(c, &available))
                return false;
        afz_verdict_note(v, "%s of its %s of RAM could still be had", SIZE(available),
                         SIZE(c->flight->head.ram_total_bytes));
        return true;
}

const char *afz_end_signs(const struct afz_case *c, struct afz_verdict *v)
{
        static const struct {
                bool (*look)(const struct afz_case *c, struct afz_verdict *v);
                const char *clause;
        } sign[] = {
                {hardware_sign, "the hardware had reported an error"},
                {heat_sign, "it was very hot"},
                {battery_sign, "its battery was empty"},
                {memory_sign, "it was out of memory"},
        };
        const char *clause = NULL;
        for (size_t i = 0; i < sizeof sign / sizeof *sign; i++)
                if (sign[i].look(c, v) && !clause)
                        clause = sign[i].clause;
        return clause;
}
