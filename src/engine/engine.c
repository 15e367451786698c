#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bottleneck.h"
#include "clock.h"
#include "gpu.h"

#define STRIP_STEP_NS UINT64_C(1000000000)

/* The word for what limits is looked at by people: not more often than they can read. */
#define LIMIT_NS UINT64_C(1000000000)

/* Our own cost is looked at this often. */
#define SELF_NS UINT64_C(1000000000)

enum { BATCHES = 3 };

struct organ {
        const struct afz_sense *sense;
        void *state;
        uint64_t next_ns;
        int newest, before; /* which of the batches these are */
        struct afz_batch *batch[BATCHES];
};

struct afz_engine {
        const struct afz_env *env;
        struct afz_target target;
        struct afz_window window;
        size_t organs;
        struct organ organ[AFZ_WINDOW_SOURCES];
        uint64_t limit_next_ns, self_next_ns;
        struct afz_batch *self[2];
};

static const char *words_for(const struct afz_sense *sense, int error)
{
        if (error == -EACCES || error == -EPERM)
                return sense->denied ? sense->denied : "may not be read";
        if (error == -ENODATA || error == -ENOENT)
                return sense->absent;
        return strerror(-error);
}

static void set_error(struct afz_source *source, const struct afz_sense *sense, int error)
{
        source->error = error;
        source->why = error < 0 ? words_for(sense, error) : NULL;
}

static int open_organ(struct afz_engine *e, const struct afz_sense *sense)
{
        struct organ *o = &e->organ[e->organs];
        struct afz_source *source = &e->window.source[e->organs];
        *o = (struct organ){.sense = sense, .newest = 0, .before = 1};
        source->name = sense->name;
        int r = sense->open(e->env, &e->target, &o->state);
        if (r == -ENOMEM || (r == -ESRCH && e->target.pid != 0))
                return r;
        set_error(source, sense, r);
        if (r < 0)
                o->state = NULL;
        e->organs++;
        e->window.sources++;
        if (r < 0)
                return 0;
        for (int i = 0; i < BATCHES; i++)
                if ((r = afz_batch_new(sense->max_samples, &o->batch[i])) < 0)
                        return r;
        return 0;
}

int afz_engine_new(const struct afz_env *env, const struct afz_target *target,
                   struct afz_engine **ret)
{
        struct afz_engine *e = calloc(1, sizeof *e);
        if (!e)
                return -ENOMEM;
        e->env = env;
        e->target = *target;
        afz_window_init(&e->window, STRIP_STEP_NS);
        e->window.job_pid = target->pid;
        int r = 0;
        for (unsigned i = 0; r >= 0 && i < afz_sense_count; i++)
                r = open_organ(e, afz_sense_table[i]);
        for (int i = 0; r >= 0 && i < 2; i++)
                r = afz_batch_new(1, &e->self[i]);
        if (r < 0) {
                afz_engine_free(e);
                return r;
        }
        e->window.source[e->window.sources++].name = "self";
        *ret = e;
        return 0;
}

void afz_engine_free(struct afz_engine *e)
{
        if (!e)
                return;
        for (size_t i = 0; i < e->organs; i++) {
                struct organ *o = &e->organ[i];
                if (o->state)
                        o->sense->close(o->state);
                for (int k = 0; k < BATCHES; k++)
                        afz_batch_free(o->batch[k]);
        }
        afz_batch_free(e->self[0]);
        afz_batch_free(e->self[1]);
        free(e);
}

/* A clock that jumped back must not keep us from looking. */
static bool is_due(uint64_t now_ns, uint64_t next_ns, uint64_t every_ns)
{
        return now_ns >= next_ns || next_ns - now_ns > every_ns;
}

static void read_organ(struct organ *o, struct afz_source *source, uint64_t now_ns)
{
        if (!o->state || !is_due(now_ns, o->next_ns, o->sense->every_ns))
                return;
        int spare = BATCHES - o->newest - o->before; /* 0 + 1 + 2 */
        struct afz_batch *out = o->batch[spare];
        afz_batch_start(out, now_ns);
        int r = o->sense->read(o->state, out);
        if (r == -EAGAIN)
                return;
        o->next_ns = now_ns + o->sense->every_ns;
        set_error(source, o->sense, r);
        if (r < 0) {
                source->now = source->before = NULL; /* what was is not what is */
                return;
        }
        o->before = o->newest;
        o->newest = spare;
        source->before = source->now;
        source->now = out;
}

/* Which processes on the GPUs are the job's is known only here, where both senses meet. Without a
 * job, or without a word of it, nobody can tell. */
static void mark_gpu_processes(struct afz_engine *e)
{
        if (e->target.pid == 0 || !afz_window_one(&e->window, AFZ_KIND_JOB))
                return;
        for (size_t i = 0; i < e->organs; i++) {
                struct organ *o = &e->organ[i];
                if (o->sense != &afz_sense_gpu || !e->window.source[i].now)
                        continue;
                struct afz_batch *b = o->batch[o->newest];
                for (size_t k = 0; k < b->count; k++) {
                        struct afz_sample *s = &b->sample[k];
                        int64_t pid;
                        if (s->subject.kind != AFZ_KIND_GPU_PROC ||
                            !afz_sample_get(s, AFZ_GPU_PROC_PID, &pid))
                                continue;
                        bool ours = afz_window_find(&e->window, AFZ_KIND_PROC, (uint64_t)pid);
                        afz_sample_set(s, AFZ_GPU_PROC_IN_JOB, ours);
                }
        }
}

static void set_own_rss(const struct afz_engine *e, struct afz_sample *s)
{
        char path[40], buf[128];
        struct afz_span text;
        uint64_t size, resident;
        if (afz_path(path, sizeof path, "%llu/statm", (unsigned long long)e->env->self_pid) > 0 &&
            afz_env_read_record(e->env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) == 0 &&
            afz_span_take_u64(&text, &size) == 0 && afz_span_take_u64(&text, &resident) == 0)
                afz_sample_set_scaled(s, AFZ_SELF_RSS, resident, (uint64_t)e->env->page_bytes);
}

static uint64_t dropped_so_far(const struct afz_engine *e)
{
        uint64_t dropped = 0;
        for (size_t i = 0; i < e->organs; i++)
                for (int k = 0; e->organ[i].state && k < BATCHES; k++)
                        dropped += e->organ[i].batch[k]->dropped;
        return dropped;
}

static void read_self(struct afz_engine *e, uint64_t now_ns, uint64_t tick_ns)
{
        struct afz_source *source = &e->window.source[e->organs];
        struct afz_batch *out = source->now == e->self[0] ? e->self[1] : e->self[0];
        if (!is_due(now_ns, e->self_next_ns, SELF_NS))
                return;
        e->self_next_ns = now_ns + SELF_NS;
        afz_batch_start(out, now_ns);
        struct afz_sample *s = afz_batch_add(
                out, (struct afz_subject){AFZ_KIND_SELF, e->env->self_pid, 0}, "antifreeze");
        afz_sample_set_u64(s, AFZ_SELF_CPU,
                           afz_clock_ns(CLOCK_PROCESS_CPUTIME_ID) +
                                   afz_gpu_helper_cpu_ns(afz_engine_sense(e, "gpu")));
        afz_sample_set_u64(s, AFZ_SELF_TICK, tick_ns);
        afz_sample_set_u64(s, AFZ_SELF_TICKS, e->window.ticks + 1);
        afz_sample_set_u64(s, AFZ_SELF_DROPPED, dropped_so_far(e));
        set_own_rss(e, s);
        source->before = source->now;
        source->now = out;
}

void afz_engine_tick(struct afz_engine *e)
{
        uint64_t now_ns = afz_env_now(e->env);
        for (size_t i = 0; i < e->organs; i++)
                read_organ(&e->organ[i], &e->window.source[i], now_ns);
        mark_gpu_processes(e);
        read_self(e, now_ns, afz_env_now(e->env) - now_ns);
        afz_window_advance(&e->window, now_ns);
        if (is_due(now_ns, e->limit_next_ns, LIMIT_NS) || !afz_engine_job_alive(e)) {
                afz_bottleneck_judge(&e->window, &e->window.limit);
                if (e->window.limit.kind != AFZ_LIMIT_UNKNOWN)
                        e->limit_next_ns = now_ns + LIMIT_NS;
        }
}

void afz_engine_hurry(struct afz_engine *e)
{
        for (size_t i = 0; i < e->organs; i++)
                e->organ[i].next_ns = 0;
}

void afz_engine_settle(struct afz_engine *e, uint64_t timeout_ns)
{
        void *gpu = afz_engine_sense(e, "gpu");
        if (gpu)
                (void)afz_gpu_wait_ready(gpu, timeout_ns);
}

const struct afz_window *afz_engine_window(const struct afz_engine *e)
{
        return &e->window;
}

void *afz_engine_sense(const struct afz_engine *e, const char *name)
{
        for (size_t i = 0; i < e->organs; i++)
                if (strcmp(e->organ[i].sense->name, name) == 0)
                        return e->organ[i].state;
        return NULL;
}

bool afz_engine_job_alive(const struct afz_engine *e)
{
        const struct afz_sample *job = afz_window_one(&e->window, AFZ_KIND_JOB);
        int64_t processes;
        if (e->target.pid == 0 || !job || !afz_sample_get(job, AFZ_JOB_PROCESSES, &processes))
                return true;
        return processes > afz_sample_or(job, AFZ_JOB_ZOMBIES, 0);
}
