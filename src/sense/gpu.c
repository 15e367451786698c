/* The GPU sense: asks every backend and makes one batch of what they say. */
#include "gpu.h"

#include <errno.h>
#include <stdlib.h>

#include "count_of.h"
#include "gpu_nvml.h"
#include "sense.h"

/* In the order of their numbers: NVIDIA first, so that its numbers are those of nvidia-smi. */
static const struct afz_gpu_backend *const backends[] = {&afz_gpu_nvidia, &afz_gpu_amd,
                                                         &afz_gpu_intel};
enum { BACKENDS = AFZ_COUNT_OF(backends), NVIDIA = 0 };

struct gpu_sense {
        const struct afz_env *env;
        void *state[BACKENDS];         /* NULL: none of this make here */
        uint32_t reserved[BACKENDS];   /* the most GPUs it ever had: its share of the numbers */
        struct afz_gpu_snapshot at[2]; /* by turns: the texts of the last reading stay alive */
        unsigned turn;
};

static void gpu_close(void *state)
{
        struct gpu_sense *g = state;
        if (!g)
                return;
        for (int i = 0; i < BACKENDS; i++)
                if (g->state[i])
                        backends[i]->close(g->state[i]);
        free(g);
}

static int gpu_open(const struct afz_env *env, const struct afz_target *target, void **ret_state)
{
        (void)target;
        struct gpu_sense *g = calloc(1, sizeof *g);
        if (!g)
                return -ENOMEM;
        g->env = env;
        int result = -ENODATA;
        for (int i = 0; i < BACKENDS; i++) {
                int r = backends[i]->open(env, &g->state[i], &g->reserved[i]);
                if (r == 0)
                        result = 0;
                else if (r != -ENODATA && result == -ENODATA)
                        result = r;
        }
        if (result < 0) {
                gpu_close(g);
                return result;
        }
        *ret_state = g;
        return 0;
}

/* Gives the rows that a backend has just added their numbers among all GPUs. */
static void renumber(struct afz_gpu_snapshot *s, uint32_t base)
{
        for (uint32_t i = s->first_gpu; i < s->gpus; i++) {
                struct afz_gpu_row *row = &s->gpu[i];
                int64_t parent;
                row->number += base;
                if (afz_gpu_get(row, AFZ_GPU_PARENT, &parent))
                        afz_gpu_set(row, AFZ_GPU_PARENT, (uint64_t)parent + base);
        }
        for (uint32_t i = s->first_proc; i < s->procs; i++)
                s->proc[i].gpu += base;
}

static int poll_all(struct gpu_sense *g, struct afz_gpu_snapshot *s, struct afz_batch *out)
{
        uint64_t now = afz_env_now(g->env);
        uint32_t base = 0;
        int result = -ENODATA;
        s->gpus = s->procs = 0;
        s->dropped = 0;
        for (int i = 0; i < BACKENDS; i++) {
                if (!g->state[i])
                        continue;
                s->first_gpu = s->gpus;
                s->first_proc = s->procs;
                int r = backends[i]->poll(g->state[i], now, s, out);
                if (r == 0 || result == -ENODATA)
                        result = r;
                uint32_t count = s->gpus - s->first_gpu;
                if (count > g->reserved[i])
                        g->reserved[i] = count;
                renumber(s, base);
                base += g->reserved[i];
        }
        return s->gpus > 0 || out->events > 0 ? 0 : result;
}

static void read_comm(const struct afz_env *env, struct afz_gpu_proc_row *row)
{
        char path[32], buf[64];
        struct afz_span text, line;
        afz_path(path, sizeof path, "%u/comm", row->pid);
        /* A name may hold newlines; the last one is the kernel's. */
        if (afz_env_read(env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) == 0 && text.n > 1) {
                line = (struct afz_span){text.p, text.n - 1};
                afz_span_copy(line, row->comm, sizeof row->comm);
        }
}

static void add_gpu(const struct afz_gpu_row *row, struct afz_batch *out)
{
        struct afz_subject subject = {.kind = AFZ_KIND_GPU, .id = row->number};
        struct afz_sample *s = afz_batch_add(out, subject, row->name[0] ? row->name : "GPU");
        if (!s)
                return;
        s->detail = row->uuid[0] ? row->uuid : row->pci[0] ? row->pci : NULL;
        s->present = row->present;
        for (unsigned i = 0; i < AFZ_GPU_VALUES; i++)
                s->value[i] = row->value[i];
}

static void add_proc(const struct afz_env *env, struct afz_gpu_proc_row *row, struct afz_batch *out)
{
        struct afz_subject subject = {.kind = AFZ_KIND_GPU_PROC,
                                      .id = (uint64_t)row->gpu << 32 | row->pid};
        read_comm(env, row);
        struct afz_sample *s = afz_batch_add(out, subject, row->comm[0] ? row->comm : "?");
        if (!s)
                return;
        afz_sample_set(s, AFZ_GPU_PROC_PID, row->pid);
        afz_sample_set(s, AFZ_GPU_PROC_GPU, row->gpu);
        if (row->mem_bytes >= 0)
                afz_sample_set(s, AFZ_GPU_PROC_MEM, row->mem_bytes);
}

static int gpu_read(void *state, struct afz_batch *out)
{
        struct gpu_sense *g = state;
        struct afz_gpu_snapshot *s = &g->at[g->turn ^= 1];
        int r = poll_all(g, s, out);
        for (uint32_t i = 0; i < s->gpus; i++)
                add_gpu(&s->gpu[i], out);
        for (uint32_t i = 0; i < s->procs; i++)
                add_proc(g->env, &s->proc[i], out);
        out->dropped += s->dropped;
        return r;
}

const struct afz_sense afz_sense_gpu = {
        .name = "gpu",
        .what = "GPUs and the processes on them",
        .every_ns = 500000000, /* as often as the helper asks NVML */
        .max_samples = AFZ_GPU_MAX + AFZ_GPU_PROC_MAX,
        .absent = "no GPU with a driver that tells about it was found (NVIDIA's libnvidia-ml.so.1, "
                  "amdgpu, i915 or xe); if there is one, install its driver",
        .open = gpu_open,
        .read = gpu_read,
        .close = gpu_close,
};

/* ---- what others ask (gpu.h) ---- */

static void *nvidia_of(void *state)
{
        struct gpu_sense *g = state;
        return g ? g->state[NVIDIA] : NULL;
}

const struct afz_gpu_status *afz_gpu_status(void *state)
{
        static const struct afz_gpu_status absent = {.state = AFZ_GPU_ABSENT};
        void *nvidia = nvidia_of(state);
        return nvidia ? afz_gpu_nvml_status(nvidia) : &absent;
}

int afz_gpu_wait_ready(void *state, uint64_t timeout_ns)
{
        void *nvidia = nvidia_of(state);
        return nvidia ? afz_gpu_nvml_wait(nvidia, timeout_ns) : 0;
}

uint64_t afz_gpu_helper_cpu_ns(void *state)
{
        void *nvidia = nvidia_of(state);
        return nvidia ? afz_gpu_nvml_cpu_ns(nvidia) : 0;
}

int afz_gpu_dump(void *state, struct afz_out *out)
{
        void *nvidia = nvidia_of(state);
        return nvidia ? afz_gpu_nvml_dump(nvidia, out) : -ENODATA;
}
