#include <string.h>

#include "gpu_backend.h"

struct afz_gpu_row *afz_gpu_add(struct afz_gpu_snapshot *s, uint32_t number)
{
        if (s->gpus == AFZ_GPU_MAX) {
                s->dropped++;
                return NULL;
        }
        struct afz_gpu_row *row = &s->gpu[s->gpus++];
        *row = (struct afz_gpu_row){.number = number};
        return row;
}

static int64_t merge(int64_t a, int64_t b, bool sum)
{
        if (a < 0 || b < 0)
                return a < 0 ? b : a;
        int64_t total;
        if (sum && !__builtin_add_overflow(a, b, &total))
                return total;
        return a > b ? a : b;
}

void afz_gpu_add_proc(struct afz_gpu_snapshot *s, uint32_t gpu, uint32_t pid, int64_t mem_bytes,
                      bool sum)
{
        for (uint32_t i = s->first_proc; i < s->procs; i++) {
                struct afz_gpu_proc_row *row = &s->proc[i];
                if (row->gpu == gpu && row->pid == pid) {
                        row->mem_bytes = merge(row->mem_bytes, mem_bytes, sum);
                        return;
                }
        }
        if (s->procs == AFZ_GPU_PROC_MAX) {
                s->dropped++;
                return;
        }
        s->proc[s->procs++] =
                (struct afz_gpu_proc_row){.gpu = gpu, .pid = pid, .mem_bytes = mem_bytes};
}

uint32_t afz_gpu_count_procs(const struct afz_gpu_snapshot *s, uint32_t gpu)
{
        uint32_t count = 0;
        for (uint32_t i = s->first_proc; i < s->procs; i++)
                count += s->proc[i].gpu == gpu;
        return count;
}
