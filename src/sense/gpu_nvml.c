#include "gpu_nvml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "count_of.h"
#include "dir.h"
#include "gpu_helper.h"
#include "gpu_nvml_poll.h"

struct nvidia {
        const struct afz_env *env;
        struct afz_gpu_helper helper;
        struct afz_gpu_report report, draft; /* the newest whole one; the copy under way */
        struct afz_gpu_status status;
        uint32_t seq;         /* of `report`; 0: none yet */
        uint64_t events_seen; /* of `report.event` */
        bool stuck_told;
};

/* A driver shows in one of these; /dev/dxg is WSL's, the last two are Jetson's. */
static const struct {
        enum afz_root root;
        const char *path;
} signs[] = {
        {AFZ_ROOT_PROC, "driver/nvidia/version"},
        {AFZ_ROOT_DEV, "nvidiactl"},
        {AFZ_ROOT_DEV, "dxg"},
        {AFZ_ROOT_DEV, "nvhost-ctrl-gpu"},
        {AFZ_ROOT_DEV, "nvgpu"},
};

/* Looking must not open a device: that alone can load a driver or wake a GPU. */
static bool is_there(const struct afz_env *env, enum afz_root root, const char *path)
{
        return env->root_fd[root] >= 0 && faccessat(env->root_fd[root], path, F_OK, 0) == 0;
}

static bool seems_present(const struct afz_env *env)
{
        if (getenv("ANTIFREEZE_NVML"))
                return true;
        if (env->fixture_fd >= 0)
                return false;
        for (size_t i = 0; i < AFZ_COUNT_OF(signs); i++)
                if (is_there(env, signs[i].root, signs[i].path))
                        return true;
        return false;
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Wed ...": the first word that is
 * made of digits and points. The open modules say "... Open Kernel Module for x86_64  580...". */
static void read_module_version(const struct afz_env *env, char *ret, size_t cap)
{
        char buf[1024];
        struct afz_span text, line, word;
        if (afz_env_read(env, AFZ_ROOT_PROC, "driver/nvidia/version", buf, sizeof buf, &text) < 0 ||
            afz_span_take_line(&text, &line) < 0)
                return;
        while (afz_span_take_word(&line, &word) == 0) {
                size_t digits = 0, points = 0;
                for (size_t i = 0; i < word.n; i++) {
                        digits += afz_is_digit(word.p[i]);
                        points += word.p[i] == '.';
                }
                if (points > 0 && digits > 0 && digits + points == word.n) {
                        afz_span_copy(word, ret, cap);
                        return;
                }
        }
}

static unsigned count_gpus(const struct afz_env *env)
{
        struct afz_dir dir;
        unsigned count = 0;
        int r = afz_dir_open(&dir, env, AFZ_ROOT_PROC, "driver/nvidia/gpus");
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0)
                count++;
        afz_dir_close(&dir);
        return count < AFZ_GPU_MAX ? count : AFZ_GPU_MAX;
}

static int nvidia_open(const struct afz_env *env, void **ret_state, unsigned *ret_gpus)
{
        if (!seems_present(env))
                return -ENODATA;
        struct nvidia *n = calloc(1, sizeof *n);
        if (!n)
                return -ENOMEM;
        n->env = env;
        n->status.state = AFZ_GPU_STARTING;
        read_module_version(env, n->status.module, sizeof n->status.module);
        int r = afz_gpu_helper_start(&n->helper, env, afz_nvml_helper, AFZ_GPU_POLL_NS);
        if (r < 0) {
                free(n);
                return r;
        }
        *ret_gpus = count_gpus(env);
        *ret_state = n;
        return 0;
}

static void nvidia_close(void *state)
{
        struct nvidia *n = state;
        if (!n)
                return;
        afz_gpu_helper_stop(&n->helper);
        free(n);
}

static void take_report(struct nvidia *n)
{
        if (!afz_gpu_shared_take(n->helper.shared, &n->seq, &n->draft))
                return;
        n->report = n->draft;
        struct afz_gpu_status *s = &n->status;
        memcpy(s->driver, n->report.driver, sizeof s->driver);
        memcpy(s->nvml, n->report.nvml, sizeof s->nvml);
        memcpy(s->error, n->report.error, sizeof s->error);
        s->cuda_version = n->report.cuda_version;
        s->gpus = n->report.snapshot.gpus;
        for (unsigned i = 0; i < s->gpus; i++) {
                const struct afz_gpu_row *row = &n->report.snapshot.gpu[i];
                memcpy(s->gpu[i].name, row->name, sizeof row->name);
                memcpy(s->gpu[i].uuid, row->uuid, sizeof row->uuid);
                memcpy(s->gpu[i].pci, row->pci, sizeof row->pci);
        }
}

/* How the helper fares, in n->status. A helper that was started again has told nothing yet. */
static void update_status(struct nvidia *n, uint64_t now_ns)
{
        struct afz_gpu_status *s = &n->status;
        unsigned before = n->helper.restarts;
        enum afz_gpu_life life = afz_gpu_helper_tend(&n->helper, now_ns);
        if (n->helper.restarts != before) {
                n->seq = 0;
                n->events_seen = 0;
                n->report.state = AFZ_GPU_STARTING;
                n->report.events = 0;
        }
        take_report(n);
        uint32_t call = 0;
        s->restarts = n->helper.restarts;
        s->stuck_ns = afz_gpu_helper_stuck_ns(&n->helper, now_ns, &call);
        s->call = s->stuck_ns >= AFZ_GPU_STUCK_NS ? afz_nvml_fn_name(call) : NULL;
        s->state = n->seq ? (enum afz_gpu_state)n->report.state : AFZ_GPU_STARTING;
        if (s->call)
                s->state = AFZ_GPU_STUCK;
        else if (life == AFZ_GPU_LIFE_GAVE_UP)
                s->state = AFZ_GPU_DIED;
        else if (life == AFZ_GPU_LIFE_DEAD)
                s->state = AFZ_GPU_STARTING;
        if (s->state == AFZ_GPU_DIED)
                snprintf(s->error, sizeof s->error,
                         "the process that asks NVML died %u times; it is not started again",
                         n->helper.restarts + 1);
}

static void tell_stuck(struct nvidia *n, struct afz_batch *events)
{
        const struct afz_gpu_status *s = &n->status;
        if (s->state != AFZ_GPU_STUCK) {
                n->stuck_told = false;
                return;
        }
        if (n->stuck_told)
                return;
        n->stuck_told = true;
        char text[128];
        int64_t seconds = (int64_t)(s->stuck_ns / 1000000000U);
        int len = snprintf(text, sizeof text, "the GPU driver has not answered %s for %lld s",
                           s->call, (long long)seconds);
        afz_batch_event(events, AFZ_EVENT_GPU_STUCK, seconds, text, (size_t)len);
}

static void tell_events(struct nvidia *n, struct afz_batch *events)
{
        const struct afz_gpu_report *r = &n->report;
        if (r->events > n->events_seen + AFZ_GPU_EVENT_RING) {
                events->dropped += r->events - AFZ_GPU_EVENT_RING - n->events_seen;
                n->events_seen = r->events - AFZ_GPU_EVENT_RING;
        }
        for (; n->events_seen < r->events; n->events_seen++) {
                const struct afz_gpu_event *e = &r->event[n->events_seen % AFZ_GPU_EVENT_RING];
                char text[160];
                const char *name = e->gpu < r->snapshot.gpus ? r->snapshot.gpu[e->gpu].name : "";
                int len = e->kind == AFZ_EVENT_XID
                                  ? snprintf(text, sizeof text, "GPU %u (%.96s): Xid %lld", e->gpu,
                                             name, (long long)e->code)
                                  : snprintf(text, sizeof text, "GPU %u (%.96s) is lost", e->gpu,
                                             name);
                afz_batch_event(events, (enum afz_event_kind)e->kind, e->code, text, (size_t)len);
        }
}

static void append(const struct afz_gpu_snapshot *from, struct afz_gpu_snapshot *into)
{
        for (uint32_t i = 0; i < from->gpus; i++) {
                struct afz_gpu_row *row = afz_gpu_add(into, from->gpu[i].number);
                if (row)
                        *row = from->gpu[i];
        }
        for (uint32_t i = 0; i < from->procs; i++)
                afz_gpu_add_proc(into, from->proc[i].gpu, from->proc[i].pid,
                                 from->proc[i].mem_bytes, false);
        into->dropped += from->dropped;
}

static int nvidia_poll(void *state, uint64_t now_ns, struct afz_gpu_snapshot *into,
                       struct afz_batch *events)
{
        struct nvidia *n = state;
        update_status(n, now_ns);
        tell_stuck(n, events);
        tell_events(n, events);
        const struct afz_gpu_snapshot *s = &n->report.snapshot;
        bool fresh = now_ns < s->t_ns || now_ns - s->t_ns <= AFZ_GPU_STALE_NS;
        if (n->seq && fresh && n->status.state != AFZ_GPU_DIED)
                append(s, into);
        switch (n->status.state) {
        case AFZ_GPU_NO_LIBRARY:
        case AFZ_GPU_NO_DEVICE:
                return -ENODATA;
        case AFZ_GPU_MISMATCH:
        case AFZ_GPU_FAILED:
        case AFZ_GPU_DIED:
                return -EIO;
        case AFZ_GPU_STARTING:
                /* After a restart the old values must go, so that it is news then. */
                return n->helper.restarts == 0 ? -EAGAIN : 0;
        default:
                return 0;
        }
}

const struct afz_gpu_backend afz_gpu_nvidia = {
        .name = "nvidia",
        .open = nvidia_open,
        .poll = nvidia_poll,
        .close = nvidia_close,
};

const struct afz_gpu_status *afz_gpu_nvml_status(void *state)
{
        struct nvidia *n = state;
        return &n->status;
}

int afz_gpu_nvml_wait(void *state, uint64_t timeout_ns)
{
        struct nvidia *n = state;
        int r = afz_gpu_helper_wait(&n->helper, timeout_ns);
        update_status(n, afz_env_now(n->env));
        return r;
}

uint64_t afz_gpu_nvml_cpu_ns(void *state)
{
        struct nvidia *n = state;
        return afz_gpu_helper_cpu(&n->helper);
}

const struct afz_gpu_snapshot *afz_gpu_nvml_snapshot(void *state)
{
        struct nvidia *n = state;
        return n->seq && n->report.snapshot.gpus > 0 ? &n->report.snapshot : NULL;
}
