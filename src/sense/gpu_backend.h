#ifndef AFZ_GPU_BACKEND_H
#define AFZ_GPU_BACKEND_H
/* One vtable for all makers of GPUs, and the plain rows that they fill. gpu.c merges the rows of
 * all backends into one batch: a backend numbers its own GPUs from 0 and knows nothing of others.
 *
 * Rows hold no pointers, so that they can cross a shared memory region. As in samples, absent is
 * not zero: a value counts only where its validity bit is set.
 */
#include <stdbool.h>
#include <stdint.h>

#include "env.h"
#include "sample.h"

enum {
        AFZ_GPU_MAX = 64,       /* GPUs and MIG instances; 16 GPUs of 7 instances are not sold */
        AFZ_GPU_PROC_MAX = 256, /* processes on all of them; more are counted as dropped */
        AFZ_GPU_NAME_CAP = 96,  /* NVML's own limits, each with the NUL */
        AFZ_GPU_UUID_CAP = 96,
        AFZ_GPU_PCI_CAP = 32,
        AFZ_GPU_VERSION_CAP = 80,
        AFZ_GPU_ERROR_CAP = 160,
        AFZ_GPU_COMM_CAP = 32, /* the kernel gives 15 bytes, kernel threads a little more */
};

#define AFZ_GPU_ONE_(...) +1
enum { AFZ_GPU_VALUES = 0 AFZ_GPU_METRICS(AFZ_GPU_ONE_) };

struct afz_gpu_row {
        uint32_t number;
        uint32_t is_part; /* a MIG instance: AFZ_GPU_PARENT has the number of its GPU */
        uint64_t present;
        int64_t value[AFZ_GPU_VALUES];
        char name[AFZ_GPU_NAME_CAP], uuid[AFZ_GPU_UUID_CAP], pci[AFZ_GPU_PCI_CAP];
};

struct afz_gpu_proc_row {
        uint32_t gpu, pid;
        int64_t mem_bytes; /* -1: unknown */
        char comm[AFZ_GPU_COMM_CAP];
};

struct afz_gpu_snapshot {
        uint64_t t_ns;
        uint64_t dropped; /* rows that found no room in this snapshot */
        uint32_t gpus, procs;
        uint32_t first_gpu, first_proc; /* rows before these belong to other backends */
        struct afz_gpu_row gpu[AFZ_GPU_MAX];
        struct afz_gpu_proc_row proc[AFZ_GPU_PROC_MAX];
};

struct afz_gpu_backend {
        const char *name; /* "nvidia" */
        /* -ENODATA: no GPU of this make here. Otherwise as a sense's open(). `ret_gpus` is how many
         * GPUs are there for certain (there may prove to be more), which keeps the numbers of the
         * backends behind it steady from the start. */
        int (*open)(const struct afz_env *env, void **ret_state, unsigned *ret_gpus);
        /* Appends its rows to `into` and its events to `events`. Never blocks, never allocates. 0,
         * or why there is nothing. */
        int (*poll)(void *state, uint64_t now_ns, struct afz_gpu_snapshot *into,
                    struct afz_batch *events);
        void (*close)(void *state);
};

extern const struct afz_gpu_backend afz_gpu_nvidia, afz_gpu_amd, afz_gpu_intel;

/* A new row with nothing present, or NULL when there is no room (which is counted). */
struct afz_gpu_row *afz_gpu_add(struct afz_gpu_snapshot *snapshot, uint32_t number);

/* Memory of a process on a GPU. A process that is known already keeps one row: with `sum` the
 * amounts are added up (parts), else the larger one stands (the same memory told twice). */
void afz_gpu_add_proc(struct afz_gpu_snapshot *snapshot, uint32_t gpu, uint32_t pid,
                      int64_t mem_bytes, bool sum);

/* How many process rows the backend's GPU has. */
uint32_t afz_gpu_count_procs(const struct afz_gpu_snapshot *snapshot, uint32_t gpu);

static inline void afz_gpu_set(struct afz_gpu_row *row, enum afz_metric m, uint64_t value)
{
        if (value > INT64_MAX)
                return;
        row->value[afz_metric_index(m)] = (int64_t)value;
        row->present |= UINT64_C(1) << afz_metric_index(m);
}

static inline bool afz_gpu_get(const struct afz_gpu_row *row, enum afz_metric m, int64_t *ret)
{
        if (!(row->present >> afz_metric_index(m) & 1))
                return false;
        *ret = row->value[afz_metric_index(m)];
        return true;
}

#endif
