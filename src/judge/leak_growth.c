#include "leak_growth.h"

#include <string.h>

#include "step_clock.h"

/* Processes are looked at once a second, busy machines less often: not seen for so long before the
 * end, it is gone. */
#define DEAD_MS 5000
/* A leak has more blocks than this: as many as the parts of its time in which it is to rise. */
#define FEW_BLOCKS 8
/* Of what lives: who ever asked for more has given some back, or makes it anew, ever larger. */
#define MADE_ANEW 2.0

const struct afz_column *afz_leak_need_of(const struct afz_track *process)
{
        const struct afz_column *need = afz_track_column(process, AFZ_PROC_NEED);
        return need ? need : afz_track_column(process, AFZ_PROC_RSS_ANON);
}

enum afz_role afz_leak_role_of(const struct afz_track *process)
{
        int64_t role;
        bool known = afz_column_last(afz_track_column(process, AFZ_PROC_ROLE), UINT32_MAX, &role);
        return known && role >= 0 && role < AFZ_ROLE_COUNT ? (enum afz_role)role : AFZ_ROLE_OTHER;
}

double afz_leak_rose(const struct afz_column *column, const struct afz_trend *trend)
{
        int64_t before, after;
        if (!afz_column_last(column, trend->from_ms + 1, &before) ||
            !afz_column_last(column, trend->to_ms + 1, &after))
                return 0;
        return (double)after - (double)before;
}

static bool is_gone(const struct afz_track *track, uint32_t to_ms)
{
        return (uint64_t)track->last_ms + DEAD_MS < to_ms;
}

/* ---- who ---- */

/* From the stretch's start, or its own birth, to its end; below 0: it is gone, or never told. */
static double grown(const struct afz_track *track, const struct afz_trend *trend)
{
        int64_t before = 0, after;
        const struct afz_column *need = afz_leak_need_of(track);
        if (is_gone(track, trend->to_ms) || !afz_column_last(need, trend->to_ms, &after))
                return -1;
        (void)afz_column_last(need, trend->from_ms, &before);
        return (double)after - (double)before;
}

static struct afz_leak_who who_grew(const struct afz_flight *flight, const struct afz_trend *trend)
{
        double sum[AFZ_ROLE_COUNT] = {0};
        unsigned count[AFZ_ROLE_COUNT] = {0};
        struct afz_leak_who top = {0};
        const struct afz_track *track;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_PROC, &at));) {
                double bytes = grown(track, trend);
                if (bytes <= 0)
                        continue;
                sum[afz_leak_role_of(track)] += bytes;
                count[afz_leak_role_of(track)]++;
        }
        for (unsigned r = 0; r < AFZ_ROLE_COUNT; r++)
                if (sum[r] > top.role_bytes)
                        top = (struct afz_leak_who){.role_bytes = sum[r],
                                                    .in_role = count[r],
                                                    .role = (enum afz_role)r};
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_PROC, &at));) {
                double bytes = grown(track, trend);
                if (afz_leak_role_of(track) == top.role && bytes > top.bytes) {
                        top.bytes = bytes;
                        top.track = track;
                }
        }
        return top;
}

/* ---- copies ---- */

/* From the start, or its birth, on; what a fork brings along was mapped before. False: not known.
 */
static bool mapped(const struct afz_track *track, const struct afz_trend *trend,
                   double ret_bytes[2])
{
        const struct afz_column *anon = afz_track_column(track, AFZ_PROC_RSS_ANON);
        int64_t before, after;
        if (!anon || anon->count == 0 || !afz_column_last(anon, trend->to_ms + 1, &after))
                return false;
        if (!afz_column_last(anon, trend->from_ms + 1, &before))
                before = anon->point[0].least;
        ret_bytes[0] = (double)before;
        ret_bytes[1] = (double)after;
        return true;
}

/* Shared pages count once in what the job needs, and in full in what each process maps. So does
 * what went to swap in the first, and not in the second: it is taken off. */
static struct afz_leak_copies copies_of(const struct afz_flight *flight,
                                        const struct afz_trend *trend, double other_bytes)
{
        const struct afz_column *away =
                afz_track_column(afz_flight_one(flight, AFZ_KIND_HOLD), AFZ_HOLD_AWAY);
        double swapped = afz_leak_rose(away, trend);
        struct afz_leak_copies copies = {.bytes = (double)trend->floor_last -
                                                  (double)trend->floor_first - other_bytes -
                                                  (swapped > 0 ? swapped : 0)};
        const struct afz_track *track;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_PROC, &at));) {
                double bytes[2];
                if (is_gone(track, trend->to_ms) || track->first_ms > trend->to_ms)
                        continue;
                if (!mapped(track, trend, bytes)) /* it may have grown by all of it */
                        return (struct afz_leak_copies){0};
                if (bytes[1] > bytes[0])
                        copies.bytes -= bytes[1] - bytes[0];
                if (afz_leak_role_of(track) == AFZ_ROLE_WORKER) {
                        copies.workers++;
                        copies.mapped_bytes += bytes[1];
                }
        }
        return copies;
}

/* ---- the heap ---- */

/* At the end of what is known before t; at the beginning, or at its birth. */
static bool around(const struct afz_column *column, const struct afz_trend *trend, double ret[2])
{
        int64_t before, after;
        if (!column || column->count < 2 || !afz_column_last(column, trend->to_ms + 1, &after))
                return false;
        if (!afz_column_last(column, trend->from_ms + 1, &before))
                before = column->point[0].least;
        ret[0] = (double)before;
        ret[1] = (double)after;
        return true;
}

static struct afz_leak_heap heap_of(const struct afz_flight *flight, const struct afz_trend *trend)
{
        struct afz_leak_heap heap = {0};
        const struct afz_track *track;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_INSIDE, &at));) {
                double taken[2], used[2];
                if (is_gone(track, trend->to_ms) ||
                    !around(afz_track_column(track, AFZ_INSIDE_HEAP_TAKEN), trend, taken) ||
                    !around(afz_track_column(track, AFZ_INSIDE_HEAP_USED), trend, used))
                        continue;
                heap.known = true;
                for (int i = 0; i < 2; i++)
                        heap.free_bytes[i] += taken[i] > used[i] ? taken[i] - used[i] : 0;
        }
        return heap;
}

double afz_leak_slack(const struct afz_leak_growth *g)
{
        double slack = g->heap.known ? g->heap.free_bytes[1] - g->heap.free_bytes[0] : 0;
        return slack > 0 ? slack : 0;
}

/* ---- all of it ---- */

static double live_at(const struct afz_flight *flight, uint32_t t_ms)
{
        struct afz_site_top top;
        return afz_site_top_at(flight, t_ms, &top) ? top.seen_bytes : 0;
}

/* In the job's own cgroup, where there is one; else what its processes map of it. */
static double shared_growth(const struct afz_flight *flight, const struct afz_trend *trend)
{
        const struct afz_track *group = afz_flight_one(flight, AFZ_KIND_CGROUP);
        const struct afz_column *cgroup = group && afz_flight_is_own_cgroup(flight, group)
                                                  ? afz_track_column(group, AFZ_CGROUP_SHMEM)
                                                  : NULL;
        const struct afz_column *mapped =
                afz_track_column(afz_flight_one(flight, AFZ_KIND_JOB), AFZ_JOB_PSS_SHMEM);
        return afz_leak_rose(cgroup ? cgroup : mapped, trend);
}

void afz_leak_growth_of(const struct afz_flight *flight, const struct afz_trend *trend,
                        struct afz_leak_growth *ret)
{
        const struct afz_column *steps = afz_step_column(flight, trend->from_ms, trend->to_ms);
        *ret = (struct afz_leak_growth){
                .flight = flight,
                .from_ms = trend->from_ms,
                .to_ms = trend->to_ms,
                .bytes = (double)trend->floor_last - (double)trend->floor_first,
                .need_bytes = (double)trend->floor_first,
                .steps = (double)afz_step_count(steps, trend->from_ms, trend->to_ms),
                .shared_bytes = shared_growth(flight, trend),
                .who = who_grew(flight, trend),
                .heap = heap_of(flight, trend),
        };
        ret->copies = copies_of(flight, trend, ret->shared_bytes > 0 ? ret->shared_bytes : 0);
        ret->live_bytes[0] = live_at(flight, trend->from_ms);
        ret->live_bytes[1] = live_at(flight, trend->to_ms);
        ret->has_sites = afz_site_growth(flight, trend->from_ms, trend->to_ms, &ret->sites);
        if (ret->has_sites)
                afz_leak_graph_of(flight, trend->from_ms, trend->to_ms, &ret->sites, &ret->graph);
}

/* ---- how ---- */

/* What a stack told last, or nothing. */
static double told(const struct afz_track *site, enum afz_metric metric, uint32_t to_ms)
{
        int64_t value;
        return afz_column_last(afz_track_column(site, metric), to_ms, &value) ? (double)value : 0;
}

bool afz_leak_fills(const struct afz_leak_growth *growth, const struct afz_site_row *row)
{
        uint32_t to_ms = growth->to_ms + 1;
        double blocks = 0, live = 0, total = 0, before = 0;
        const struct afz_track *site;
        if (!afz_track_column(row->track, AFZ_SITE_TOTAL)) /* small ones of many stacks */
                return false;
        for (size_t at = 0; (site = afz_flight_next(growth->flight, AFZ_KIND_SITE, &at));) {
                if (site->subject.id == 0 || !afz_site_same_line(site, row->track))
                        continue;
                blocks += told(site, AFZ_SITE_BLOCKS, to_ms);
                live += told(site, AFZ_SITE_LIVE, to_ms);
                total += told(site, AFZ_SITE_TOTAL, to_ms);
                before += told(site, AFZ_SITE_TOTAL, growth->from_ms);
        }
        /* Of one that is large and not half full yet, what was asked for is all the same. */
        return blocks < FEW_BLOCKS && (total <= MADE_ANEW * live || total <= before);
}
