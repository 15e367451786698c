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
#include "hang_spin.h"
#include "hang_stacks.h"
#include "hang_steps.h"
#include "hang_worker.h"
#include "judge_words.h"
#include "judges.h"
#include "role.h"
#include "stretch.h"
#include "wait_kind.h"

static const struct {
        uint32_t asleep_ms;    /* without work, before it is a hang */
        uint32_t orphaned_ms;  /* the same after the end of a worker */
        uint32_t tail_ms;      /* before the end, in which it may stir again */
        uint32_t long_tail_ms; /* the same, where it has ended since and stirred only a little */
        int64_t stir_ns;       /* core time that is a little */
        double cores;          /* below which it does no work */
        double bytes_per_s;    /* read and written, below which it moves nothing */
        double gpu_busy;       /* share of time, from which on the GPU works for it */
        double held;           /* share of time, from which on it was held in a state */
        int64_t worked_ns;     /* core time before, from which on it had been working */
        double mattered;       /* share of the job's core time, from which on a process counts */
        uint32_t near_ms;      /* a worker's end and the beginning of the quiet */
} at = {
        .asleep_ms = 60000,    /* checkpoints, downloads and compilers pause for some ten seconds */
        .orphaned_ms = 30000,  /* a pool starts another worker within a second */
        .tail_ms = 15000,      /* Ctrl-C, its clean-up, and the grace before a kill */
        .long_tail_ms = 60000, /* Ctrl-C, no answer, another one, and then a kill */
        .stir_ns = 500000000,  /* 0.5 s: a traceback; not work */
        .cores = 0.02,         /* watchdog threads that wake each second use less than 1 % */
        .bytes_per_s = 4096,   /* a page a second: heartbeats, log lines */
        .gpu_busy = 0.30,      /* a desktop alone keeps it at ten per cent */
        .held = 0.20,          /* who takes a stack stops it for a moment */
        .worked_ns = 250000000, /* 0.25 s: more than starting an interpreter takes */
        .mattered = 0.10,       /* trackers, launchers and shells have next to none */
        .near_ms = 15000,       /* the rest works off what is queued first */
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
        bool over;          /* the run has ended since */

        struct afz_stands stands;           /* where its threads stood, if anybody has looked */
        const struct afz_stand *main_stand; /* the main thread of main; NULL: not known */
        unsigned unclear;                   /* threads of which nobody knows what they wait for */
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

/* Who presses Ctrl-C wakes a job that hangs, and may need a minute to find that it hangs on. */
static uint32_t tail_ms_of(const struct scene *s)
{
        const struct afz_column *cpu = afz_track_column(s->job, AFZ_JOB_CPU);
        uint32_t last_ms = s->job->last_ms;
        int64_t before, after;
        bool little = s->over && last_ms > at.long_tail_ms &&
                      afz_column_last(cpu, last_ms - at.long_tail_ms, &before) &&
                      afz_column_last(cpu, UINT32_MAX, &after) && before >= 0 && after >= before &&
                      after - before < at.stir_ns;
        return little ? at.long_tail_ms : at.tail_ms;
}

/* Neither core time nor bytes. A counter that is missing makes us silent. */
static bool find_quiet(struct scene *s)
{
        static const enum afz_metric moves[] = {AFZ_JOB_READ_CALLS, AFZ_JOB_WRITE_CALLS,
                                                AFZ_JOB_READ, AFZ_JOB_WRITTEN};
        uint32_t tail_ms = tail_ms_of(s);
        s->quiet = afz_column_quiet(afz_track_column(s->job, AFZ_JOB_CPU), at.cores * 1e9, tail_ms);
        for (size_t i = 0; i < AFZ_COUNT_OF(moves); i++) {
                struct afz_quiet q = afz_column_quiet(afz_track_column(s->job, moves[i]),
                                                      at.bytes_per_s, tail_ms);
                if (q.cut == AFZ_QUIET_UNKNOWN)
                        return false;
                if (q.from_ms > s->quiet.from_ms) /* it moved when it used no core: that cut it */
                        s->quiet.cut = q.cut;
                s->quiet.from_ms = later(s->quiet.from_ms, q.from_ms);
                s->quiet.to_ms = sooner(s->quiet.to_ms, q.to_ms);
        }
        return s->quiet.cut != AFZ_QUIET_GAP && s->quiet.to_ms > s->quiet.from_ms;
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
               afz_wait_is_kin(wait);
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

static int64_t role_at(const struct scene *s, uint64_t pid)
{
        const struct afz_track *proc = afz_flight_find(s->flight, AFZ_KIND_PROC, pid);
        return proc ? role_of(proc) : AFZ_ROLE_OTHER;
}

/* Whose threads say nothing about the job: they wait for whatever they started. */
static bool is_bystander(const struct scene *s, uint64_t pid)
{
        const struct afz_track *proc = afz_flight_find(s->flight, AFZ_KIND_PROC, pid);
        int64_t role = role_at(s, pid);
        return role == AFZ_ROLE_SHELL || role == AFZ_ROLE_LAUNCHER || role == AFZ_ROLE_TRACKER ||
               (proc && proc != s->main && is_wrapper(s, proc, cpu_of(proc, s->quiet.to_ms)));
}

/* Whether what a thread waits for may come from outside of the job: somebody else, or a clock that
 * has not struck yet. One that struck between two looks, and nothing came of it, is a heartbeat: a
 * progress bar's, a watchdog's. */
static bool may_come_from_outside(const struct afz_stand *stand)
{
        bool by_clock = stand->timed &&
                        (afz_wait_is_kin(stand->wait) || strcmp(stand->words, "a clock") == 0);
        if (by_clock)
                return !stand->beats;
        return stand->wait == AFZ_WAIT_OUT || stand->wait == AFZ_WAIT_ANY;
}

/* The main thread: it counts where it has not moved and will not by itself. */
static void take_main_stand(struct scene *s, const struct afz_stand *stand)
{
        s->main_stand = stand;
        if (stand->wait == AFZ_WAIT_UNKNOWN)
                return;
        s->main_wait = stand->wait;
        s->main_words = stand->words;
        bool moves = stand->seen_before && !stand->stood;
        if (afz_wait_is_kin(stand->wait) && (stand->timed || moves))
                s->main_wait = AFZ_WAIT_ANY;
}

/* Stacks say more than the main threads' waits: of every thread. */
static void look_at_stacks(struct scene *s)
{
        afz_stands_of(s->flight, s->quiet.from_ms, s->quiet.to_ms, &s->stands);
        for (size_t i = 0; i < s->stands.count; i++) {
                const struct afz_stand *stand = &s->stands.one[i];
                bool is_main = stand->pid == s->main->subject.id && stand->tid == stand->pid;
                if (is_main)
                        take_main_stand(s, stand);
                else if (is_bystander(s, stand->pid))
                        continue;
                else
                        s->waits_outside |= may_come_from_outside(stand);
                s->unclear += stand->unclear;
        }
}

/* A run that ended by itself, and well, was not hung; nor was one that gave up with an error of its
 * own. Who ends a hung job does it with a signal, which shells tell as 128 and more. */
static bool end_fits(const struct afz_case *c)
{
        const struct afz_end *end = &c->facts.end;
        return end->how != AFZ_END_EXIT || end->code == 124 || end->code > 128;
}

/* Who was seen so twice need not have worked much: a small program locks itself out at once. */
static bool is_seen_locked(const struct scene *s)
{
        return s->main_stand && s->main_stand->stood && afz_wait_is_kin(s->main_stand->wait) &&
               s->unclear == 0;
}

static bool set_scene(const struct afz_case *c, struct scene *s)
{
        *s = (struct scene){.flight = c->flight,
                            .job = afz_flight_job(c->flight),
                            .over = c->facts.end.how != AFZ_END_RUNNING};
        if (!s->job || !end_fits(c) || !find_quiet(s) || !was_free(s))
                return false;
        (void)afz_column_last(afz_track_column(s->job, AFZ_JOB_CPU), s->quiet.from_ms,
                              &s->worked_ns);
        if (!look_at_processes(s)) /* before the first look it has done nothing that we know */
                return false;
        look_at_stacks(s);
        bool worked = s->quiet.cut == AFZ_QUIET_WORK && s->worked_ns >= at.worked_ns;
        return worked || is_seen_locked(s);
}

/* ---- words ---- */

static void note_stretch(struct afz_verdict *v, const struct scene *s)
{
        const char *worked = s->worked_ns > 0 ? LASTS((double)s->worked_ns / 1e6) : "nothing";
        afz_verdict_note(v, "no processor time, nothing read or written for %s; before, it used %s",
                         LASTS(quiet_ms(s)), worked);
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
                afz_verdict_note(v, "%.40s (%s%sprocess %llu) waits for %s (%.40s)", proc->name,
                                 role, role[0] ? ", " : "", (unsigned long long)proc->subject.id,
                                 words, proc->note);
        }
}

/* Whom to tell of first: who waits by his own hand, the main thread, who waits for his like. */
static int telling_turn(const struct scene *s, const struct afz_stand *stand)
{
        bool kin = afz_wait_is_kin(stand->wait);
        if (kin && !stand->timed && afz_stand_is_own(stand->mark->text))
                return 0;
        if (stand == s->main_stand)
                return 1;
        return kin || !s->main_stand ? 2 : -1;
}

static void note_stacks(struct afz_verdict *v, const struct scene *s)
{
        int told = 0;
        for (int turn = 0; turn < 3; turn++)
                for (size_t i = 0; i < s->stands.count && told < 3; i++) {
                        const struct afz_stand *stand = &s->stands.one[i];
                        char line[150];
                        if (telling_turn(s, stand) != turn || !stand->mark->text[0])
                                continue;
                        told++;
                        afz_stand_tell(stand->mark->text, line, sizeof line);
                        afz_verdict_note(v, "thread %llu stands in %s%s",
                                         (unsigned long long)stand->tid, line,
                                         stand->stood ? " (at both looks)" : "");
                }
}

/* The line of the user's own program. Best is where somebody waits by his own hand (`with lock:`),
 * the main thread first: a thread in join() waits for him. If the main thread waits for another
 * process, one that waits over there comes before a thread beside it that has nothing to do. Else
 * of the main thread of the program itself, of the process that had worked most, of anybody who
 * waits for his like. */
static int where_turn(const struct scene *s, const struct afz_stand *stand)
{
        bool main = stand->tid == stand->pid && role_at(s, stand->pid) == AFZ_ROLE_MAIN;
        bool kin = afz_wait_is_kin(stand->wait) && !is_bystander(s, stand->pid);
        bool own = afz_stand_is_own(stand->mark->text);
        enum afz_wait wait = s->main_stand ? s->main_stand->wait : s->main_wait;
        bool sought = wait == AFZ_WAIT_PIPE || wait == AFZ_WAIT_CHILD;
        if (main && own)
                return 0;
        if (kin && own && !stand->timed)
                return sought && stand->pid != s->main->subject.id ? 1 : 2;
        if (main)
                return 3;
        return stand == s->main_stand ? 4 : kin ? 5 : -1;
}

static void find_where(const struct scene *s, struct afz_where *ret)
{
        for (int turn = 0; turn <= 5; turn++)
                for (size_t i = 0; i < s->stands.count; i++) {
                        const struct afz_stand *stand = &s->stands.one[i];
                        if (where_turn(s, stand) == turn && afz_stand_where(stand->mark->text, ret))
                                return;
                }
}

static void note_step(struct afz_verdict *v, const struct afz_steps *st)
{
        if (afz_steps_count(st))
                afz_verdict_note(v, "the last step, %lld, ended %s after the start",
                                 (long long)st->count, LASTS(st->last_ms));
}

/* ---- hang:worker-dead ---- */

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
                uint32_t died = afz_worker_died_ms(proc);
                if (died + at.near_ms < s->quiet.from_ms || died > s->quiet.from_ms + at.near_ms)
                        continue;
                bool violent = strcmp(afz_worker_end(s->flight, proc), "vanished") != 0;
                gone++;
                if (!dead || (violent && !odd))
                        dead = proc;
                odd |= violent;
        }
        *ret_left = left;
        return odd || (left > 0 && gone <= left) ? dead : NULL;
}

static bool judge_worker(const struct scene *s, const struct afz_steps *st, struct afz_outcome *ret)
{
        unsigned left;
        const struct afz_track *dead = dead_worker(s, &left);
        if (quiet_ms(s) < at.orphaned_ms || !dead || s->main_wait == AFZ_WAIT_OUT)
                return false;
        const char *how = afz_worker_end(s->flight, dead);
        bool known = strcmp(how, "vanished") != 0;
        struct afz_verdict *v =
                afz_outcome_add(ret, "hang:worker-dead", AFZ_LEVEL_ACT, known ? 0.90 : 0.75);
        char place[160];
        if (!v)
                return true;
        find_where(s, &v->where);
        snprintf(v->summary, sizeof v->summary,
                 "it %s: a loader worker (process %llu) %s, and the rest %s for it for ever%s",
                 s->over ? "hung" : "hangs", (unsigned long long)dead->subject.id, how,
                 s->over ? "waited" : "waits", afz_where_words(&v->where, place, sizeof place));
        snprintf(v->fix, sizeof v->fix,
                 "find out why the worker ended (its own error, memory, a signal): run with "
                 "num_workers=0 once; give the loader a time-out, so that it fails instead of "
                 "waiting");
        note_stretch(v, s);
        if (left > 0)
                afz_verdict_note(v, "%u of its workers still live and wait", left);
        else
                afz_verdict_note(v, "none of its workers is left");
        note_waits(v, s);
        note_stacks(v, s);
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
                return s->relatives > 0 ||
                       (s->main_stand && strstr(s->main_stand->mark->text, " of its own pipes"));
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

/* One thread is all there is: whoever it waits for has ended, or is itself, or a signal. */
static bool is_lone(const struct scene *s)
{
        unsigned threads = 0;
        for (size_t i = 0; i < s->stands.count; i++)
                if (!is_bystander(s, s->stands.one[i].pid))
                        threads += s->stands.one[i].threads;
        return threads == 1 && s->relatives == 0;
}

/* A program that waits to be told to end by a signal does so at a Condition or an Event. */
static bool may_wait_for_signal(const struct scene *s)
{
        return is_lone(s) && s->main_stand &&
               strstr(s->main_stand->mark->text, " in Condition.wait");
}

/* How sure. Without steps or stacks only the main thread's wait is known, and another may wait for
 * the world: a server that nobody asks anything looks the same. */
static double deadlock_confidence(const struct scene *s, bool stopped)
{
        if (stopped || (s->main_stand && s->main_stand->stood && s->unclear == 0))
                return !stopped && may_wait_for_signal(s) ? 0.70 : 0.92;
        if (s->stands.count > 0 && s->unclear == 0)
                return 0.80; /* one look only: it may have moved since */
        return quiet_ms(s) > 5 * at.asleep_ms ? 0.60 : 0.50;
}

static void word_fix(const struct scene *s, struct afz_verdict *v)
{
        char begin[100] = "";
        if (v->where.file[0])
                snprintf(begin, sizeof begin, "; begin at %.60s:%d", afz_where_file(&v->where),
                         v->where.line);
        else if (!s->over && !s->main_stand)
                snprintf(begin, sizeof begin,
                         "; while it hangs, `py-spy dump --pid %llu` shows the lines of a Python "
                         "program",
                         (unsigned long long)s->main->subject.id);
        if (s->relatives > 0)
                snprintf(v->fix, sizeof v->fix,
                         "two sides wait for each other, or for a worker that was killed: empty "
                         "queues before join(), take locks in one order, start workers with spawn, "
                         "not fork%s",
                         v->where.file[0] ? begin : "");
        else if (is_lone(s))
                snprintf(v->fix, sizeof v->fix,
                         "only one thread is left: the one that should wake it has ended (with an "
                         "error?)%s%s%s",
                         s->main_wait == AFZ_WAIT_LOCK ? ", or a lock is taken twice" : "", begin,
                         may_wait_for_signal(s) ? "; fine if it waits for a signal" : "");
        else
                snprintf(v->fix, sizeof v->fix,
                         "two threads wait for each other: take locks in the same order "
                         "everywhere, or give the waits a time-out%s",
                         begin);
}

static bool judge_deadlock(const struct scene *s, const struct afz_steps *st,
                           struct afz_outcome *ret)
{
        bool stopped = afz_steps_stopped(st, s->quiet.to_ms);
        if (quiet_ms(s) < at.asleep_ms || !waits_inside(s, stopped))
                return false;
        double sure = deadlock_confidence(s, stopped);
        char place[160];
        struct afz_verdict *v = afz_outcome_add(
                ret, "hang:deadlock", sure >= 0.80 ? AFZ_LEVEL_ACT : AFZ_LEVEL_WARN, sure);
        if (!v)
                return true;
        find_where(s, &v->where);
        snprintf(v->summary, sizeof v->summary, "it %s for %s, %s waiting for %s%s",
                 s->over ? "hung: all of it slept" : "hangs: all of it has slept",
                 LASTS(quiet_ms(s)),
                 s->relatives > 0 ? "its processes"
                 : is_lone(s)     ? "its only thread"
                                  : "its threads",
                 s->main_words, afz_where_words(&v->where, place, sizeof place));
        word_fix(s, v);
        note_stretch(v, s);
        if (!s->main_stand) /* its stack says it too, and more */
                note_waits(v, s);
        note_stacks(v, s);
        note_step(v, st);
        return true;
}

AFZ_JUDGE(hang)
{
        struct scene s;
        struct afz_steps st = afz_steps_of(c->flight);
        bool quiet = set_scene(c, &s);
        if (quiet && (judge_worker(&s, &st, ret) || judge_deadlock(&s, &st, ret)))
                return;
        if (end_fits(c))
                afz_judge_spin(c, &st, ret);
}
