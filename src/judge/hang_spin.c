#include "hang_spin.h"

#include <stdio.h>
#include <string.h>

#include "hang_stacks.h"
#include "judge_words.h"
#include "stretch.h"

static const struct {
        uint32_t ms;        /* busy without a step, before it is one */
        double cores;       /* used */
        double bytes_per_s; /* read and written, below which it moves nothing */
        double gpu_busy;    /* share of time, from which on the GPU works for it */
        double flat;        /* share by which its memory may move meanwhile */
        int64_t flat_bytes; /* or this much */
} at = {
        .ms = 120000,           /* an evaluation between two steps may take a minute */
        .cores = 0.90,          /* one thread at full speed */
        .bytes_per_s = 4096,    /* as judge_hang.c has it */
        .gpu_busy = 0.30,       /* likewise */
        .flat = 0.01,           /* 1 %: work allocates */
        .flat_bytes = 16 << 20, /* 16 MiB */
};

static bool is_flat(const struct afz_column *need, uint32_t from, uint32_t to)
{
        int64_t least, most;
        if (!afz_column_least(need, from, to, &least) || !afz_column_most(need, from, to, &most))
                return false;
        return (double)most - (double)least <= (double)at.flat_bytes ||
               (double)most - (double)least <= at.flat * (double)most;
}

/* ---- where ---- */

enum { FRAMES = 32 }; /* as many as the witness tells */

/* The user's own lines of one look, innermost first. */
struct path {
        size_t n;
        struct afz_where at[FRAMES];
};

static bool is_look(const struct afz_mark *mark, uint32_t from, uint32_t to)
{
        return afz_mark_is_look(mark) && mark->t_ms >= from && mark->t_ms <= to;
}

static bool runs(const struct afz_mark *mark)
{
        struct afz_where where;
        return strncmp(mark->text, "it runs", 7) == 0 && afz_stand_where(mark->text, &where);
}

/* The thread that was seen at work most often; 0: none was, in lines that are known. */
static int64_t who_turns(const struct afz_flight *flight, uint32_t from, uint32_t to)
{
        const struct afz_mark *mark = flight->mark;
        int64_t who = 0;
        unsigned most = 0;
        for (size_t i = 0; i < flight->marks; i++) {
                unsigned times = 0;
                if (!is_look(&mark[i], from, to) || !runs(&mark[i]))
                        continue;
                for (size_t k = i; k < flight->marks; k++)
                        times += is_look(&mark[k], from, to) && mark[k].code == mark[i].code &&
                                 runs(&mark[k]);
                if (times > most) {
                        most = times;
                        who = mark[i].code;
                }
        }
        return who;
}

static void read_path(const char *text, struct path *ret)
{
        ret->n = 0;
        while (ret->n < FRAMES && afz_stand_next(&text, &ret->at[ret->n]))
                ret->n++;
}

/* Leaves what is the same in another look: from outside inwards to the first function that was at
 * two lines, for that is where the loop is. */
static void keep_common(struct path *path, const struct path *other)
{
        size_t kept = 0;
        bool same = true;
        while (same && kept < path->n && kept < other->n) {
                const struct afz_where *a = &path->at[path->n - 1 - kept],
                                       *b = &other->at[other->n - 1 - kept];
                if (strcmp(a->file, b->file) != 0 || strcmp(a->function, b->function) != 0)
                        break;
                same = a->line == b->line;
                kept++;
        }
        memmove(path->at, path->at + path->n - kept, kept * sizeof *path->at);
        path->n = kept;
}

/* What all looks at it have in common. Returns how many there were; 0: the place is not known. */
static unsigned find_loop(const struct afz_flight *flight, uint32_t from, uint32_t to,
                          struct afz_where *ret)
{
        struct path path = {0}, other;
        int64_t who = who_turns(flight, from, to);
        unsigned looks = 0;
        for (size_t i = flight->marks; i > 0 && who != 0; i--) {
                const struct afz_mark *mark = &flight->mark[i - 1];
                if (!is_look(mark, from, to) || mark->code != who)
                        continue;
                read_path(mark->text, looks == 0 ? &path : &other);
                if (looks++ > 0)
                        keep_common(&path, &other);
        }
        if (path.n == 0)
                return 0;
        *ret = path.at[0];
        return looks;
}

/* ---- all of it ---- */

static void tell_where(const struct afz_case *c, const struct afz_steps *st, struct afz_verdict *v)
{
        unsigned looks = find_loop(c->flight, v->from_ms, v->to_ms, &v->where);
        bool known = looks > 0;
        if (looks > 1)
                afz_verdict_note(v, "%u looks found it in %.60s, each time", looks,
                                 v->where.function);
        snprintf(v->fix, sizeof v->fix,
                 "look at the loop %s%lld: a condition that never comes true (a tolerance that "
                 "cannot be met, a flag that nobody sets, a NaN that is compared)%s",
                 known ? "there, after step " : "after step ", (long long)st->count,
                 known ? ""
                       : "; while it turns, `py-spy dump --pid` shows the line of a Python "
                         "program");
}

void afz_judge_spin(const struct afz_case *c, const struct afz_steps *st, struct afz_outcome *ret)
{
        const struct afz_track *job = afz_flight_job(c->flight);
        if (!job || !afz_steps_count(st) || job->last_ms < st->last_ms + at.ms ||
            !afz_steps_stopped(st, job->last_ms))
                return;
        uint32_t from = st->last_ms + 1, to = job->last_ms;
        double cores = afz_rate_or(afz_track_column(job, AFZ_JOB_CPU), from, to, 1e-9);
        double in = afz_rate_or(afz_track_column(job, AFZ_JOB_READ_CALLS), from, to, 1);
        double out = afz_rate_or(afz_track_column(job, AFZ_JOB_WRITE_CALLS), from, to, 1);
        if (cores < at.cores || in < 0 || out < 0 || in + out > at.bytes_per_s ||
            afz_job_gpu_util(c->flight, from, to) >= at.gpu_busy ||
            !is_flat(afz_flight_need(c->flight), from, to) || !afz_job_lived(c->flight, from, to))
                return;
        struct afz_verdict *v = afz_outcome_add(ret, "hang:spin", AFZ_LEVEL_WARN, 0.70);
        if (!v)
                return;
        v->from_ms = from;
        v->to_ms = to;
        tell_where(c, st, v);
        char place[160];
        snprintf(v->summary, sizeof v->summary,
                 "it turns in circles: no step for %s, though %.1f cores were busy all the time%s",
                 LASTS(to - st->last_ms), cores, afz_where_words(&v->where, place, sizeof place));
        afz_verdict_note(v, "%lld steps came before, the longest took %s", (long long)st->count,
                         LASTS(st->longest_ms));
        afz_verdict_note(v, "nothing read, nothing written, and its memory stayed the same");
}
