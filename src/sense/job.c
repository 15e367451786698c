/* The job: every process of the tree, and the tree added up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "count_of.h"
#include "job_proc.h"
#include "pss_gate.h"
#include "sense.h"
#include "tree.h"

/* More processes than any training job has; a machine-wide watch of more shows the first of them.
 */
#define MAX_PROCESSES 8192

/* Without a job every process of the machine is read: for a look around, not for guarding. */
#define MACHINE_NS UINT64_C(1000000000)

/* PSS is read again when RSS has moved by one part in this many: at once where shared pages came or
 * went, for nothing else tells whose they are, or where it is much; else after a while. And after
 * half a minute in any case: pages shared with programs outside of the job are divided among more
 * or fewer. */
#define PSS_PART     64
#define PSS_MUCH     (UINT64_C(64) << 20)
#define PSS_MOVED_NS UINT64_C(5000000000) /* 32 that all grow cost 0.05 % of a core so */
#define PSS_NS       UINT64_C(30000000000)

/* Descriptors left for everything else: cgroups (16 levels of up to 14 files, and 3 of each again
 * for the machine's limits), sensors, disks, the terminal, helpers. */
#define SPARE_FDS 384

struct job {
        const struct afz_env *env;
        struct afz_target target;
        struct afz_tree *tree;
        struct afz_pss_gate gate;
        uint64_t next_ns;  /* of a watch of the whole machine */
        size_t members;    /* of the last reading */
        uint64_t births;   /* members that joined or left so far */
        size_t pss_turn;   /* slot where the next round of PSS readings begins */
        size_t keep_open;  /* processes whose files may be kept open */
        size_t slots_used; /* slots that may hold a process, dead ones too */
        uint64_t dropped;  /* members that did not fit, so far told of */
        uint64_t tally[AFZ_TALLIES];
        bool io_known;
        struct afz_proc proc[MAX_PROCESSES];
        struct afz_sample *sample_of[MAX_PROCESSES]; /* in the batch being filled */
};

static size_t processes_to_keep_open(void)
{
        struct rlimit lim;
        if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur < SPARE_FDS)
                return 0;
        size_t n = (size_t)(lim.rlim_cur - SPARE_FDS) / AFZ_PROC_FILES;
        return n < MAX_PROCESSES ? n : MAX_PROCESSES;
}

static void job_close(void *state)
{
        struct job *job = state;
        if (!job)
                return;
        for (size_t i = 0; i < MAX_PROCESSES; i++)
                if (job->proc[i].pid != 0)
                        afz_proc_leave(&job->proc[i]);
        afz_tree_free(job->tree);
        free(job);
}

static int job_open(const struct afz_env *env, const struct afz_target *target, void **ret_state)
{
        struct job *job = calloc(1, sizeof *job);
        if (!job)
                return -ENOMEM;
        job->env = env;
        job->target = *target;
        job->keep_open = processes_to_keep_open();
        afz_pss_gate_init(&job->gate, afz_env_now(env));
        int r = afz_tree_new(env, target->pid, MAX_PROCESSES, &job->tree);
        if (r < 0) {
                job_close(job);
                return r;
        }
        *ret_state = job;
        return 0;
}

static struct afz_proc *parent_of(struct job *job, const struct afz_member *m)
{
        size_t i;
        return afz_tree_find(job->tree, m->ppid, &i) ? &job->proc[i] : NULL;
}

/* What this process did since it was last seen goes to the job's sums. Sums of the living alone
 * would fall when one of them dies. */
static void add_growth(struct job *job, struct afz_proc *proc, const struct afz_sample *s)
{
        static const enum afz_metric of[AFZ_TALLIES] = {
                [AFZ_TALLY_MINOR] = AFZ_PROC_MINOR_FAULTS,
                [AFZ_TALLY_MAJOR] = AFZ_PROC_MAJOR_FAULTS,
                [AFZ_TALLY_READ] = AFZ_PROC_READ,
                [AFZ_TALLY_WRITTEN] = AFZ_PROC_WRITTEN,
                [AFZ_TALLY_READ_CALLS] = AFZ_PROC_READ_CALLS,
                [AFZ_TALLY_WRITE_CALLS] = AFZ_PROC_WRITE_CALLS,
        };
        for (int i = 0; i < AFZ_TALLIES; i++) {
                int64_t v, more;
                if (i == AFZ_TALLY_CPU_NS) {
                        if (!afz_sample_get(s, AFZ_PROC_USER, &v) ||
                            !afz_sample_get(s, AFZ_PROC_SYSTEM, &more))
                                continue;
                        v += more;
                } else if (!afz_sample_get(s, of[i], &v)) {
                        continue;
                }
                job->io_known |= i == AFZ_TALLY_READ;
                if ((uint64_t)v > proc->tally[i])
                        job->tally[i] += (uint64_t)v - proc->tally[i];
                proc->tally[i] = (uint64_t)v;
        }
}

static bool is_zombie(const struct afz_sample *s)
{
        int64_t state = afz_sample_or(s, AFZ_PROC_STATE, '?');
        return state == 'Z' || state == 'X';
}

static void read_member(struct job *job, size_t i, struct afz_batch *out)
{
        struct afz_member *m = afz_tree_at(job->tree, i);
        struct afz_proc *proc = &job->proc[i];
        job->sample_of[i] = NULL;
        if (m->pid == 0 || m->gone) {
                afz_proc_leave(proc); /* do not keep the files of the dead */
                return;
        }
        if (m->fresh || proc->pid != m->pid) {
                job->births++;
                afz_proc_leave(proc);
                afz_proc_enter(proc, job->env, m, i < job->keep_open, out->t_ns);
        }
        struct afz_sample *s = afz_batch_add(
                out, (struct afz_subject){AFZ_KIND_PROC, m->pid, m->start_ticks}, proc->comm);
        if (!s)
                return;
        int r = afz_proc_read_fast(proc, job->env, m, s);
        if (r == -ESRCH) {
                out->count--; /* the sample that was just added */
                job->births++;
                afz_tree_lost(job->tree, i);
                afz_proc_leave(proc);
                return;
        }
        /* Its pid may have been the root's before: the root alone has no generation above it. */
        bool is_root = m->pid == job->target.pid && m->depth == 0;
        /* Whatever else went wrong (no descriptor left, say), it lives: it stays, without figures.
         */
        if (r >= 0 && !is_zombie(s)) {
                afz_proc_read_slow(proc, job->env, parent_of(job, m), is_root, out->t_ns,
                                   afz_proc_slow_ns(job->members));
                afz_proc_read_threads(proc, job->env, out->t_ns);
        }
        m->orphan = job->target.pid != 0 && !is_root && !parent_of(job, m);
        afz_sample_set(s, AFZ_PROC_DEPTH, m->depth);
        afz_sample_set(s, AFZ_PROC_ORPHAN, m->orphan);
        add_growth(job, proc, s);
        job->sample_of[i] = s;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
        return a > b ? a - b : b - a;
}

/* Whether PSS may be another than when it was read. What grew since is in need anyway (as anonymous
 * RSS); a process that neither grew nor shares its pages with another number of relatives is not
 * asked again for a while. */
static bool pss_moved(const struct job *job, const struct afz_proc *proc,
                      const struct afz_sample *s, uint64_t rss_bytes)
{
        const struct afz_pss_record *last = &proc->pss;
        bool known = afz_sample_has(&proc->slow, AFZ_PROC_PSS);
        if (!known || last->taken_ns == 0 || proc->pss_births != job->births)
                return true;
        uint64_t age_ns = s->t_ns - last->taken_ns, part = rss_bytes / PSS_PART;
        uint64_t shared = (uint64_t)afz_sample_or(s, AFZ_PROC_RSS_SHARED, 0);
        uint64_t moved = apart(rss_bytes, last->cost_bytes);
        return age_ns > PSS_NS || apart(shared, proc->shared_at_pss_bytes) > part ||
               (moved > part && (age_ns >= PSS_MOVED_NS || moved >= PSS_MUCH));
}

/* Whose turn it is gets its PSS read, as far as the gate allows; those after it are next. */
static void read_pss(struct job *job, size_t slots)
{
        size_t start = slots > 0 ? job->pss_turn % slots : 0;
        for (size_t k = 0; k < slots; k++) {
                size_t i = (start + k) % slots;
                const struct afz_sample *s = job->sample_of[i];
                int64_t rss;
                if (!s || !afz_sample_get(s, AFZ_PROC_RSS, &rss) || rss == 0)
                        continue;
                if (!pss_moved(job, &job->proc[i], s, (uint64_t)rss))
                        continue;
                if (!afz_pss_gate_open(&job->gate, &job->proc[i].pss, s->t_ns, (uint64_t)rss))
                        continue;
                afz_proc_read_pss(&job->proc[i], job->env, &job->gate, s);
                job->proc[i].pss_births = job->births;
                job->pss_turn = i + 1;
        }
}

static void add(struct afz_sample *job, enum afz_metric to, const struct afz_sample *s,
                enum afz_metric from)
{
        int64_t v;
        if (afz_sample_get(s, from, &v))
                afz_sample_set(job, to, afz_sample_or(job, to, 0) + v);
}

static void count_if(struct afz_sample *job, enum afz_metric to, bool yes)
{
        afz_sample_set(job, to, afz_sample_or(job, to, 0) + yes);
}

static void add_member(struct afz_sample *job, const struct afz_sample *s)
{
        int64_t state = afz_sample_or(s, AFZ_PROC_STATE, '?');
        bool zombie = is_zombie(s);
        count_if(job, AFZ_JOB_PROCESSES, true);
        count_if(job, AFZ_JOB_ORPHANS, afz_sample_or(s, AFZ_PROC_ORPHAN, 0) != 0);
        count_if(job, AFZ_JOB_UNREADABLE, !zombie && !afz_sample_has(s, AFZ_PROC_READ));
        count_if(job, AFZ_JOB_RUNNING, state == 'R');
        count_if(job, AFZ_JOB_DISK_WAIT, state == 'D');
        count_if(job, AFZ_JOB_STOPPED, state == 'T' || state == 't');
        count_if(job, AFZ_JOB_ZOMBIES, zombie);
        add(job, AFZ_JOB_THREADS, s, AFZ_PROC_THREADS);
        add(job, AFZ_JOB_NEED, s, AFZ_PROC_NEED);
        add(job, AFZ_JOB_RSS, s, AFZ_PROC_RSS);
        add(job, AFZ_JOB_ANON, s, AFZ_PROC_RSS_ANON);
        add(job, AFZ_JOB_PSS, s, AFZ_PROC_PSS);
        add(job, AFZ_JOB_PSS_ANON, s, AFZ_PROC_PSS_ANON);
        add(job, AFZ_JOB_PSS_FILE, s, AFZ_PROC_PSS_FILE);
        add(job, AFZ_JOB_PSS_SHMEM, s, AFZ_PROC_PSS_SHMEM);
        add(job, AFZ_JOB_SWAP, s,
            afz_sample_has(s, AFZ_PROC_SWAP_PSS) ? AFZ_PROC_SWAP_PSS : AFZ_PROC_SWAP);
        add(job, AFZ_JOB_FDS, s, AFZ_PROC_FDS);
}

static void set_tallies(const struct job *job, bool io_known, struct afz_sample *s)
{
        static const enum afz_metric to[AFZ_TALLIES] = {
                [AFZ_TALLY_CPU_NS] = AFZ_JOB_CPU,
                [AFZ_TALLY_MINOR] = AFZ_JOB_MINOR_FAULTS,
                [AFZ_TALLY_MAJOR] = AFZ_JOB_MAJOR_FAULTS,
                [AFZ_TALLY_READ] = AFZ_JOB_READ,
                [AFZ_TALLY_WRITTEN] = AFZ_JOB_WRITTEN,
                [AFZ_TALLY_READ_CALLS] = AFZ_JOB_READ_CALLS,
                [AFZ_TALLY_WRITE_CALLS] = AFZ_JOB_WRITE_CALLS,
        };
        for (int i = 0; i < AFZ_TALLIES; i++)
                if (i < AFZ_TALLY_READ || io_known)
                        afz_sample_set_u64(s, to[i], job->tally[i]);
}

/* Members of which something was not read in this tick. */
struct missing {
        size_t state, memory, pss, fds, io;
};

static void forget(struct afz_sample *sum, const enum afz_metric *metric, size_t n)
{
        for (size_t i = 0; i < n; i++)
                afz_sample_forget(sum, metric[i]);
}

/* A sum from which somebody is missing is no sum. */
static void forget_partial(struct afz_sample *sum, const struct missing *missing)
{
        static const enum afz_metric of_state[] = {AFZ_JOB_THREADS, AFZ_JOB_RUNNING,
                                                   AFZ_JOB_DISK_WAIT, AFZ_JOB_STOPPED,
                                                   AFZ_JOB_ZOMBIES};
        static const enum afz_metric of_memory[] = {AFZ_JOB_NEED, AFZ_JOB_RSS, AFZ_JOB_ANON,
                                                    AFZ_JOB_SWAP};
        static const enum afz_metric of_pss[] = {AFZ_JOB_PSS, AFZ_JOB_PSS_ANON, AFZ_JOB_PSS_FILE,
                                                 AFZ_JOB_PSS_SHMEM};
        static const enum afz_metric of_fds[] = {AFZ_JOB_FDS};
        if (missing->state > 0)
                forget(sum, of_state, AFZ_COUNT_OF(of_state));
        if (missing->memory > 0)
                forget(sum, of_memory, AFZ_COUNT_OF(of_memory));
        if (missing->memory > 0 || missing->pss > 0)
                forget(sum, of_pss, AFZ_COUNT_OF(of_pss));
        if (missing->fds > 0)
                forget(sum, of_fds, AFZ_COUNT_OF(of_fds));
}

/* The first sample of the batch is the job's; its members' follow. */
static void finish(struct job *job, size_t slots, struct afz_sample *sum)
{
        struct missing missing = {0};
        size_t members = 0;
        for (size_t i = 0; i < slots; i++) {
                struct afz_sample *s = job->sample_of[i];
                if (!s)
                        continue;
                afz_proc_finish(&job->proc[i], s, s->t_ns);
                add_member(sum, s);
                members++;
                missing.state += !afz_sample_has(s, AFZ_PROC_STATE);
                missing.memory += !job->proc[i].memory_known;
                missing.pss +=
                        afz_sample_or(s, AFZ_PROC_RSS, 0) > 0 && !afz_sample_has(s, AFZ_PROC_PSS);
                missing.io += !is_zombie(s) && !afz_sample_has(s, AFZ_PROC_READ);
                missing.fds += !is_zombie(s) && !afz_sample_has(s, AFZ_PROC_FDS);
        }
        forget_partial(sum, &missing);
        job->members = members;
        if (members == 0)
                afz_sample_set(sum, AFZ_JOB_PROCESSES, 0);
        afz_sample_set(sum, AFZ_JOB_NEED_BOUND, members > 1 && missing.pss > 0);
        set_tallies(job, job->io_known && missing.io == 0, sum);
}

static int job_read(void *state, struct afz_batch *out)
{
        struct job *job = state;
        if (job->target.pid == 0 && out->t_ns < job->next_ns)
                return -EAGAIN;
        job->next_ns = out->t_ns + MACHINE_NS;
        int r = afz_tree_update(job->tree);
        if (r < 0)
                return r;
        struct afz_sample *sum =
                afz_batch_add(out, (struct afz_subject){AFZ_KIND_JOB, job->target.pid, 0}, "job");
        size_t slots = afz_tree_slots(job->tree);
        if (job->slots_used < slots)
                job->slots_used = slots;
        for (size_t i = 0; i < job->slots_used; i++)
                read_member(job, i, out);
        job->slots_used = slots;
        out->dropped += afz_tree_dropped(job->tree) - job->dropped;
        job->dropped = afz_tree_dropped(job->tree);
        read_pss(job, slots);
        if (sum)
                finish(job, slots, sum);
        return 0;
}

const struct afz_sense afz_sense_job = {
        .name = "job",
        .what = "the job's processes, their memory, time, faults, files and roles",
        .every_ns = 0,
        .max_samples = MAX_PROCESSES + 1,
        .absent = "/proc is not mounted: processes cannot be seen",
        .denied = "/proc may not be read",
        .open = job_open,
        .read = job_read,
        .close = job_close,
};
