#include "work_signs.h"

#include <string.h>

#include "step_clock.h"

static const struct {
        int64_t steps;    /* that were begun */
        unsigned lines;   /* moments in which it wrote something, with one in each half, ... */
        uint32_t line_ms; /* ... and one in so long */
        double fell;      /* given back in all, of the growth */
        unsigned falls;   /* in so many moments, with one in each half */
        double pauses;    /* share of the looks in which it did not grow */
        double still;     /* of the mean growth between two looks: that is no growth */
        double piece; /* in a look that grew, on the mean: below that, huge pages look like steps */
        double idle_cores; /* used, and no more: it waits for something, ... */
        double runnable;   /* ... and not for a core: processes that want to run, on the mean */
        double reads;      /* of the growth: but not for data that it keeps */
        double slow;     /* bytes kept by the second of a core: what is loaded comes faster, ... */
        double no_reads; /* ... and is read from somewhere: of the growth */
        double rest_cores; /* used, and no more: it rests */
        double elsewhere;  /* of the growth: what came from disks, or over the network */
        unsigned looks;    /* so many at least, or nothing can be said by them */
        uint32_t look_ms;  /* further apart, they see no steps */
} rule = {
        .steps = 3,
        .lines = 2,
        .line_ms = 20000, /* "loading ..." and "done" may be a minute apart */
        .fell = 0.1,
        .falls = 6, /* steps, not the end of a phase */
        .pauses = 0.3,
        .still = 0.1,
        .piece = 4 << 20,  /* two of them */
        .idle_cores = 0.6, /* parsing, drawing and copying take a whole core */
        .runnable = 0.75,  /* one who builds a table wants a core in every look */
        .reads = 0.25,     /* compressed data grows fourfold */
        .slow = 64 << 20,  /* parsers of text make 100 MB a second, drawing numbers 500 */
        .no_reads = 0.02,  /* pictures grow tenfold, what is drawn reads nothing */
        .rest_cores = 0.3, /* who reads and parses as fast as it goes takes a core, or a disk */
        .elsewhere = 0.1,  /* others of the machine receive something, too */
        .looks = 16,
        .look_ms = 250,
};

/* Moments, and whether they are spread over the whole stretch. */
struct moments {
        unsigned count;
        bool early, late;
};

static void take(struct moments *m, uint32_t t_ms, uint32_t from_ms, uint32_t to_ms)
{
        m->count++;
        if (t_ms - from_ms < (to_ms - from_ms) / 2)
                m->early = true;
        else
                m->late = true;
}

static bool spread(const struct moments *m, unsigned least)
{
        return m->count >= least && m->early && m->late;
}

static bool has_steps(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms)
{
        const struct afz_column *steps = afz_step_column(flight, from_ms, to_ms);
        return afz_step_count(steps, from_ms, to_ms) >= rule.steps;
}

static enum afz_work by_lines(const struct afz_column *written, uint32_t from_ms, uint32_t to_ms)
{
        struct moments m = {0};
        unsigned points = 0;
        size_t i = written ? afz_column_at(written, from_ms) : 0;
        for (; written && i < written->count && written->point[i].t_ms < to_ms; i++, points++)
                if (i > 0 && written->point[i].mean > written->point[i - 1].mean)
                        take(&m, written->point[i].t_ms, from_ms, to_ms);
        if (points < rule.lines)
                return AFZ_WORK_UNKNOWN;
        unsigned least = (to_ms - from_ms) / rule.line_ms;
        return spread(&m, least > rule.lines ? least : rule.lines) ? AFZ_WORK_SEEN : AFZ_WORK_NONE;
}

static bool was_braked(const struct afz_column *braked, uint32_t t_ms)
{
        int64_t flag;
        return afz_column_last(braked, t_ms + 1, &flag) && flag > 0;
}

struct ups_and_downs {
        struct moments falls;
        double fell, growth;
        unsigned looks, still;
        uint32_t first_ms, last_ms;
};

static void look_over(const struct afz_column *need, const struct afz_column *braked,
                      uint32_t from_ms, uint32_t to_ms, struct ups_and_downs *ret)
{
        size_t first = afz_column_at(need, from_ms), end = afz_column_at(need, to_ms);
        if (end < first + 2)
                return;
        ret->first_ms = need->point[first].t_ms;
        ret->last_ms = need->point[end - 1].t_ms;
        ret->growth = (double)need->point[end - 1].mean - (double)need->point[first].mean;
        double mean = ret->growth / (double)(end - first - 1);
        for (size_t i = first + 1; i < end; i++) {
                double rise = (double)need->point[i].mean - (double)need->point[i - 1].mean;
                if (was_braked(braked, need->point[i].t_ms))
                        continue;
                ret->looks++;
                ret->still += rise < rule.still * mean;
                if (rise >= 0)
                        continue;
                ret->fell -= rise;
                take(&ret->falls, need->point[i].t_ms, from_ms, to_ms);
        }
}

static enum afz_work by_shape(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms,
                              const char **ret_sign)
{
        const struct afz_column *need = afz_flight_need(flight);
        struct ups_and_downs u = {0};
        if (need)
                look_over(need,
                          afz_track_column(afz_flight_one(flight, AFZ_KIND_HOLD), AFZ_HOLD_BRAKED),
                          from_ms, to_ms, &u);
        if (u.looks < rule.looks || u.growth <= 0 ||
            (u.last_ms - u.first_ms) / u.looks > rule.look_ms)
                return AFZ_WORK_UNKNOWN;
        if (spread(&u.falls, rule.falls) && u.fell >= rule.fell * u.growth) {
                *ret_sign = "it also gave memory back all the while, as steps do";
                return AFZ_WORK_SEEN;
        }
        if (u.still >= rule.pauses * u.looks && u.growth >= rule.piece * (u.looks - u.still)) {
                *ret_sign = "it grew bit by bit with pauses in between, as steps do";
                return AFZ_WORK_HINTED;
        }
        return AFZ_WORK_NONE;
}

/* What it used and read in a stretch, by the second. */
struct effort {
        double growth, cpu, read; /* bytes; cores in ns; bytes */
};

static bool effort_of(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms,
                      struct effort *ret)
{
        const struct afz_track *job = afz_flight_one(flight, AFZ_KIND_JOB);
        const struct afz_column *need = afz_flight_need(flight);
        int64_t before, after;
        if (!afz_column_rate(afz_track_column(job, AFZ_JOB_CPU), from_ms, to_ms, &ret->cpu) ||
            !afz_column_rate(afz_track_column(job, AFZ_JOB_READ_CALLS), from_ms, to_ms,
                             &ret->read) ||
            !afz_column_last(need, from_ms + 1, &before) || !afz_column_last(need, to_ms, &after))
                return false;
        ret->growth = ((double)after - (double)before) * 1000 / (to_ms - from_ms);
        return true;
}

static enum afz_work by_waiting(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms)
{
        const struct afz_track *job = afz_flight_one(flight, AFZ_KIND_JOB);
        double runnable;
        struct effort e;
        if (!afz_column_mean(afz_track_column(job, AFZ_JOB_RUNNING), from_ms, to_ms, &runnable) ||
            !effort_of(flight, from_ms, to_ms, &e))
                return AFZ_WORK_UNKNOWN;
        return e.cpu < rule.idle_cores * 1e9 && runnable < rule.runnable &&
                               e.read < rule.reads * e.growth
                       ? AFZ_WORK_HINTED
                       : AFZ_WORK_NONE;
}

bool afz_work_computes(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms)
{
        struct effort e;
        return from_ms < to_ms && effort_of(flight, from_ms, to_ms, &e) &&
               e.growth < rule.slow * e.cpu / 1e9 && e.read < rule.no_reads * e.growth;
}

/* By the second, over all links but the machine's own. */
static double received(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms)
{
        const struct afz_track *net;
        double sum = 0, rate;
        for (size_t at = 0; (net = afz_flight_next(flight, AFZ_KIND_NET, &at));)
                if (strcmp(net->name, "lo") != 0 &&
                    afz_column_rate(afz_track_column(net, AFZ_NET_RECEIVED), from_ms, to_ms, &rate))
                        sum += rate;
        return sum;
}

bool afz_work_rests(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms)
{
        const struct afz_track *job = afz_flight_one(flight, AFZ_KIND_JOB);
        double runnable, disk;
        struct effort e;
        if (from_ms >= to_ms || !effort_of(flight, from_ms, to_ms, &e) ||
            !afz_column_mean(afz_track_column(job, AFZ_JOB_RUNNING), from_ms, to_ms, &runnable) ||
            !afz_column_rate(afz_track_column(job, AFZ_JOB_READ), from_ms, to_ms, &disk))
                return false;
        return e.cpu < rule.rest_cores * 1e9 && runnable < rule.runnable &&
               disk + received(flight, from_ms, to_ms) < rule.elsewhere * e.growth;
}

enum afz_work afz_work_in(const struct afz_flight *flight, uint32_t from_ms, uint32_t to_ms,
                          const char **ret_sign)
{
        const struct afz_track *job = afz_flight_one(flight, AFZ_KIND_JOB);
        const char *sign = "";
        if (from_ms >= to_ms)
                return AFZ_WORK_UNKNOWN;
        enum afz_work lines = by_lines(afz_track_column(job, AFZ_JOB_WRITE_CALLS), from_ms, to_ms);
        enum afz_work shape = by_shape(flight, from_ms, to_ms, &sign);
        enum afz_work waits = by_waiting(flight, from_ms, to_ms);
        bool steps = has_steps(flight, from_ms, to_ms);
        if (steps)
                sign = "its steps went on all the while";
        else if (lines == AFZ_WORK_SEEN)
                sign = "it went on working and wrote lines all the while";
        else if (shape < AFZ_WORK_HINTED && waits == AFZ_WORK_HINTED)
                sign = "it paused all the while, as one that loads its data does not";
        if (ret_sign)
                *ret_sign = sign;
        if (steps || lines == AFZ_WORK_SEEN || shape == AFZ_WORK_SEEN)
                return AFZ_WORK_SEEN;
        if (shape == AFZ_WORK_HINTED || waits == AFZ_WORK_HINTED)
                return AFZ_WORK_HINTED;
        return lines == AFZ_WORK_NONE && shape == AFZ_WORK_NONE ? AFZ_WORK_NONE : AFZ_WORK_UNKNOWN;
}
