/* swap-thrash: pages keep coming back, and everybody waits for them. swap-insufficient: there was
 * no room to put away what nobody used. */
#include <stdio.h>
#include <string.h>

#include "end_clues.h"
#include "judge_words.h"
#include "judges.h"
#include "shape.h"

static const struct {
        uint32_t window_ms;     /* that is looked at at a time */
        double stalled;         /* share of it in which nothing moved for want of memory */
        double in_bytes_per_s;  /* read back from swap */
        double out_bytes_per_s; /* and meanwhile written to it: else it only comes home */
        double faults_per_s;    /* instead of these, where the machine's paging was not seen */
        double used_bytes;      /* in swap, the least */
        uint32_t warn_ms;       /* so long in all before it is worth a word */
        uint32_t act_ms;        /* and so long for the stronger one */
        double act_share;       /* or so much of the run */
        double sure, less_sure;
} thrash = {
        .window_ms = 2000,      /* what the guard also looks back for, and counters tell 1 Hz */
        .stalled = 0.20,        /* a job that loses a fifth is felt; a desktop stutters at 0.1 */
        .in_bytes_per_s = 4e6,  /* 1000 pages a second: beyond any background ageing */
        .out_bytes_per_s = 1e6, /* a quarter of that */
        .faults_per_s = 500,    /* what a good SATA disk can answer */
        .used_bytes = 64 << 20, /* less is the cold start-up code of a desktop */
        .warn_ms = 6000,        /* three windows: one may be a large array that is put away */
        .act_ms = 60000,        /* a minute lost is worth a change */
        .act_share = 0.25,      /* so is a quarter of a short run */
        .sure = 0.9,            /* stalls and traffic both ways */
        .less_sure = 0.75,      /* faults may be of files that did not fit, too */
};

static const struct {
        double full;               /* swap in use by all of it */
        int64_t slope_bytes_per_s; /* the job's growth at the end */
        double confidence;
} lack = {
        .full = 0.98,
        .slope_bytes_per_s = 8 << 20, /* what grows faster fills any swap within minutes */
        .confidence = 0.6, /* that there was no room is certain; that room had been enough is not */
};

struct paging {
        const struct afz_column *stall[2]; /* of the job, of the machine */
        const struct afz_column *in, *out, *faults;
        const struct afz_column *away, *swap_free;
        int64_t swap_total;
};

static const struct afz_column *column_of(const struct afz_flight *f, enum afz_kind kind,
                                          enum afz_metric metric)
{
        return afz_track_column(afz_flight_one(f, kind), metric);
}

static const struct afz_column *either(const struct afz_column *a, const struct afz_column *b)
{
        return a ? a : b;
}

static struct paging paging_of(const struct afz_flight *f)
{
        struct paging p = {
                .stall = {either(column_of(f, AFZ_KIND_HOLD, AFZ_HOLD_JOB_STALL),
                                 afz_track_column(afz_flight_find(f, AFZ_KIND_CGROUP, 0),
                                                  AFZ_CGROUP_PRESSURE_FULL)),
                          either(column_of(f, AFZ_KIND_HOLD, AFZ_HOLD_STALL),
                                 column_of(f, AFZ_KIND_PSI, AFZ_PSI_MEMORY_FULL))},
                .in = column_of(f, AFZ_KIND_VM, AFZ_VM_SWAP_IN),
                .out = column_of(f, AFZ_KIND_VM, AFZ_VM_SWAP_OUT),
                .faults = column_of(f, AFZ_KIND_JOB, AFZ_JOB_MAJOR_FAULTS),
                .away = either(column_of(f, AFZ_KIND_HOLD, AFZ_HOLD_AWAY),
                               column_of(f, AFZ_KIND_JOB, AFZ_JOB_SWAP)),
                .swap_free = either(column_of(f, AFZ_KIND_HOLD, AFZ_HOLD_SWAP_FREE),
                                    column_of(f, AFZ_KIND_HOST, AFZ_HOST_SWAP_FREE)),
                .swap_total = (int64_t)f->head.swap_total_bytes,
        };
        if (p.swap_total <= 0 && !afz_column_last(column_of(f, AFZ_KIND_HOST, AFZ_HOST_SWAP_TOTAL),
                                                  UINT32_MAX, &p.swap_total))
                p.swap_total = 0;
        return p;
}

/* What is in swap around a time: the job's own, or the machine's. 0: nothing, or not known. */
static double swap_used(const struct paging *p, uint32_t to_ms)
{
        int64_t away = 0, left;
        (void)afz_column_last(p->away, to_ms, &away);
        double of_machine = p->swap_total > 0 && afz_column_last(p->swap_free, to_ms, &left)
                                    ? (double)p->swap_total - (double)left
                                    : 0;
        return of_machine > (double)away ? of_machine : (double)away;
}

struct moment {
        double stalled, in; /* share of time; bytes a second */
        bool by_faults;     /* the paging itself was not seen */
};

/* Whether in this window it paged instead of working. */
static bool pages(const struct paging *p, uint32_t from_ms, uint32_t to_ms, struct moment *ret)
{
        struct moment m = {0};
        double rate, out;
        for (int i = 0; i < 2; i++)
                if (afz_shape_rate(p->stall[i], from_ms, to_ms, &rate) && rate / 1e9 > m.stalled)
                        m.stalled = rate / 1e9;
        if (m.stalled < thrash.stalled || swap_used(p, to_ms) < thrash.used_bytes)
                return false;
        if (afz_shape_rate(p->in, from_ms, to_ms, &m.in)) {
                if (m.in < thrash.in_bytes_per_s ||
                    (afz_shape_rate(p->out, from_ms, to_ms, &out) && out < thrash.out_bytes_per_s))
                        return false;
        } else if (afz_shape_rate(p->faults, from_ms, to_ms, &rate) &&
                   rate >= thrash.faults_per_s) {
                m.by_faults = true;
        } else {
                return false;
        }
        *ret = m;
        return true;
}

struct thrashing {
        uint32_t ms, from_ms, to_ms;
        double stalled, in; /* sums, by window */
        double used;        /* the most */
        bool by_faults;
};

static struct thrashing thrashing_of(const struct afz_flight *f)
{
        struct paging p = paging_of(f);
        struct thrashing t = {0};
        struct moment m;
        if (!p.stall[0] && !p.stall[1])
                return t;
        for (uint64_t at = 0; at + thrash.window_ms <= f->end_ms; at += thrash.window_ms) {
                uint32_t from = (uint32_t)at, to = from + thrash.window_ms;
                if (!pages(&p, from, to, &m))
                        continue;
                if (t.ms == 0)
                        t.from_ms = from;
                t.to_ms = to;
                t.ms += thrash.window_ms;
                t.stalled += m.stalled;
                t.in += m.in;
                t.by_faults |= m.by_faults;
                if (swap_used(&p, to) > t.used)
                        t.used = swap_used(&p, to);
        }
        return t;
}

void afz_judge_swap_thrash(const struct afz_case *c, struct afz_outcome *ret)
{
        struct thrashing t = thrashing_of(c->flight);
        if (t.ms < thrash.warn_ms)
                return;
        bool act = t.ms >= thrash.act_ms || t.ms >= c->flight->end_ms * thrash.act_share ||
                   c->facts.end.how == AFZ_END_STOPPED;
        struct afz_verdict *v =
                afz_outcome_add(ret, "swap-thrash", act ? AFZ_LEVEL_ACT : AFZ_LEVEL_WARN,
                                t.by_faults ? thrash.less_sure : thrash.sure);
        if (!v)
                return;
        double windows = (double)t.ms / thrash.window_ms;
        v->from_ms = t.from_ms;
        v->to_ms = t.to_ms;
        snprintf(
                v->summary, sizeof v->summary,
                "for %s it paged instead of working: memory that is in use went to swap and had to "
                "be read back, again and again",
                LASTS(t.ms));
        snprintf(v->fix, sizeof v->fix,
                 "use less memory at a time: a smaller batch, fewer loader workers, streamed data; "
                 "--swap 0 stops it early instead of letting it crawl");
        afz_verdict_note(v,
                         "in that time nothing moved for %.0f %% of the time, waiting for memory",
                         t.stalled / windows * 100 > 100 ? 100 : t.stalled / windows * 100);
        if (t.in > 0)
                afz_verdict_note(v, "%s/s came back from swap", SIZE(t.in / windows));
        afz_verdict_note(v, "up to %s lay in swap", SIZE(t.used));
}

/* ---- no room ---- */

/* The machine itself ran short, by our brake's word or the kernel's. A job that met its own budget
 * had its swap allowance, and that is another matter. */
static bool machine_ran_out(const struct afz_case *c)
{
        const struct afz_facts *f = &c->facts;
        if (f->end.how == AFZ_END_STOPPED)
                return f->stop_cause == AFZ_CAUSE_PRESSURE && !f->storm;
        return f->end.how != AFZ_END_EXIT || f->end.code != 0
                       ? afz_kill_clue_of(c).of == AFZ_LIMIT_MACHINE
                       : false;
}

void afz_judge_swap_insufficient(const struct afz_case *c, struct afz_outcome *ret)
{
        struct paging p = paging_of(c->flight);
        int64_t left = 0;
        bool known = c->flight->tracks > 0 && p.swap_free;
        if (!known || !machine_ran_out(c) || !afz_column_last(p.swap_free, UINT32_MAX, &left) ||
            c->facts.slope_bytes_per_s > lack.slope_bytes_per_s)
                return;
        /* What leaks or thrashes would have filled any swap. */
        if (afz_outcome_find(ret, "leak") || afz_outcome_find(ret, "swap-thrash"))
                return;
        bool none = p.swap_total <= 0;
        if (!none && (double)left > (double)p.swap_total * (1 - lack.full))
                return;
        struct afz_verdict *v =
                afz_outcome_add(ret, "swap-insufficient", AFZ_LEVEL_WARN, lack.confidence);
        if (!v)
                return;
        if (none)
                snprintf(v->summary, sizeof v->summary,
                         "the machine has no swap: when memory ran out, what nobody was using had "
                         "nowhere to go");
        else
                snprintf(v->summary, sizeof v->summary,
                         "swap (%s) was full: when memory ran out, what nobody was using had "
                         "nowhere to go",
                         SIZE(p.swap_total));
        snprintf(v->fix, sizeof v->fix,
                 "more swap carries memory that is seldom used; `antifreeze doctor` gives the "
                 "command. It does not make room for a larger batch");
        afz_verdict_note(v, "free swap at the end: %s of %s", SIZE(left), SIZE(p.swap_total));
}
