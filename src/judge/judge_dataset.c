/* dataset-in-memory: most of the job's memory is what it loaded before it began to work. */
#include <stdio.h>
#include <string.h>

#include "end_clues.h"
#include "judge_words.h"
#include "judges.h"
#include "leak.h"
#include "memory_line.h"
#include "site_top.h"
#include "site_use.h"
#include "step_clock.h"
#include "work_signs.h"

static const struct {
        double share;  /* of the peak less code, what must be data; */
        double least;  /* and of the whole peak */
        double most;   /* and from here on nothing else matters */
        double line;   /* of that, what a line must have to be named beside the first */
        double block;  /* of the peak: one block of this size is no leak, which has many */
        double blocks; /* one, and what realloc or a copy leaves beside it */
        double same;   /* two sizes this close are the same */
        double reads_least, reads_most; /* read() handed out so much of it: it was loaded */
        uint32_t early_part; /* without steps: it was there after this part of the run, */
        uint32_t end_part;   /* and still before this part of it was left */
        double stays;        /* of what was loaded, what must still be there when it ends */
        uint32_t stays_ms;   /* and for so long */
        double malloc_most; /* times what was asked for, that small blocks take: texts of 8 bytes */
} rule = {
        .share = 0.5, /* "most of it" */
        .least = 0.3,
        .most = 0.7,
        .line = 0.15,
        .block = 0.3,
        .blocks = 3,
        .same = 0.02,       /* pages are counted by samples */
        .reads_least = 0.1, /* as judge_leak.c has it: objects take ten times their text */
        .reads_most = 4,
        .early_part = 3,
        .end_part = 4,
        .stays = 0.8,
        .stays_ms = 10000,
        .malloc_most = 4,
};

/* How sure. */
static const struct {
        double steps, steps_most; /* the step clock tells what was there before the first one */
        double unnamed;           /* off where no name says that it is data */
        double block, loads;      /* it was stopped before any step: one block; files were read */
        double named;             /* likewise, by names alone */
        double flat;              /* no clock; it was loaded, and stayed while it worked */
        double flat_line;         /* likewise, and nothing but its size says that it is data */
} sure = {
        .steps = 0.85,
        .steps_most = 0.9,
        .unnamed = 0.05,
        .block = 0.85,
        .loads = 0.75,
        .named = 0.7,
        .flat = 0.65,
        .flat_line = 0.6,
};

/* The lines that hold data, largest first. */
struct data {
        double bytes;
        double code_bytes; /* beside them: modules that were imported, and crumbs everywhere */
        unsigned rows;
        struct afz_site_row row[AFZ_SITE_ROWS];
        bool named; /* the first one is known to be data by its stack */
};

enum when { WITH_STEPS, WHILE_LOADING, WITHOUT_CLOCK };

/* What is known to be something else does not count. */
static bool may_be_data(const struct afz_flight *flight, const struct afz_site_row *row,
                        enum afz_site_use use, enum when when)
{
        struct afz_where where = {0};
        afz_site_where(row->track, &where);
        switch (use) {
        case AFZ_USE_DATA:
        case AFZ_USE_OTHER:
                return true;
        case AFZ_USE_STEP: /* a name that says "step" errs, when it was there before all steps: but
                              a pool keeps what the first one took, which may be told as it ends */
                return when == WITH_STEPS && where.line > 0 &&
                       !afz_site_is_pool(flight, row->track);
        case AFZ_USE_RESULT:
                return when == WITH_STEPS && where.line > 0;
        default:
                return false;
        }
}

/* How much more small blocks take than was asked for: malloc puts 8 bytes before each and makes it
 * 32 at least, so a table of short texts is mostly that. By malloc's own sums. */
static double malloc_factor(const struct afz_flight *flight, const struct afz_site_top *top)
{
        double used = 0, small = 0;
        const struct afz_track *track;
        for (size_t at = 0; (track = afz_flight_next(flight, AFZ_KIND_INSIDE, &at));) {
                int64_t heap;
                if (afz_column_last(afz_track_column(track, AFZ_INSIDE_HEAP_USED), top->t_ms + 1,
                                    &heap))
                        used += (double)heap;
        }
        for (unsigned i = 0; i < top->rows; i++) {
                const struct afz_site_row *row = &top->row[i];
                if (afz_site_memory_of(row->track) != AFZ_MEMORY_HEAP)
                        continue;
                small += row->bytes - row->counted_bytes;
                used -= row->counted_bytes;
        }
        double factor = small > 0 ? used / small : 1;
        return factor < 1 ? 1 : factor > rule.malloc_most ? rule.malloc_most : factor;
}

static bool data_at(const struct afz_flight *flight, uint32_t t_ms, enum when when,
                    struct data *ret)
{
        struct afz_site_top top;
        *ret = (struct data){0};
        if (!afz_site_top_at(flight, t_ms, &top))
                return false;
        const double factor = malloc_factor(flight, &top);
        for (unsigned i = 0; i < top.rows; i++) {
                struct afz_site_row row = top.row[i];
                enum afz_site_use use = afz_site_use_of(flight, row.track);
                if (when == WITH_STEPS)
                        row.bytes = row.early_bytes;
                if (row.counted_bytes <= 0 && afz_site_memory_of(row.track) == AFZ_MEMORY_HEAP)
                        row.bytes *= factor;
                if (row.bytes <= 0 || !may_be_data(flight, &row, use, when))
                        continue;
                unsigned at = ret->rows++;
                for (; at > 0 && ret->row[at - 1].bytes < row.bytes; at--)
                        ret->row[at] = ret->row[at - 1];
                ret->row[at] = row;
                ret->bytes += row.bytes;
        }
        ret->code_bytes = afz_site_code_bytes(flight, &top);
        ret->named = ret->rows > 0 && afz_site_use_of(flight, ret->row[0].track) == AFZ_USE_DATA;
        return ret->rows > 0;
}

static bool is_most(const struct afz_memory_line *line, const struct data *d)
{
        return d->bytes >= rule.share * (line->peak_bytes - d->code_bytes) &&
               d->bytes >= rule.least * line->peak_bytes;
}

/* ---- the words ---- */

/* "180M of the 240M". What lines hold is reckoned from samples, and a job's need is looked at at
 * other moments: it may come out as more than all there was. */
#define PART_OF(bytes, all) part_of((bytes), (all), (char[64]){0}, 64)

static const char *part_of(double bytes, double all, char *buf, size_t cap)
{
        if (bytes < all)
                snprintf(buf, cap, "%s of the %s", SIZE(bytes), SIZE(all));
        else
                snprintf(buf, cap, "as good as all of the %s", SIZE(all));
        return buf;
}

/* Two lines that hold the same, or one twice as much as the other. */
static const char *copies_of(const struct data *d, const struct afz_site_row **ret_other)
{
        const struct afz_site_row *a = &d->row[0];
        for (unsigned i = 1; i < d->rows; i++) {
                double times = a->bytes / d->row[i].bytes;
                *ret_other = &d->row[i];
                if (d->row[i].bytes < rule.line * d->bytes)
                        break;
                if (times > 2 * (1 - rule.same) && times < 2 * (1 + rule.same))
                        return "two copies, the larger with numbers twice as wide (as float64 is "
                               "to float32)";
                if (times < 1 + rule.same)
                        return "as much twice: perhaps two copies of the same";
        }
        return NULL;
}

static void note_lines(const struct data *d, struct afz_verdict *v)
{
        for (unsigned i = 0; i < d->rows && i < 3; i++) {
                const struct afz_site_row *row = &d->row[i];
                if (i > 0 && row->bytes < rule.line * d->bytes)
                        break;
                bool one = row->blocks > 0 && row->blocks < 1.5;
                int64_t processes = 0;
                (void)afz_column_most(afz_track_column(row->track, AFZ_SITE_PROCESSES), 0,
                                      UINT32_MAX, &processes);
                if (processes > 1)
                        afz_verdict_note(v, "%s at %s, in %lld processes that load it each",
                                         SIZE(row->bytes), row->track->name, (long long)processes);
                else
                        afz_verdict_note(v, "%s at %s%s", SIZE(row->bytes), row->track->name,
                                         one ? ", in one piece" : "");
        }
}

static void put_fix(bool copies, bool wide, struct afz_verdict *v)
{
        snprintf(v->fix, sizeof v->fix,
                 "stream it: keep it on disk and read what a batch needs when it is needed (a "
                 "Dataset that reads in __getitem__, np.memmap, tf.data from files)%s%s",
                 copies ? "; until then, keep one copy: del the first once it is converted" : "",
                 wide ? ", or make it float32 from the start" : "");
}

static struct afz_verdict *say(const struct afz_memory_line *line, const struct data *d,
                               double confidence, struct afz_outcome *ret)
{
        const struct afz_site_row *other;
        const char *copies = copies_of(d, &other);
        /* Where it leaked, it ended for that. */
        bool act = line->met && !afz_leak_said(ret);
        struct afz_verdict *v = afz_outcome_add(ret, "dataset-in-memory",
                                                act ? AFZ_LEVEL_ACT : AFZ_LEVEL_WARN, confidence);
        if (!v)
                return NULL;
        afz_site_where(d->row[0].track, &v->where);
        note_lines(d, v);
        if (copies)
                afz_verdict_note(v, "%s and %s: %s", d->row[0].track->name, other->track->name,
                                 copies);
        put_fix(copies != NULL, copies && strstr(copies, "wide"), v);
        return v;
}

/* ---- with a step clock ---- */

static void judge_steps(const struct afz_case *c, const struct afz_memory_line *line,
                        const struct afz_column *steps, struct afz_outcome *ret)
{
        struct data d;
        uint32_t from_ms, end_ms, first_ms;
        if (!afz_step_steady(steps, 1, &from_ms, &end_ms))
                end_ms = c->flight->end_ms; /* few steps: it did not end by itself */
        if (!afz_step_first(steps, &first_ms) || !data_at(c->flight, end_ms, WITH_STEPS, &d) ||
            !is_most(line, &d))
                return;
        double confidence = d.bytes < rule.most * line->peak_bytes ? sure.steps : sure.steps_most;
        struct afz_verdict *v =
                say(line, &d, d.named ? confidence : confidence - sure.unnamed, ret);
        if (!v)
                return;
        snprintf(v->summary, sizeof v->summary,
                 "the data set is in memory as a whole: %s at its peak were allocated before the "
                 "first step and stay, most at %s",
                 PART_OF(d.bytes, line->peak_bytes), d.row[0].track->name);
        afz_verdict_note(v, "the first step came after %s; %lld were made", LASTS(first_ms),
                         (long long)afz_step_count(steps, 0, UINT32_MAX));
        v->to_ms = end_ms;
}

/* ---- stopped before it ever made a step ---- */

static double read_bytes(const struct afz_flight *flight, uint32_t from_ms)
{
        const struct afz_column *read =
                afz_track_column(afz_flight_one(flight, AFZ_KIND_JOB), AFZ_JOB_READ_CALLS);
        int64_t before = 0, after;
        if (!afz_column_last(read, UINT32_MAX, &after))
                return 0;
        (void)afz_column_last(read, from_ms, &before);
        return (double)after - (double)before;
}

static bool is_one_block(const struct afz_memory_line *line, const struct data *d)
{
        const struct afz_site_row *first = &d->row[0];
        return first->blocks > 0 && first->blocks <= rule.blocks &&
               first->bytes >= rule.block * line->peak_bytes;
}

/* What says that it loads, and how sure that makes; 0: nothing does. A leak grows alike; where both
 * are said of a line, the surer stays (verdicts.c). */
static double loading_sign(const struct afz_case *c, const struct afz_memory_line *line,
                           const struct data *d, const char **ret)
{
        double read = read_bytes(c->flight, afz_end_last_start(c->flight));
        if (is_one_block(line, d)) {
                *ret = "a leak has many blocks; this is one";
                return sure.block;
        }
        if (read > rule.reads_least * d->bytes && read < rule.reads_most * d->bytes &&
            !afz_work_rests(c->flight, afz_end_last_start(c->flight), c->flight->end_ms)) {
                *ret = "it read from files about as much as it holds";
                return sure.loads;
        }
        *ret = "by its names, what it did is loading data";
        return d->named ? sure.named : 0;
}

static void judge_loading(const struct afz_case *c, const struct afz_memory_line *line,
                          struct afz_outcome *ret)
{
        struct data d;
        uint32_t end_ms;
        const char *sign;
        if (!line->met || !afz_site_peak(c->flight, &end_ms) ||
            !data_at(c->flight, end_ms, WHILE_LOADING, &d) || !is_most(line, &d))
                return;
        double confidence = loading_sign(c, line, &d, &sign);
        struct afz_verdict *v = confidence > 0 ? say(line, &d, confidence, ret) : NULL;
        if (!v)
                return;
        snprintf(v->summary, sizeof v->summary,
                 "the data do not fit: it was stopped while they came into memory, and %s that it "
                 "held then were allocated at %s",
                 PART_OF(d.row[0].bytes, line->peak_bytes), d.row[0].track->name);
        afz_verdict_note(v, "%s", sign);
        v->to_ms = end_ms;
}

/* ---- no clock: it was loaded, and stayed while it worked ---- */

/* When the data was there, as good as all of it. */
static uint32_t there_at(const struct afz_flight *flight, double bytes)
{
        const struct afz_column *need = afz_flight_need(flight);
        for (size_t i = need ? afz_column_at(need, afz_end_last_start(flight)) : 0;
             need && i < need->count; i++)
                if ((double)need->point[i].mean >= rule.stays * bytes)
                        return need->point[i].t_ms;
        return UINT32_MAX;
}

static void judge_flat(const struct afz_case *c, const struct afz_memory_line *line,
                       struct afz_outcome *ret)
{
        uint32_t start_ms = afz_end_last_start(c->flight), end_ms = c->flight->end_ms;
        const char *sign;
        struct data d;
        if (start_ms >= end_ms)
                return;
        end_ms -= (end_ms - start_ms) / rule.end_part; /* who ends gives back */
        if (line->met || afz_leak_said(ret) || !data_at(c->flight, end_ms, WITHOUT_CLOCK, &d) ||
            !is_most(line, &d))
                return;
        bool known = d.named || is_one_block(line, &d);
        if (!known && d.row[0].bytes < rule.share * (line->peak_bytes - d.code_bytes))
                return;
        uint32_t there_ms = there_at(c->flight, line->peak_bytes);
        struct afz_trend trend = afz_trend_of(afz_flight_need(c->flight), start_ms, UINT32_MAX);
        if (there_ms > end_ms || there_ms - start_ms > (end_ms - start_ms) / rule.early_part ||
            end_ms - there_ms < rule.stays_ms || trend.growth == AFZ_GROWTH_LEAK ||
            afz_work_in(c->flight, there_ms, end_ms, &sign) == AFZ_WORK_UNKNOWN)
                return;
        struct afz_verdict *v = say(line, &d, known ? sure.flat : sure.flat_line, ret);
        if (!v)
                return;
        snprintf(v->summary, sizeof v->summary,
                 "the data seem to be in memory as a whole: %s at its peak were there after %s and "
                 "stayed, most at %s",
                 PART_OF(d.bytes, line->peak_bytes), LASTS(there_ms - start_ms),
                 d.row[0].track->name);
        v->to_ms = end_ms;
}

void afz_judge_dataset(const struct afz_case *c, struct afz_outcome *ret)
{
        struct afz_memory_line line = afz_memory_line_of(c);
        uint32_t start_ms = afz_end_last_start(c->flight);
        const struct afz_column *steps = afz_step_column(c->flight, start_ms, UINT32_MAX);
        if (!line.near || line.peak_bytes <= 0)
                return;
        if (steps)
                judge_steps(c, &line, steps, ret);
        else if (line.met)
                judge_loading(c, &line, ret);
        else
                judge_flat(c, &line, ret);
}
