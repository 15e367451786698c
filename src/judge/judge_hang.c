/* hang: the job is there and does nothing, or nothing that leads anywhere.
 *
 *   hang:deadlock     all of it sleeps, and each process that matters waits for another one
 *   hang:worker-dead  the same, and it began when one of its workers was gone
 *   hang:spin         cores are busy, but the steps that had come stopped coming
 *
 * A hang is easily said wrongly: a program may wait for a person, a clock, the network, a debugger.
 * So nothing is said unless the wait itself is known to be one for a relative (a lock, a pipe, a
 * child), or steps tell that it should have gone on. */
#include <stdio.h>
#include <string.h>

#include "count_of.h"
#include "judge_words.h"
#include "judges.h"
#include "role.h"
#include "stretch.h"
#include "wait_kind.h"

static const struct {
        uint32_t asleep_ms;      /* without work, before it is a hang */
        uint32_t orphaned_ms;    /* the same after the end of a worker */
        uint32_t tail_ms;        /* before the end, in which it may stir again */
        double cores;            /* below which it does no work */
        double bytes_per_s;      /* read and written, below which it moves nothing */
        double gpu_busy;         /* share of time, from which on the GPU works for it */
        double held;             /* share of time, from which on it was held in a state */
        int64_t worked_ns;       /* core time before, from which on it had been working */
        double mattered;         /* share of the job's core time, from which on a process counts */
        uint32_t near_ms;        /* a worker's end and the beginning of the quiet */
        uint32_t spin_ms;        /* busy without a step, before it is one */
        double spin_steps;       /* the same, in longest steps so far */
        unsigned steps;          /* that have come, before their absence means something */
        double spin_cores;       /* used */
        double spin_flat;        /* share by which its memory may move meanwhile */
        int64_t spin_flat_bytes; /* or this much */
} at = {
        .asleep_ms = 60000,   /* checkpoints, downloads and compilers pause for some ten seconds */
        .orphaned_ms = 30000, /* a pool starts another worker within a second */
        .tail_ms = 15000,     /* Ctrl-C, its clean-up, and the grace before a kill */
        .cores = 0.02,        /* watchdog threads that wake each second use less than 1 % */
        .bytes_per_s = 4096,  /* a page a second: heartbeats, log lines */
        .gpu_busy = 0.30,     /* a desktop alone keeps it at ten per cent */
        .held = 0.20,         /* who takes a stack stops it for a moment */
        .worked_ns = 250000000,      /* 0.25 s: more than starting an interpreter takes */
        .mattered = 0.10,            /* trackers, launchers and shells have next to none */
        .near_ms = 15000,            /* the rest works off what is queued first */
        .spin_ms = 120000,           /* an evaluation between two steps may take a minute */
        .spin_steps = 20,            /* and twenty times a step */
        .steps = 5,                  /* fewer are a warm-up */
        .spin_cores = 0.90,          /* one thread at full speed */
        .spin_flat = 0.01,           /* 1 %: work allocates */
        .spin_flat_bytes = 16 << 20, /* 16 MiB */
};

/* ---- the quiet ---- */

struct scene {
        const struct afz_flight *flight;
        const struct afz_track *job;
        struct afz_quiet quiet;
        int64_t worked_ns;            /* before it */
        const struct afz_track *main; /* the process that had worked most */
        enum afz_wait main_wait;
        const char *main_words;
        unsigned relatives; /* processes but main that wait for each other */
        bool waits_outside; /* somebody waits for a clock, a person, the network */
        unsigned stacks;    /* threads of which the wait is known */
        bool over;          /* the run has ended since */
};

static int64_t cpu_of(const struct afz_track *proc, uint32_t to_ms)
{
        int64_t user = 0, system = 0;
        (void)afz_column_last(afz_track_column(proc, AFZ_PROC_USER), to_ms, &user);
        (void)afz_column_last(afz_track_column(proc, AFZ_PROC_SYSTEM), to_ms, &system);
        return user > INT64_MAX / 2 || system > INT64_MAX / 2 || user < 0 || system < 0
                       ? 0
                       : user + system;
}

static uint32_t later(uint32_t a, uint32_t b)
{
        return a > b ? a : b;
}

static uint32_t sooner(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

/* Neither core time nor bytes. A counter that is missing makes us silent. */
static bool find_quiet(struct scene *s)
{
        static const enum afz_metric moves[] = {AFZ_JOB_READ_CALLS, AFZ_JOB_WRITE_CALLS,
                                                AFZ_JOB_READ, AFZ_JOB_WRITTEN};
        s->quiet =
                afz_column_quiet(afz_track_column(s->job, AFZ_JOB_CPU), at.cores * 1e9, at.tail_ms);
        for (size_t i = 0; i < AFZ_COUNT_OF(moves); i++) {
                struct afz_quiet q = afz_column_quiet(afz_track_column(s->job, moves[i]),
                                                      at.bytes_per_s, at.tail_ms);
                if (q.cut == AFZ_QUIET_UNKNOWN)
                        return false;
                if (q.from_ms > s->quiet.from_ms) /* it moved when it used no core: that cut it */
                        s->quiet.cut = q.cut;
                s->quiet.from_ms = later(s->quiet.from_ms, q.from_ms);
                s->quiet.to_ms = sooner(s->quiet.to_ms, q.to_ms);
        }
        return s->quiet.cut == AFZ_QUIET_WORK && s->quiet.to_ms > s->quiet.from_ms;
}

static uint32_t quiet_ms(const struct scene *s)
{
        return s->quiet.to_ms - s->quiet.from_ms;
}

/* Nobody but the job itself kept it still. */
static bool was_free(const struct scene *s)
{
        uint32_t from = s->quiet.from_ms, to = s->quiet.to_ms;
        double gpu = afz_job_gpu_util(s->flight, from, to);
        double stopped = afz_mean_or(afz_track_column(s->job, AFZ_JOB_STOPPED), from, to, 1);
        if (stopped < 0 || stopped >= at.held)
                return false;
        return gpu < at.gpu_busy && afz_job_lived(s->flight, from, to);
}

/* Whether a process was held in a state during the quiet. Letters of a thinned recording are the
 * least and the most: what lies between them may have been. */
static bool was_in_state(const struct scene *s, const struct afz_track *proc, int64_t letter)
{
        const struct afz_column *state = afz_track_column(proc, AFZ_PROC_STATE);
        unsigned looks = 0, seen = 0;
        for (size_t i = state ? afz_column_at(state, s->quiet.from_ms) : 0;
             state && i < state->count && state->point[i].t_ms < s->quiet.to_ms; i++) {
                looks++;
                seen += state->point[i].least == letter || state->point[i].most == letter;
        }
        return seen > 0 && seen >= at.held * looks;
}

static bool is_dead(const struct afz_track *proc, uint32_t at_ms)
{
        int64_t state;
        return proc->last_ms + 2000 < at_ms ||
               (afz_column_last(afz_track_column(proc, AFZ_PROC_STATE), at_ms, &state) &&
                (state == 'Z' || state == 'X'));
}

static int64_t role_of(const struct afz_track *proc)
{
        int64_t role = AFZ_ROLE_OTHER;
        (void)afz_column_last(afz_track_column(proc, AFZ_PROC_ROLE), UINT32_MAX, &role);
        return role;
}

/* Shells and launchers wait for whatever they started; trackers for the end. */
static bool waits_for_kin(int64_t role, enum afz_wait wait)
{
        return role != AFZ_ROLE_SHELL && role != AFZ_ROLE_LAUNCHER && role != AFZ_ROLE_TRACKER &&
               (wait == AFZ_WAIT_LOCK || wait == AFZ_WAIT_PIPE || wait == AFZ_WAIT_CHILD);
}

/* A wrapper: it did next to nothing itself and waits, in whatever way, for what it started. */
static bool is_wrapper(const struct scene *s, const struct afz_track *proc, int64_t cpu_ns)
{
        const struct afz_track *other;
        int64_t parent;
        /* Not at the end: who is left then has another parent. */
        uint32_t middle = s->quiet.from_ms + quiet_ms(s) / 2;
        if ((double)cpu_ns >= at.mattered * (double)s->worked_ns)
                return false;
        for (size_t cursor = 0; (other = afz_flight_next(s->flight, AFZ_KIND_PROC, &cursor));)
                if (afz_column_last(afz_track_column(other, AFZ_PROC_PPID), middle, &parent) &&
                    (uint64_t)parent == proc->subject.id && !is_dead(other, s->quiet.to_ms))
                        return true;
        return false;
}

/* Takes one living process in; false: with it in the job, nothing can be said. */
static bool take_process(struct scene *s, const struct afz_track *proc, int64_t *most_ns)
{
        int64_t role = role_of(proc), cpu = cpu_of(proc, s->quiet.to_ms);
        const char *words;
        enum afz_wait wait = afz_wait_of(proc->note, &words);
        if (role == AFZ_ROLE_SERVER || role == AFZ_ROLE_KERNEL)
                return false; /* waits for requests, for its person */
        if (was_in_state(s, proc, 't') || was_in_state(s, proc, 'T') || was_in_state(s, proc, 'D'))
                return false;
        s->relatives += waits_for_kin(role, wait);
        s->waits_outside |=
                wait == AFZ_WAIT_OUT && role != AFZ_ROLE_TRACKER && !is_wrapper(s, proc, cpu);
        if (cpu > *most_ns) {
                *most_ns = cpu;
                s->main = proc;
                s->main_wait = wait;
                s->main_words = words;
        }
        return true;
}

static bool look_at_processes(struct scene *s)
{
        const struct afz_track *proc;
        int64_t most_ns = -1;
        for (size_t cursor = 0; (proc = afz_flight_next(s->flight, AFZ_KIND_PROC, &cursor));) {
                if (proc->first_ms > s->quiet.to_ms || is_dead(proc, s->quiet.to_ms))
                        continue;
                if (!take_process(s, proc, &most_ns))
                        return false;
        }
        if (s->main && waits_for_kin(role_of(s->main), s->main_wait))
                s->relatives--;
        return s->main != NULL;
}

/* The innermost line of a stack, which is the kernel's where it could be read. */
static void first_line(const char *text, char *buf, size_t cap)
{
        snprintf(buf, cap, "%.*s", (int)strcspn(text, "\n"), text);
}

/* Stacks say more than the main threads' waits: of every thread. */
static void look_at_stacks(struct scene *s)
{
        for (size_t i = 0; i < s->flight->marks; i++) {
                const struct afz_mark *m = &s->flight->mark[i];
                const char *words;
                char line[96];
                if (m->kind != AFZ_MARK_STACK || m->t_ms < s->quiet.from_ms ||
                    m->t_ms > s->quiet.to_ms)
                        continue;
                first_line(m->text, line, sizeof line);
                enum afz_wait wait = afz_wait_of(line, &words);
                s->stacks += wait != AFZ_WAIT_UNKNOWN;
                /* A thread that listens makes the whole a server that idles. */
                s->waits_outside |= wait == AFZ_WAIT_OUT || strstr(line, "ep_poll");
        }
}

/* A run that ended by itself, and well, was not hung; nor was one that gave up with an error of its
 * own. Who ends a hung job does it with a signal, which shells tell as 128 and more. */
static bool end_fits(const struct afz_case *c)
{
        const struct afz_end *end = &c->facts.end;
        return end->how != AFZ_END_EXIT || end->code == 124 || end->code > 128;
}

static bool set_scene(const struct afz_case *c, struct scene *s)
{
        *s = (struct scene){.flight = c->flight,
                            .job = afz_flight_job(c->flight),
                            .over = c->facts.end.how != AFZ_END_RUNNING};
        if (!s->job || !end_fits(c) || !find_quiet(s) || !was_free(s))
                return false;
        if (!afz_column_last(afz_track_column(s->job, AFZ_JOB_CPU), s->quiet.from_ms,
                             &s->worked_ns) ||
            s->worked_ns < at.worked_ns || !look_at_processes(s))
                return false;
        look_at_stacks(s);
        return true;
}

/* ---- steps ---- */

struct steps {
        unsigned count;
        uint32_t last_ms, longest_ms; /* between two */
        int64_t number;
};

static struct steps steps_of(const struct afz_flight *flight)
{
        struct steps st = {0};
        for (size_t i = 0; i < flight->marks; i++) {
                const struct afz_mark *m = &flight->mark[i];
                if (m->kind == AFZ_MARK_ATTEMPT)
                        st = (struct steps){0};
                if (m->kind != AFZ_MARK_STEP)
                        continue;
                if (st.count++ > 0)
                        st.longest_ms = later(st.longest_ms, m->t_ms - st.last_ms);
                st.last_ms = m->t_ms;
                st.number = m->code;
        }
        return st;
}

static bool steps_stopped(const struct steps *st, uint32_t by_ms)
{
        return st->count >= at.steps && st->last_ms <= by_ms &&
               (double)(by_ms - st->last_ms) >= at.spin_steps * st->longest_ms;
}

/* ---- words ---- */

static void note_stretch(struct afz_verdict *v, const struct scene *s)
{
        afz_verdict_note(
                v,
                "no processor time, nothing read, nothing written for %s; before, it had used %s",
                LASTS(quiet_ms(s)), LASTS((double)s->worked_ns / 1e6));
        v->from_ms = s->quiet.from_ms;
        v->to_ms = s->quiet.to_ms;
}

/* Who waits for what: those that had worked first. */
static void note_waits(struct afz_verdict *v, const struct scene *s)
{
        const struct afz_track *proc;
        int told = 0;
        for (size_t cursor = 0; (proc = afz_flight_next(s->flight, AFZ_KIND_PROC, &cursor));) {
                const char *words, *role = afz_role_name((enum afz_role)role_of(proc));
                if (is_dead(proc, s->quiet.to_ms) || proc->first_ms > s->quiet.to_ms ||
                    afz_wait_of(proc->note, &words) == AFZ_WAIT_UNKNOWN || told == 2)
                        continue;
                bool matters =
                        (double)cpu_of(proc, UINT32_MAX) >= at.mattered * (double)s->worked_ns;
                if (!matters && proc != s->main)
                        continue;
                told++;
                afz_verdict_note(v, "%.40s%s%s%s (process %llu) waits for %s (%.40s)", proc->name,
                                 role[0] ? " (" : "", role, role[0] ? ")" : "",
                                 (unsigned long long)proc->subject.id, words, proc->note);
        }
}

/* One line of evidence from many: innermost first, as the stack has them. */
static void one_line(const char *text, char *buf, size_t cap)
{
        size_t n = 0;
        for (; *text && n + 4 < cap; text++) {
                if (*text != '\n') {
                        buf[n++] = *text;
                        continue;
                }
                memcpy(buf + n, " < ", 3);
                n += 3;
        }
        buf[n] = '\0';
}

static void note_stacks(struct afz_verdict *v, const struct scene *s)
{
        int told = 0;
        for (size_t i = 0; i < s->flight->marks && told < 2; i++) {
                const struct afz_mark *m = &s->flight->mark[i];
                char line[160];
                if (m->kind != AFZ_MARK_STACK || m->t_ms < s->quiet.from_ms || !m->text[0])
                        continue;
                told++;
                one_line(m->text, line, sizeof line);
                afz_verdict_note(v, "thread %u stands in %s", (unsigned)(m->code & UINT32_MAX),
                                 line);
        }
}

static void note_step(struct afz_verdict *v, const struct steps *st)
{
        if (st->count >= at.steps)
                afz_verdict_note(v, "the last step, %lld, ended %s after the start",
                                 (long long)st->number, LASTS(st->last_ms));
}

/* ---- hang:worker-dead ---- */

/* How a worker's end shows. */
static const char *end_of_worker(const struct afz_flight *flight, const struct afz_track *proc)
{
        for (size_t i = 0; i < flight->marks; i++) {
                const struct afz_mark *m = &flight->mark[i];
                if (m->kind != AFZ_MARK_EVENT ||
                    (uint64_t)(m->code & UINT32_MAX) != proc->subject.id)
                        continue;
                if (m->code >> 32 == AFZ_EVENT_OOM_KILL)
                        return "was killed by the kernel for memory";
                if (m->code >> 32 == AFZ_EVENT_SEGFAULT)
                        return "crashed";
        }
        int64_t state;
        bool zombie = afz_column_last(afz_track_column(proc, AFZ_PROC_STATE), UINT32_MAX, &state) &&
                      (state == 'Z' || state == 'X');
        return zombie ? "ended, and nobody asked how" : "vanished";
}

/* When it stopped living: for a zombie, when it became one. */
static uint32_t died_ms(const struct afz_track *proc)
{
        const struct afz_column *state = afz_track_column(proc, AFZ_PROC_STATE);
        for (size_t i = 0; state && i < state->count; i++)
                if (state->point[i].most == 'Z' || state->point[i].most == 'X')
                        return state->point[i].t_ms;
        return proc->last_ms;
}

/* A worker that was gone when the quiet began, while others of its kind lived on or its end is
 * known to have been violent or unnoticed. When all go together, the work was done. */
static const struct afz_track *dead_worker(const struct scene *s, unsigned *ret_left)
{
        const struct afz_track *proc, *dead = NULL;
        unsigned left = 0, gone = 0;
        bool odd = false;
        for (size_t cursor = 0; (proc = afz_flight_next(s->flight, AFZ_KIND_PROC, &cursor));) {
                if (role_of(proc) != AFZ_ROLE_WORKER)
                        continue;
                if (!is_dead(proc, s->quiet.to_ms)) {
                        left++;
                        continue;
                }
                uint32_t died = died_ms(proc);
                if (died + at.near_ms < s->quiet.from_ms || died > s->quiet.from_ms + at.near_ms)
                        continue;
                bool violent = strcmp(end_of_worker(s->flight, proc), "vanished") != 0;
                gone++;
                if (!dead || (violent && !odd))
                        dead = proc;
                odd |= violent;
        }
        *ret_left = left;
        return odd || (left > 0 && gone <= left) ? dead : NULL;
}

static bool judge_worker(const struct scene *s, const struct steps *st, struct afz_outcome *ret)
{
        unsigned left;
        const struct afz_track *dead = dead_worker(s, &left);
        if (quiet_ms(s) < at.orphaned_ms || !dead || s->main_wait == AFZ_WAIT_OUT)
                return false;
        const char *how = end_of_worker(s->flight, dead);
        bool known = strcmp(how, "vanished") != 0;
        struct afz_verdict *v =
                afz_outcome_add(ret, "hang:worker-dead", AFZ_LEVEL_ACT, known ? 0.90 : 0.75);
        if (!v)
                return true;
        snprintf(v->summary, sizeof v->summary,
                 "it %s: a loader worker (process %llu) %s, and the rest %s for it for ever",
                 s->over ? "hung" : "hangs", (unsigned long long)dead->subject.id, how,
                 s->over ? "waited" : "waits");
        snprintf(v->fix, sizeof v->fix,
                 "find out why the worker ended (its own error, memory, a signal): run with "
                 "num_workers=0 once; give the loader a time-out, so that it fails instead of "
                 "waiting");
        note_stretch(v, s);
        afz_verdict_note(v, "%u of its workers still live and wait", left);
        note_waits(v, s);
        note_step(v, st);
        return true;
}

/* ---- hang:deadlock ---- */

/* Whether what the main process waits for can only come from a relative. */
static bool waits_inside(const struct scene *s, bool stopped)
{
        if (s->waits_outside)
                return false;
        switch (s->main_wait) {
        case AFZ_WAIT_LOCK:
                return true;
        case AFZ_WAIT_PIPE: /* the other end may be somebody outside the job */
        case AFZ_WAIT_CHILD:
                return s->relatives > 0;
        case AFZ_WAIT_ANY:
        case AFZ_WAIT_UNKNOWN:
                return stopped; /* only steps tell that it should have gone on */
        case AFZ_WAIT_OUT:
                break;
        }
        return false;
}

static bool judge_deadlock(const struct scene *s, const struct steps *st, struct afz_outcome *ret)
{
        bool stopped = steps_stopped(st, s->quiet.to_ms);
        if (quiet_ms(s) < at.asleep_ms || !waits_inside(s, stopped))
                return false;
        /* Without steps or stacks only the main thread's wait is known, and another may wait for
         * the world: a server that nobody asks anything looks the same. */
        bool seen = stopped || s->stacks > 1;
        struct afz_verdict *v =
                afz_outcome_add(ret, "hang:deadlock", seen ? AFZ_LEVEL_ACT : AFZ_LEVEL_WARN,
                                seen                             ? 0.92
                                : quiet_ms(s) > 5 * at.asleep_ms ? 0.60
                                                                 : 0.50);
        if (!v)
                return true;
        snprintf(v->summary, sizeof v->summary, "it %s for %s, %s waiting for %s",
                 s->over ? "hung: all of it slept" : "hangs: all of it has slept",
                 LASTS(quiet_ms(s)), s->relatives > 0 ? "its processes" : "its threads",
                 s->main_words);
        if (s->relatives > 0)
                snprintf(v->fix, sizeof v->fix,
                         "two sides wait for each other: empty queues before join(), take locks in "
                         "one order, start workers with spawn instead of fork after threads were "
                         "started");
        else
                snprintf(v->fix, sizeof v->fix,
                         "two threads wait for each other: take locks in the same order "
                         "everywhere, or give the waits a time-out; while it hangs, `py-spy dump "
                         "--pid %llu` shows the lines of a Python program",
                         (unsigned long long)s->main->subject.id);
        note_stretch(v, s);
        note_waits(v, s);
        note_stacks(v, s);
        note_step(v, st);
        return true;
}

/* ---- hang:spin ---- */

static bool is_flat(const struct afz_column *need, uint32_t from, uint32_t to)
{
        int64_t least, most;
        if (!afz_column_least(need, from, to, &least) || !afz_column_most(need, from, to, &most))
                return false;
        return (double)most - (double)least <= (double)at.spin_flat_bytes ||
               (double)most - (double)least <= at.spin_flat * (double)most;
}

static void judge_spin(const struct afz_case *c, const struct steps *st, struct afz_outcome *ret)
{
        const struct afz_track *job = afz_flight_job(c->flight);
        if (!job || st->count < at.steps || job->last_ms < st->last_ms + at.spin_ms ||
            !end_fits(c) || !steps_stopped(st, job->last_ms))
                return;
        uint32_t from = st->last_ms + 1, to = job->last_ms;
        double cores = afz_rate_or(afz_track_column(job, AFZ_JOB_CPU), from, to, 1e-9);
        double in = afz_rate_or(afz_track_column(job, AFZ_JOB_READ_CALLS), from, to, 1);
        double out = afz_rate_or(afz_track_column(job, AFZ_JOB_WRITE_CALLS), from, to, 1);
        if (cores < at.spin_cores || in < 0 || out < 0 || in + out > at.bytes_per_s ||
            afz_job_gpu_util(c->flight, from, to) >= at.gpu_busy ||
            !is_flat(afz_flight_need(c->flight), from, to) || !afz_job_lived(c->flight, from, to))
                return;
        struct afz_verdict *v = afz_outcome_add(ret, "hang:spin", AFZ_LEVEL_WARN, 0.70);
        if (!v)
                return;
        snprintf(v->summary, sizeof v->summary,
                 "it turns in circles: no step for %s, though %.1f cores were busy all the time",
                 LASTS(to - st->last_ms), cores);
        snprintf(v->fix, sizeof v->fix,
                 "look at the loop after step %lld: a condition that never comes true (a tolerance "
                 "that cannot be met, a flag that nobody sets); while it turns, `py-spy dump "
                 "--pid` shows "
                 "the line of a Python program",
                 (long long)st->number);
        afz_verdict_note(v, "%u steps came before, the longest took %s", st->count,
                         LASTS(st->longest_ms));
        afz_verdict_note(v, "nothing read, nothing written, and its memory stayed the same");
        note_stacks(v, &(struct scene){.flight = c->flight, .quiet = {from, to, AFZ_QUIET_WORK}});
        v->from_ms = from;
        v->to_ms = to;
}

AFZ_JUDGE(hang)
{
        struct scene s;
        struct steps st = steps_of(c->flight);
        if (!set_scene(c, &s))
                judge_spin(c, &st, ret);
        else if (!judge_worker(&s, &st, ret) && !judge_deadlock(&s, &st, ret))
                judge_spin(c, &st, ret);
}
