#include "window.h"

#include <string.h>

void afz_window_init(struct afz_window *window, uint64_t strip_step_ns)
{
        memset(window, 0, sizeof *window);
        for (int i = 0; i < AFZ_STRIP_COUNT; i++)
                afz_series_init(&window->strip[i], strip_step_ns);
}

const struct afz_sample *afz_window_next(const struct afz_window *window, enum afz_kind kind,
                                         size_t *cursor)
{
        size_t before = 0;
        for (size_t i = 0; i < window->sources; i++) {
                const struct afz_batch *b = window->source[i].now;
                if (!b)
                        continue;
                size_t from = *cursor > before ? *cursor - before : 0;
                /* With thousands of processes each walk past them would be felt. */
                for (size_t k = from; k < b->count && b->kinds >> kind & 1; k++) {
                        if (b->sample[k].subject.kind != kind)
                                continue;
                        *cursor = before + k + 1;
                        return &b->sample[k];
                }
                before += b->count;
        }
        *cursor = before;
        return NULL;
}

const struct afz_sample *afz_window_find(const struct afz_window *window, enum afz_kind kind,
                                         uint64_t id)
{
        size_t cursor = 0;
        const struct afz_sample *s;
        while ((s = afz_window_next(window, kind, &cursor)))
                if (s->subject.id == id)
                        return s;
        return NULL;
}

const struct afz_sample *afz_window_one(const struct afz_window *window, enum afz_kind kind)
{
        size_t cursor = 0;
        return afz_window_next(window, kind, &cursor);
}

/* The reading before of the same subject. Senses list their subjects in a steady order, so it is
 * mostly at the same place or a little before it. */
static const struct afz_sample *earlier(const struct afz_window *window,
                                        const struct afz_sample *sample)
{
        for (size_t i = 0; i < window->sources; i++) {
                const struct afz_batch *now = window->source[i].now;
                const struct afz_batch *b = window->source[i].before;
                if (!now || !b || sample < now->sample || sample >= now->sample + now->count)
                        continue;
                size_t at = (size_t)(sample - now->sample);
                for (size_t k = 0; k < b->count; k++) {
                        const struct afz_sample *s = &b->sample[(at + k) % b->count];
                        if (afz_subject_same(&s->subject, &sample->subject))
                                return s;
                }
                return NULL;
        }
        return NULL;
}

bool afz_window_rate(const struct afz_window *window, const struct afz_sample *sample,
                     enum afz_metric metric, double *ret)
{
        int64_t now, before;
        const struct afz_sample *old = sample ? earlier(window, sample) : NULL;
        if (!old || !afz_sample_get(sample, metric, &now) || !afz_sample_get(old, metric, &before))
                return false;
        if (sample->t_ns <= old->t_ns || now < before)
                return false;
        *ret = (double)(now - before) * 1e9 / (double)(sample->t_ns - old->t_ns);
        return true;
}

/* What a strip shows of the newest readings; false: a gap. */
static bool host_strip(const struct afz_window *w, enum afz_metric total, enum afz_metric rest,
                       int64_t *ret)
{
        const struct afz_sample *host = afz_window_one(w, AFZ_KIND_HOST);
        int64_t a, b;
        if (!host || !afz_sample_get(host, total, &a) || !afz_sample_get(host, rest, &b))
                return false;
        *ret = a - b;
        return true;
}

static bool rate_strip(const struct afz_window *w, enum afz_kind kind, enum afz_metric m,
                       int64_t *ret)
{
        double rate;
        if (!afz_window_rate(w, afz_window_one(w, kind), m, &rate))
                return false;
        *ret = (int64_t)(rate / 1e9 * 1e4); /* ns a second to permyriad */
        return true;
}

static bool cpu_busy_strip(const struct afz_window *w, int64_t *ret)
{
        const struct afz_sample *all = afz_window_find(w, AFZ_KIND_CPU, AFZ_CPU_ALL);
        double user, system, irq, idle, iowait;
        if (!afz_window_rate(w, all, AFZ_CPU_USER, &user) ||
            !afz_window_rate(w, all, AFZ_CPU_SYSTEM, &system) ||
            !afz_window_rate(w, all, AFZ_CPU_IRQ, &irq) ||
            !afz_window_rate(w, all, AFZ_CPU_IDLE, &idle) ||
            !afz_window_rate(w, all, AFZ_CPU_IOWAIT, &iowait))
                return false;
        double busy = user + system + irq, sum = busy + idle + iowait;
        if (sum <= 0)
                return false;
        *ret = (int64_t)(busy / sum * 1e4);
        return true;
}

static bool gpu_strip(const struct afz_window *w, enum afz_metric m, bool mean, int64_t *ret)
{
        int64_t sum = 0, v, n = 0;
        size_t cursor = 0;
        const struct afz_sample *s;
        while ((s = afz_window_next(w, AFZ_KIND_GPU, &cursor))) {
                /* A MIG instance's memory is already in its GPU's. */
                if (afz_sample_has(s, AFZ_GPU_PARENT) || !afz_sample_get(s, m, &v))
                        continue;
                sum += v;
                n++;
        }
        if (n == 0)
                return false;
        *ret = mean ? sum / n : sum;
        return true;
}

static bool strip_value(const struct afz_window *w, enum afz_strip strip, int64_t *ret)
{
        const struct afz_sample *job;
        switch (strip) {
        case AFZ_STRIP_RAM_USED:
                return host_strip(w, AFZ_HOST_MEM_TOTAL, AFZ_HOST_MEM_AVAILABLE, ret);
        case AFZ_STRIP_SWAP_USED:
                return host_strip(w, AFZ_HOST_SWAP_TOTAL, AFZ_HOST_SWAP_FREE, ret);
        case AFZ_STRIP_JOB_NEED:
                job = afz_window_one(w, AFZ_KIND_JOB);
                return job && afz_sample_get(job, AFZ_JOB_NEED, ret);
        case AFZ_STRIP_PSI_MEMORY:
                return rate_strip(w, AFZ_KIND_PSI, AFZ_PSI_MEMORY_SOME, ret);
        case AFZ_STRIP_PSI_IO:
                return rate_strip(w, AFZ_KIND_PSI, AFZ_PSI_IO_SOME, ret);
        case AFZ_STRIP_CPU_BUSY:
                return cpu_busy_strip(w, ret);
        case AFZ_STRIP_JOB_CPU:
                return rate_strip(w, AFZ_KIND_JOB, AFZ_JOB_CPU, ret);
        case AFZ_STRIP_GPU_MEM:
                return gpu_strip(w, AFZ_GPU_MEM_USED, false, ret);
        case AFZ_STRIP_GPU_UTIL:
                return gpu_strip(w, AFZ_GPU_UTIL, true, ret);
        case AFZ_STRIP_COUNT:
                break;
        }
        return false;
}

void afz_window_advance(struct afz_window *window, uint64_t t_ns)
{
        window->t_ns = t_ns;
        window->ticks++;
        for (int i = 0; i < AFZ_STRIP_COUNT; i++) {
                int64_t v;
                if (strip_value(window, (enum afz_strip)i, &v))
                        afz_series_add(&window->strip[i], t_ns, v);
        }
        for (size_t i = 0; i < window->sources; i++) {
                const struct afz_batch *b = window->source[i].now;
                if (!b || b->t_ns != t_ns)
                        continue;
                for (size_t k = 0; k < b->events; k++)
                        window->event[window->events++ % AFZ_WINDOW_EVENTS] = b->event[k];
        }
}
