/* batch-too-large: what meets the line comes and goes with each step. */
#include <stdio.h>
#include <string.h>

#include "batch_split.h"
#include "end_clues.h"
#include "judge_words.h"
#include "judges.h"
#include "memory_line.h"
#include "site_swing.h"
#include "site_use.h"
#include "step_clock.h"

static const struct {
        double share;  /* of the peak, what a step must take for itself */
        double near;   /* of the line: a peak that is known and stays below is fine */
        int64_t steps; /* before them, things are made that stay */
        double rises;  /* of a step's own: what stays may rise by, from one half to the other */
        double falls;  /* of what a stack of its largest line swings by, what must be seen to go */
        double line;   /* of a step's own, what a line must have to be told */
        unsigned most; /* parts that a batch can be cut into, and still be one */
} rule = {
        .share = 0.4,
        .near = 0.8,
        .steps = 3,
        .rises = 0.2,
        .falls = 0.5,
        .line = 0.1,
        .most = 64,
};

/* How sure. */
static const struct {
        double met;   /* it met its line, and steps were seen to come and go */
        double close; /* it came near it */
        double begun; /* it was stopped in its first step, by a clock; */
        double named; /* or by the names of its lines alone */
        double pool;  /* steps do not come and go, but keep a pool */
} sure = {.met = 0.85, .close = 0.8, .begun = 0.75, .named = 0.7, .pool = 0.7};

struct burst {
        double own;  /* what a step takes and gives back */
        double rest; /* what else was there at the peak */
        double code; /* of that: modules that were imported, and crumbs everywhere */
        bool cut;    /* it was stopped on the way up: a whole step takes more */
        struct afz_site_top top;
};

/* Large against what the program holds itself, and a smaller one would help. */
static bool is_large(const struct afz_memory_line *line, const struct burst *b)
{
        return b->own >= rule.share * (line->peak_bytes - b->code) &&
               b->rest <= AFZ_MEMORY_FITS * line->bytes;
}

/* ---- the words ---- */

/* The fewest equal parts of a batch that fit, by powers of two; 0: none does. */
static unsigned parts_that_fit(const struct afz_memory_line *line, const struct burst *b)
{
        unsigned parts = b->cut ? 4 : 2; /* a step that was not finished takes twice as much */
        while (parts <= rule.most &&
               b->rest + b->own * (b->cut ? 2 : 1) / parts > AFZ_MEMORY_FITS * line->bytes)
                parts *= 2;
        return parts <= rule.most ? parts : 0;
}

static void put_fix(const struct afz_case *c, const struct afz_memory_line *line,
                    const struct burst *b, struct afz_verdict *v)
{
        static const char *const word[] = {
                [2] = "half", [4] = "a quarter of", [8] = "an eighth of"};
        unsigned parts = parts_that_fit(line, b);
        uint64_t batch = c->facts.batch;
        double needs = b->rest + b->own * (b->cut ? 2 : 1) / (parts ? parts : 1);
        if (parts == 0)
                snprintf(v->fix, sizeof v->fix,
                         "a far smaller batch, with gradient accumulation to make up for it; what "
                         "stays between steps is %s of the %s already",
                         SIZE(b->rest), SIZE(line->bytes));
        else if (batch / parts > 0)
                snprintf(v->fix, sizeof v->fix,
                         "a batch of %llu with %u accumulation steps learns the same and needs "
                         "about %s: that fits in %s",
                         (unsigned long long)(batch / parts), parts, SIZE(needs),
                         SIZE(line->bytes));
        else if (parts <= 8)
                snprintf(v->fix, sizeof v->fix,
                         "%s the batch with %u accumulation steps learns the same and needs about "
                         "%s: that fits in %s",
                         word[parts], parts, SIZE(needs), SIZE(line->bytes));
        else
                snprintf(v->fix, sizeof v->fix,
                         "a batch of a %uth with %u accumulation steps learns the same and needs "
                         "about %s: that fits in %s",
                         parts, parts, SIZE(needs), SIZE(line->bytes));
}

static void note_lines(const struct burst *b, struct afz_verdict *v)
{
        for (unsigned i = 0; i < b->top.rows && i < 3; i++)
                if (i == 0 || b->top.row[i].bytes >= rule.line * b->top.seen_bytes)
                        afz_verdict_note(v, "up to %s of that at %s", SIZE(b->top.row[i].bytes),
                                         b->top.row[i].track->name);
}

/* Threads of a framework know no line of the user's: the one that called fit() does. */
static void find_caller(const struct afz_flight *flight, struct afz_verdict *v)
{
        const struct afz_track *site;
        for (size_t at = 0;
             v->where.line == 0 && (site = afz_flight_next(flight, AFZ_KIND_SITE, &at));) {
                if (!strstr(afz_site_stack(flight, site->subject.id), ".fit()"))
                        continue;
                afz_site_where(site, &v->where);
                if (v->where.line > 0)
                        afz_verdict_note(v, "its steps are called from %s", site->name);
        }
}

static struct afz_verdict *say(const struct afz_case *c, const struct afz_memory_line *line,
                               const struct burst *b, double confidence, struct afz_outcome *ret)
{
        struct afz_verdict *v = afz_outcome_add(
                ret, "batch-too-large", line->met ? AFZ_LEVEL_ACT : AFZ_LEVEL_WARN, confidence);
        if (!v)
                return NULL;
        afz_site_where(b->top.row[0].track, &v->where);
        if (v->where.line == 0)
                find_caller(c->flight, v);
        put_fix(c, line, b, v);
        return v;
}

/* ---- steps whose memory goes to a pool ---- */

/* TensorFlow keeps what a step gave back for the next: nothing comes and goes, but what its pool
 * grew by since the first step is what a step needs. */
static bool burst_of_pool(const struct afz_case *c, const struct afz_memory_line *line,
                          uint32_t t_ms, struct burst *ret)
{
        struct afz_site_top top;
        *ret = (struct burst){0};
        if (!afz_site_top_at(c->flight, t_ms, &top))
                return false;
        for (unsigned i = 0; i < top.rows; i++) {
                struct afz_site_row row = top.row[i];
                /* Where steps are told as they end, the first one seems to come before them. */
                if (afz_site_use_of(c->flight, row.track) != AFZ_USE_STEP)
                        row.bytes -= row.early_bytes;
                if (row.bytes <= 0 || !afz_site_is_pool(c->flight, row.track))
                        continue;
                ret->top.row[ret->top.rows++] = row;
                ret->own += row.bytes;
        }
        ret->top.seen_bytes = ret->own;
        ret->rest = line->peak_bytes - ret->own;
        ret->code = afz_site_code_bytes(c->flight, &top);
        return ret->top.rows > 0;
}

static void judge_pool(const struct afz_case *c, const struct afz_memory_line *line,
                       uint32_t from_ms, uint32_t last_ms, struct afz_outcome *ret)
{
        struct burst before, b;
        if (!burst_of_pool(c, line, from_ms + (last_ms - from_ms) / 2, &before) ||
            !burst_of_pool(c, line, last_ms, &b) || !is_large(line, &b) ||
            b.own - before.own > rule.rises * b.own)
                return;
        struct afz_verdict *v = say(c, line, &b, sure.pool, ret);
        if (!v)
                return;
        snprintf(v->summary, sizeof v->summary,
                 "the batch is too large: its steps need %s, %.0f %% of the %s at the peak, which "
                 "TensorFlow keeps for the next step",
                 SIZE(b.own), 100 * b.own / line->peak_bytes, SIZE(line->peak_bytes));
        afz_verdict_note(v, "it was taken in the first steps, and did not grow any more later");
        afz_verdict_note(v, "what else is there comes to %s", SIZE(b.rest));
        v->from_ms = from_ms;
        v->to_ms = last_ms;
}

/* ---- steps that were seen to come and go ---- */

/* What stays must not grow: that would be a leak, whatever comes and goes on top. */
static bool is_level(const struct afz_flight *flight, const struct afz_site_swing_ask *all,
                     double own)
{
        struct afz_site_swing early, late;
        uint32_t half_ms = all->from_ms + (all->low_to_ms - all->from_ms) / 2;
        struct afz_site_swing_ask first = {all->from_ms, half_ms, half_ms};
        struct afz_site_swing_ask second = {half_ms, all->low_to_ms, all->low_to_ms};
        if (!afz_site_swing_of(flight, &first, &early) ||
            !afz_site_swing_of(flight, &second, &late))
                return true;
        return late.low_bytes - early.low_bytes <= rule.rises * own;
}

/* Whether its largest line was seen to fall back after it had risen: in a run of a few looks, what
 * is only built up has a high and a low, too. A line may have many stacks, each with a part of it:
 * the one that the row has is held against what it swings by itself. */
static bool is_given_back(const struct afz_site_row *row, const struct afz_site_swing_ask *ask)
{
        const struct afz_column *highs = afz_track_column(row->track, AFZ_SITE_HIGH);
        const struct afz_column *lows = afz_track_column(row->track, AFZ_SITE_LOW);
        double most = 0;
        int64_t low, highest, lowest;
        if (!afz_column_most(highs, ask->from_ms, ask->to_ms, &highest) ||
            !afz_column_least(lows, ask->from_ms, ask->to_ms, &lowest))
                return false;
        for (size_t i = afz_column_at(highs, ask->from_ms); i < highs->count; i++) {
                const struct afz_point *high = &highs->point[i];
                if (high->t_ms < ask->to_ms &&
                    afz_column_least(lows, high->t_ms, high->t_ms + high->span_ms + 1, &low) &&
                    most - (double)low >= rule.falls * (double)(highest - lowest))
                        return true;
                most = (double)high->most > most ? (double)high->most : most;
        }
        return false;
}

static bool judge_steps(const struct afz_case *c, const struct afz_memory_line *line,
                        const struct afz_column *steps, struct afz_outcome *ret)
{
        struct afz_site_swing_ask ask = {.to_ms = UINT32_MAX};
        struct afz_site_swing swing;
        struct afz_site_top top;
        uint32_t last_ms;
        if (!afz_step_steady(steps, rule.steps, &ask.from_ms, &last_ms))
                return false;
        ask.low_to_ms = last_ms + 1;
        if (!line->met)
                ask.to_ms = ask.low_to_ms;
        if (!afz_site_swing_of(c->flight, &ask, &swing)) {
                judge_pool(c, line, ask.from_ms, last_ms, ret);
                return true;
        }
        double high = swing.high_bytes < line->peak_bytes ? swing.high_bytes : line->peak_bytes;
        struct burst b = {.own = high - swing.low_bytes, .top = swing.top};
        b.rest = line->peak_bytes - b.own;
        if (afz_site_top_at(c->flight, last_ms, &top))
                b.code = afz_site_code_bytes(c->flight, &top);
        if (!is_large(line, &b)) {
                judge_pool(c, line, ask.from_ms, last_ms, ret);
                return true;
        }
        if (!is_level(c->flight, &ask, b.own) || !is_given_back(&b.top.row[0], &ask))
                return true;
        struct afz_verdict *v = say(c, line, &b, line->met ? sure.met : sure.close, ret);
        if (!v)
                return true;
        snprintf(v->summary, sizeof v->summary,
                 "the batch is too large: each step takes %s and gives it back, %.0f %% of the %s "
                 "at the peak, most at %s",
                 SIZE(b.own), 100 * b.own / line->peak_bytes, SIZE(line->peak_bytes),
                 b.top.row[0].track->name);
        note_lines(&b, v);
        afz_verdict_note(v, "what stays between steps is %s, and does not grow (%lld steps)",
                         SIZE(b.rest), (long long)afz_step_count(steps, 0, UINT32_MAX));
        v->from_ms = ask.from_ms;
        v->to_ms = last_ms;
        return true;
}

/* ---- stopped in its first step ---- */

/* What of a line belongs to the step: what came since it began, where a clock says so; else all,
 * where its names do. */
static double own_of(const struct afz_flight *flight, const struct afz_site_row *row, bool begun)
{
        enum afz_site_use use = afz_site_use_of(flight, row->track);
        if (use == AFZ_USE_MODEL || use == AFZ_USE_IMPORT)
                return 0;
        if (begun)
                return row->bytes - row->early_bytes;
        return use == AFZ_USE_STEP || use == AFZ_USE_RESULT ? row->bytes : 0;
}

/* A step's block may be larger than all that was left: it was asked for as a whole, and the run was
 * stopped as it was filled. What of it was not there yet. A site that made several blocks may have
 * given some back since. */
static double not_there_yet(const struct afz_memory_line *line, const struct afz_track *site,
                            uint32_t to_ms)
{
        int64_t blocks, live, total;
        if (!afz_column_last(afz_track_column(site, AFZ_SITE_BLOCKS), to_ms, &blocks) ||
            !afz_column_last(afz_track_column(site, AFZ_SITE_LIVE), to_ms, &live) ||
            !afz_column_last(afz_track_column(site, AFZ_SITE_TOTAL), to_ms, &total))
                return 0;
        return blocks == 1 && live > 0 && total > live && (double)total <= 2 * line->bytes
                       ? (double)total - (double)live
                       : 0;
}

/* The same of all sites of a line. */
static double to_come(const struct afz_flight *flight, const struct afz_memory_line *line,
                      const struct afz_track *of, uint32_t t_ms)
{
        const struct afz_track *site;
        double sum = 0;
        for (size_t at = 0; (site = afz_flight_next(flight, AFZ_KIND_SITE, &at));)
                if (afz_site_same_line(site, of))
                        sum += not_there_yet(line, site, t_ms < UINT32_MAX ? t_ms + 1 : t_ms);
        return sum;
}

static bool burst_of_first(const struct afz_case *c, const struct afz_memory_line *line, bool begun,
                           uint32_t t_ms, struct burst *ret)
{
        struct afz_site_top top;
        double there = 0;
        *ret = (struct burst){.cut = true};
        if (!afz_site_top_at(c->flight, t_ms, &top))
                return false;
        for (unsigned i = 0; i < top.rows; i++) {
                struct afz_site_row row = top.row[i];
                row.bytes = own_of(c->flight, &top.row[i], begun);
                if (row.bytes <= 0)
                        continue;
                there += row.bytes;
                row.bytes += to_come(c->flight, line, row.track, t_ms);
                unsigned at = ret->top.rows++;
                for (; at > 0 && ret->top.row[at - 1].bytes < row.bytes; at--)
                        ret->top.row[at] = ret->top.row[at - 1];
                ret->top.row[at] = row;
                ret->own += row.bytes;
        }
        ret->top.seen_bytes = ret->own;
        ret->rest = line->peak_bytes - there;
        ret->code = afz_site_code_bytes(c->flight, &top);
        return ret->top.rows > 0;
}

static void judge_first(const struct afz_case *c, const struct afz_memory_line *line, int64_t begun,
                        struct afz_outcome *ret)
{
        uint32_t peak_ms;
        struct burst b;
        if (!line->met || begun >= rule.steps || !afz_site_peak(c->flight, &peak_ms) ||
            !burst_of_first(c, line, begun > 0, peak_ms, &b) || !is_large(line, &b))
                return;
        struct afz_verdict *v = say(c, line, &b, begun > 0 ? sure.begun : sure.named, ret);
        if (!v)
                return;
        snprintf(v->summary, sizeof v->summary,
                 "the batch is too large: it was stopped in its first step%s, which had asked for "
                 "%s by then, most at %s; %s were in use",
                 begun > 1 ? "s" : "", SIZE(b.own), b.top.row[0].track->name,
                 SIZE(line->peak_bytes));
        note_lines(&b, v);
        afz_verdict_note(v, "what was there before the step is about %s", SIZE(b.rest));
        v->to_ms = peak_ms;
}

void afz_judge_batch(const struct afz_case *c, struct afz_outcome *ret)
{
        struct afz_memory_line line = afz_memory_line_of(c);
        uint32_t start_ms = afz_end_last_start(c->flight);
        const struct afz_column *steps = afz_step_column(c->flight, start_ms, UINT32_MAX);
        if (!afz_leak_said(ret) && afz_batch_split_say(c, ret))
                return;
        if (line.bytes <= 0 || line.peak_bytes <= 0 || afz_leak_said(ret) ||
            afz_outcome_find(ret, "model-too-large") ||
            (!line.met && line.peak_bytes < rule.near * line.bytes))
                return;
        if (!steps || !judge_steps(c, &line, steps, ret))
                judge_first(c, &line, afz_step_count(steps, start_ms, UINT32_MAX), ret);
}
