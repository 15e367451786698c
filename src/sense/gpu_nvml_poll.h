#ifndef AFZ_GPU_NVML_POLL_H
#define AFZ_GPU_NVML_POLL_H
/* The code that runs inside the NVIDIA helper: every call into NVML is made here and nowhere else.
 * It may block and allocate as it likes. Each call is announced in the shared region first, so that
 * our side sees where it hangs.
 */
#include <stdbool.h>
#include <stdint.h>

#include "gpu_helper.h"
#include "gpu_nvml_api.h"

/* A list of processes as one function of NVML gives it. */
enum { AFZ_NVML_LIST_CAP = 1024, AFZ_NVML_STRIDE_MAX = 32 };

struct afz_nvml_dev {
        nvmlDevice_t handle;
        int parent; /* -1, or the index of the GPU that it is an instance of */
        bool lost;
        bool has_parts;         /* MIG instances tell their processes themselves */
        struct afz_gpu_row row; /* facts and slow values are kept in it from poll to poll */
};

struct afz_nvml_poller {
        struct afz_gpu_link *link;
        struct afz_nvml_api api;
        nvmlEventSet_t events; /* NULL: not offered */
        unsigned gpus, devs;   /* devs[0..gpus) are GPUs, the rest MIG instances */
        uint64_t polls;
        struct afz_nvml_dev dev[AFZ_GPU_MAX];
        struct afz_gpu_report report;
        unsigned char list[AFZ_NVML_LIST_CAP * AFZ_NVML_STRIDE_MAX + 8];
};

/* Calls a function of NVML and gives its result; NVML_ERROR_FUNCTION_NOT_FOUND where the library
 * lacks it. */
#define AFZ_NVML(poller, name, ...)                                                                \
        ((poller)->api.fn[AFZ_FN_##name]                                                           \
                 ? (afz_gpu_link_enter((poller)->link, AFZ_FN_##name),                             \
                    afz_nvml_leave(poller, ((afz_sig_##name *)(poller)->api.fn[AFZ_FN_##name])(    \
                                                   __VA_ARGS__)))                                  \
                 : NVML_ERROR_FUNCTION_NOT_FOUND)

static inline int afz_nvml_leave(struct afz_nvml_poller *poller, int result)
{
        afz_gpu_link_leave(poller->link);
        return result;
}

/* The whole life of the helper. */
afz_gpu_helper_main afz_nvml_helper;

/* One poll into poller->report.snapshot. */
void afz_nvml_poll(struct afz_nvml_poller *poller);

/* Finds the GPUs and what never changes about them. An NVML result. */
int afz_nvml_find(struct afz_nvml_poller *poller);

/* The processes on one device, appended to the snapshot. */
void afz_nvml_poll_procs(struct afz_nvml_poller *poller, unsigned dev);

/* Which distance between entries a list has: `end` is how many bytes of the buffer were written for
 * `count` entries, with room for `cap`; 0 when no known layout explains it. Pure. */
unsigned afz_nvml_stride(size_t end, unsigned count, unsigned cap);

void afz_nvml_event(struct afz_nvml_poller *poller, enum afz_event_kind kind, unsigned gpu,
                    int64_t code);

#endif
