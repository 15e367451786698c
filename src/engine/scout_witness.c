#include "scout_witness.h"

#include <string.h>

#include "clock.h"
#include "recorder.h"

/* What a picture may take: the guard waits for 250 ms at most. */
#define PICTURE_NS (200 * AFZ_NS_PER_MS)

struct telling {
        struct afz_recorder *recorder;
        uint64_t t_ns;
        size_t bytes;
};

static void record(void *ctx, int64_t code, const char *text)
{
        struct telling *t = ctx;
        t->bytes += strlen(text);
        afz_recorder_stack(t->recorder, t->t_ns, code, text);
}

/* The processes that can stand somewhere, in the order of the tree: the root first. */
static size_t living(const struct afz_window *window, pid_t *ret, size_t cap)
{
        const struct afz_sample *s;
        size_t n = 0;
        for (size_t cursor = 0; n < cap && (s = afz_window_next(window, AFZ_KIND_PROC, &cursor));)
                if (afz_sample_or(s, AFZ_PROC_STATE, 'S') != 'Z' && s->subject.id <= INT32_MAX)
                        ret[n++] = (pid_t)s->subject.id;
        return n;
}

static void collect(struct afz_scout_witness *w, struct afz_recorder *recorder, uint64_t now_ns)
{
        struct telling telling = {.recorder = recorder, .t_ns = w->looked_ns};
        if (!afz_witness_ended(w->now, now_ns))
                return;
        afz_witness_tell(w->now, record, &telling);
        afz_witness_took(&w->due, telling.bytes);
        afz_witness_free(w->now);
        w->now = NULL;
}

void afz_scout_witness_take(struct afz_scout_witness *w, const struct afz_env *env,
                            struct afz_recorder *recorder, const struct afz_window *window,
                            uint64_t step)
{
        const struct afz_sample *job = afz_window_one(window, AFZ_KIND_JOB);
        pid_t pids[AFZ_WITNESS_PROCESSES];
        uint64_t cpu_ns = 0;
        if (!recorder)
                return;
        if (w->now) {
                if (!w->picture)
                        collect(w, recorder, window->t_ns);
                return;
        }
        bool held = !job || !afz_sample_get_u64(job, AFZ_JOB_CPU, &cpu_ns) ||
                    afz_sample_or(job, AFZ_JOB_STOPPED, 0) > 0;
        if (!afz_witness_due(&w->due, window->t_ns, cpu_ns, step, held))
                return;
        w->looked_ns = window->t_ns;
        if (afz_witness_start(env, pids, living(window, pids, AFZ_WITNESS_PROCESSES), false,
                              &w->now) < 0)
                afz_witness_took(&w->due, 0); /* once is enough */
}

bool afz_scout_witness_picture(struct afz_scout_witness *w, const struct afz_env *env,
                               const struct afz_window *window, uint64_t t_ns, uint32_t number)
{
        pid_t pids[AFZ_WITNESS_PROCESSES];
        size_t n = living(window, pids, AFZ_WITNESS_PROCESSES);
        afz_witness_free(w->now);
        w->now = NULL;
        w->picture = 0;
        if (n == 0 || afz_witness_start(env, pids, n, true, &w->now) < 0)
                return false;
        w->picture = number;
        w->looked_ns = t_ns;
        return true;
}

bool afz_scout_witness_pictured(struct afz_scout_witness *w, struct afz_recorder *recorder,
                                uint64_t now_ns, bool last)
{
        struct telling telling = {.recorder = recorder, .t_ns = w->looked_ns};
        if (!w->now || !w->picture)
                return false;
        if (!afz_witness_ended(w->now, now_ns) && now_ns - w->looked_ns < PICTURE_NS && !last)
                return false;
        afz_witness_tell(w->now, record, &telling);
        afz_witness_free(w->now);
        w->now = NULL;
        w->picture = 0;
        return true;
}

void afz_scout_witness_done(struct afz_scout_witness *w)
{
        afz_witness_free(w->now);
        *w = (struct afz_scout_witness){.now = NULL};
}
