/* fd-leak, thread-leak: open files and threads that only ever become more. */
#include <stdio.h>

#include "judge_words.h"
#include "judges.h"
#include "shape.h"

struct count_rule {
        const char *id;
        enum afz_metric of_process;
        bool has_limit;
        enum afz_metric limit; /* of the process, where it has one */
        int64_t grown;         /* over what was looked at */
        double factor;         /* and the last by the first */
        double at_limit;       /* of its limit: it will not get many more */
        int64_t limit_least;   /* a limit below that says nothing: it was set so on purpose */
        uint32_t least_ms;     /* looked at for so long, the start left out */
        double sure, at_limit_only;
};

static const struct count_rule files = {
        .id = "fd-leak",
        .of_process = AFZ_PROC_FDS,
        .has_limit = true,
        .limit = AFZ_PROC_FDS_LIMIT,
        .grown = 100,       /* loaders, logs and sockets of a large job come to some dozens */
        .factor = 1.5,      /* a server with 2000 connections has 100 more at times */
        .at_limit = 0.9,    /* of 1024, 100 are left: an epoch's worth */
        .limit_least = 256, /* POSIX wants 20, every distribution gives 1024 or more */
        .least_ms = 15000,  /* opening one file a second is a leak only if it goes on */
        .sure = 0.9,
        .at_limit_only = 0.8, /* it stands near its limit, but was not seen rising */
};

static const struct count_rule threads = {
        .id = "thread-leak",
        .of_process = AFZ_PROC_THREADS,
        .grown = 50,       /* pools of a large machine start some hundred, but at the start */
        .factor = 1.5,     /* of those pools */
        .at_limit = 0.9,   /* of the tasks that the cgroup may have */
        .limit_least = 64, /* less is a sandbox */
        .least_ms = 12000, /* a pool is there after a second or two */
        .sure = 0.9,
        .at_limit_only = 0.7, /* the tasks in a cgroup may be processes, too */
};

struct finding {
        const struct afz_track *who; /* NULL: nothing was found */
        struct afz_steady shape;     /* where it rises */
        bool rises, full;
        int64_t now, limit; /* limit 0: not known */
};

static bool rises(const struct count_rule *rule, const struct afz_column *column,
                  struct afz_steady *ret)
{
        return afz_shape_steady(column, AFZ_WAY_UP, rule->least_ms, ret) &&
               (double)ret->last - (double)ret->first >= (double)rule->grown &&
               (double)ret->last >= (double)ret->first * rule->factor;
}

/* What it had come to when it ended: counts are read once a second, so the last one is some tenths
 * of a second old, and what it rose by in the two before may have come on top. */
static int64_t reach_of(const struct afz_column *column, int64_t most)
{
        int64_t last, before;
        uint32_t end_ms = column->point[column->count - 1].t_ms;
        if (end_ms < 2000 || !afz_column_last(column, UINT32_MAX, &last) || last < most ||
            !afz_column_last(column, end_ms - 1999, &before) || before >= last)
                return most;
        return last + (last - before) / 2;
}

/* The most it had, and how many it may have. */
static struct finding look_at(const struct count_rule *rule, const struct afz_track *track)
{
        const struct afz_column *column = afz_track_column(track, rule->of_process);
        const struct afz_column *limit =
                rule->has_limit ? afz_track_column(track, rule->limit) : NULL;
        struct finding f = {0};
        if (!afz_column_most(column, 0, UINT32_MAX, &f.now) || f.now <= 0)
                return f;
        if (!afz_column_last(limit, UINT32_MAX, &f.limit) || f.limit < rule->limit_least)
                f.limit = 0;
        f.rises = rises(rule, column, &f.shape);
        f.full = f.limit > 0 && (double)reach_of(column, f.now) >= (double)f.limit * rule->at_limit;
        if (f.rises || f.full)
                f.who = track;
        return f;
}

/* Rising says more than standing high; of two that rise, the larger. */
static bool is_worse(const struct finding *a, const struct finding *b)
{
        if (!a->who || !b->who || a->rises != b->rises)
                return a->who && (!b->who || a->rises);
        return a->now > b->now;
}

static struct finding worst_process(const struct count_rule *rule, const struct afz_flight *f)
{
        const struct afz_track *track;
        struct finding worst = {0};
        for (size_t cursor = 0; (track = afz_flight_next(f, AFZ_KIND_PROC, &cursor));) {
                struct finding one = look_at(rule, track);
                if (is_worse(&one, &worst))
                        worst = one;
        }
        return worst;
}

/* A run that went well with a high, but level count had no problem. */
static bool went_well(const struct afz_case *c)
{
        const struct afz_end *end = &c->facts.end;
        return end->how == AFZ_END_RUNNING || (end->how == AFZ_END_EXIT && end->code == 0);
}

static struct afz_verdict *say(const struct afz_case *c, const struct count_rule *rule,
                               const struct finding *f, const char *what, struct afz_outcome *ret)
{
        const char *name = f->who->name[0] ? f->who->name : "a process";
        unsigned long long pid = (unsigned long long)f->who->subject.id;
        struct afz_verdict *v =
                afz_outcome_add(ret, rule->id, f->full ? AFZ_LEVEL_ACT : AFZ_LEVEL_WARN,
                                f->rises ? rule->sure : rule->at_limit_only);
        if (!v)
                return NULL;
        if (f->rises) {
                bool runs = c->facts.end.how == AFZ_END_RUNNING;
                int64_t most = f->now > f->shape.last ? f->now : f->shape.last;
                v->from_ms = f->shape.from_ms;
                v->to_ms = f->shape.to_ms;
                snprintf(v->summary, sizeof v->summary,
                         "%.40s (pid %llu) %s ever more %s: %lld, and %.*f more each minute", name,
                         pid, runs ? "has" : "had", what, (long long)most,
                         f->shape.per_s * 60 < 10 ? 1 : 0, f->shape.per_s * 60);
                afz_verdict_note(v, "from %lld to %lld %s in %s, without ever going back",
                                 (long long)f->shape.first, (long long)f->shape.last, what,
                                 LASTS(f->shape.to_ms - f->shape.from_ms));
        } else {
                snprintf(v->summary, sizeof v->summary,
                         "%.40s (pid %llu) had %lld %s, nearly all of the %lld it may have", name,
                         pid, (long long)f->now, what, (long long)f->limit);
        }
        if (f->full)
                afz_verdict_note(v, "it had %lld of the %lld that it may have", (long long)f->now,
                                 (long long)f->limit);
        else if (f->limit > 0 && f->rises && c->facts.end.how == AFZ_END_RUNNING)
                afz_verdict_note(v, "it may have %lld, and has them in about %s",
                                 (long long)f->limit,
                                 LASTS((double)(f->limit - f->now) / f->shape.per_s * 1000));
        return v;
}

void afz_judge_fd_leak(const struct afz_case *c, struct afz_outcome *ret)
{
        struct finding f = worst_process(&files, c->flight);
        if (!f.who || (!f.rises && went_well(c)))
                return;
        struct afz_verdict *v = say(c, &files, &f, "files open", ret);
        if (!v)
                return;
        int n = snprintf(v->fix, sizeof v->fix,
                         "close what is opened (`with open(...)`), and with worker processes: "
                         "torch.multiprocessing.set_sharing_strategy('file_system'); ");
        char *rest = v->fix + n;
        size_t cap = sizeof v->fix - (size_t)n;
        if (c->facts.end.how == AFZ_END_RUNNING)
                snprintf(rest, cap, "`ls -l /proc/%llu/fd` shows which; ulimit -n only puts it off",
                         (unsigned long long)f.who->subject.id);
        else
                snprintf(rest, cap,
                         "while it runs again, `ls -l /proc/PID/fd` shows which; "
                         "ulimit -n only puts it off");
}

/* Tasks of the whole job against the limit of its cgroup, where no process alone stands out. */
static struct finding tasks_of(const struct afz_flight *flight)
{
        const struct afz_track *track;
        for (size_t cursor = 0; (track = afz_flight_next(flight, AFZ_KIND_CGROUP, &cursor));) {
                struct finding f = {.who = track};
                if (afz_column_most(afz_track_column(track, AFZ_CGROUP_PIDS), 0, UINT32_MAX,
                                    &f.now) &&
                    afz_column_last(afz_track_column(track, AFZ_CGROUP_PIDS_MAX), UINT32_MAX,
                                    &f.limit) &&
                    f.limit >= threads.limit_least &&
                    (double)f.now >= (double)f.limit * threads.at_limit) {
                        f.full = true;
                        return f;
                }
        }
        return (struct finding){0};
}

/* Threads without end in many processes; processes without end are told as that (fork-storm). */
static void say_tasks(const struct afz_case *c, const struct finding *tasks,
                      struct afz_outcome *ret)
{
        const struct afz_column *processes =
                afz_track_column(afz_flight_one(c->flight, AFZ_KIND_JOB), AFZ_JOB_PROCESSES);
        int64_t most;
        if (!tasks->who || went_well(c) || c->facts.storm ||
            !afz_column_most(processes, 0, UINT32_MAX, &most) || most > tasks->now / 2)
                return;
        struct afz_verdict *v =
                afz_outcome_add(ret, threads.id, AFZ_LEVEL_ACT, threads.at_limit_only);
        if (!v)
                return;
        snprintf(v->summary, sizeof v->summary,
                 "there were %lld threads, nearly all of the %lld that may be there",
                 (long long)tasks->now, (long long)tasks->limit);
        snprintf(v->fix, sizeof v->fix,
                 "fewer workers, and fewer threads in each (OMP_NUM_THREADS, "
                 "torch.set_num_threads)");
        afz_verdict_note(v, "the limit is of the cgroup %.150s", tasks->who->name);
}

void afz_judge_thread_leak(const struct afz_case *c, struct afz_outcome *ret)
{
        struct finding f = worst_process(&threads, c->flight);
        struct finding tasks = tasks_of(c->flight);
        if (!f.who) {
                say_tasks(c, &tasks, ret);
                return;
        }
        if (tasks.who) {
                f.full = true;
                f.now = tasks.now;
                f.limit = tasks.limit;
        }
        struct afz_verdict *v = say(c, &threads, &f, "threads", ret);
        bool runs = c->facts.end.how == AFZ_END_RUNNING;
        char pid[24];
        snprintf(pid, sizeof pid, "%llu", (unsigned long long)f.who->subject.id);
        if (v)
                snprintf(v->fix, sizeof v->fix,
                         "end what is started (join threads, close pools and clients) outside of "
                         "the step; %s`py-spy dump --pid %s` or gdb shows where they stand",
                         runs ? "" : "while it runs again, ", runs ? pid : "PID");
}
