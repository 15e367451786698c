#include "gpu_facts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sample.h"
#include "sense.h"

static void add_gpu(struct afz_gpu_facts *facts, const struct afz_sample *s)
{
        int64_t total, used, n, unified = 0;
        if (facts->count == AFZ_GPU_MAX)
                return;
        struct afz_gpu_fact *gpu = &facts->gpu[facts->count++];
        *gpu = (struct afz_gpu_fact){.number = s->subject.id, .parent = -1};
        afz_span_copy(afz_span_str(s->name), gpu->name, sizeof gpu->name);
        afz_sample_get(s, AFZ_GPU_PARENT, &gpu->parent);
        afz_sample_get(s, AFZ_GPU_UNIFIED, &unified);
        if (!unified && afz_sample_get(s, AFZ_GPU_MEM_TOTAL, &total) &&
            afz_sample_get(s, AFZ_GPU_MEM_USED, &used) && total >= 0 && used >= 0) {
                gpu->has_memory = true;
                gpu->total_bytes = (uint64_t)total;
                gpu->used_bytes = (uint64_t)used;
        }
        if (afz_sample_get(s, AFZ_GPU_PROCESSES, &n) && n >= 0 && n <= UINT32_MAX) {
                gpu->has_processes = true;
                gpu->processes = (uint32_t)n;
        }
}

static bool is_running(const struct afz_env *env, uint64_t pid)
{
        char path[40];
        if (afz_path(path, sizeof path, "%llu/stat", (unsigned long long)pid) < 0)
                return false;
        int fd = afz_env_open(env, AFZ_ROOT_PROC, path, 0);
        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

static void add_process(const struct afz_env *env, struct afz_gpu_facts *facts,
                        const struct afz_sample *s)
{
        int64_t number, pid;
        if (!afz_sample_get(s, AFZ_GPU_PROC_GPU, &number))
                return;
        for (uint32_t i = 0; i < facts->count; i++) {
                struct afz_gpu_fact *gpu = &facts->gpu[i];
                if ((int64_t)gpu->number != number)
                        continue;
                if (afz_sample_get(s, AFZ_GPU_PROC_PID, &pid) && pid > 0 &&
                    !is_running(env, (uint64_t)pid)) {
                        gpu->unseen++;
                        gpu->unseen_pid = (uint64_t)pid;
                }
        }
}

static void fold(const struct afz_env *env, const struct afz_batch *batch,
                 struct afz_gpu_facts *facts)
{
        for (size_t i = 0; i < batch->count; i++)
                if (batch->sample[i].subject.kind == AFZ_KIND_GPU)
                        add_gpu(facts, &batch->sample[i]);
        for (size_t i = 0; i < batch->count; i++)
                if (batch->sample[i].subject.kind == AFZ_KIND_GPU_PROC)
                        add_process(env, facts, &batch->sample[i]);
}

int afz_gpu_facts_ask(const struct afz_env *env, uint64_t timeout_ns, struct afz_gpu_facts *ret)
{
        const struct afz_sense *sense = &afz_sense_gpu;
        const struct afz_target everyone = {0};
        struct afz_batch *batch;
        void *state = NULL;
        memset(ret, 0, sizeof *ret);
        int r = afz_batch_new(sense->max_samples, &batch);
        if (r < 0)
                return r;
        if (sense->open(env, &everyone, &state) >= 0) {
                ret->late = afz_gpu_wait_ready(state, timeout_ns) == -ETIMEDOUT;
                afz_batch_start(batch, afz_env_now(env));
                if (sense->read(state, batch) >= 0)
                        fold(env, batch, ret);
                ret->nvidia = *afz_gpu_status(state);
                sense->close(state);
        }
        afz_batch_free(batch);
        return 0;
}
