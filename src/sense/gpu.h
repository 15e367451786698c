#ifndef AFZ_GPU_H
#define AFZ_GPU_H
/* What doctor, capture and the self-cost metric ask of the GPU sense beside its samples. `state` is
 * what afz_sense_gpu.open() gave. NULL is allowed everywhere and answers "nothing there".
 *
 * One env variable: ANTIFREEZE_NVML names the file that is loaded instead of libnvidia-ml.so.1. On
 * a fixture NVML is asked only when that variable is set: a recorded tree must not show the GPUs of
 * the machine that it is looked at on.
 */
#include <stdint.h>

#include "gpu_backend.h"
#include "out.h"

enum afz_gpu_state {
        AFZ_GPU_ABSENT,     /* no sign of an NVIDIA driver; no helper was started */
        AFZ_GPU_STARTING,   /* NVML has not answered yet */
        AFZ_GPU_OK,         /* values come */
        AFZ_GPU_NO_LIBRARY, /* a driver but no libnvidia-ml.so.1 */
        AFZ_GPU_NO_DEVICE,  /* NVML works and sees no GPU */
        AFZ_GPU_MISMATCH,   /* library and kernel module are of different versions */
        AFZ_GPU_FAILED,     /* NVML refused to start; `error` has its words */
        AFZ_GPU_STUCK,      /* a call into NVML does not return; `call` says which */
        AFZ_GPU_DIED,       /* the helper died, and again after every restart */
        AFZ_GPU_STATES
};

struct afz_gpu_status {
        enum afz_gpu_state state;
        char driver[AFZ_GPU_VERSION_CAP]; /* as NVML says it; "" while unknown, as all below */
        char nvml[AFZ_GPU_VERSION_CAP];
        char module[AFZ_GPU_VERSION_CAP]; /* of the kernel, from /proc/driver/nvidia/version */
        int cuda_version;                 /* 13000 is CUDA 13.0; 0 unknown */
        char error[AFZ_GPU_ERROR_CAP];    /* the driver's or loader's own words */
        const char *call;                 /* the NVML function that it is stuck in, or NULL */
        uint64_t stuck_ns;                /* for how long */
        unsigned restarts;                /* of the helper, so far */
        unsigned gpus;
        struct {
                char name[AFZ_GPU_NAME_CAP], uuid[AFZ_GPU_UUID_CAP], pci[AFZ_GPU_PCI_CAP];
        } gpu[AFZ_GPU_MAX];
};

/* NVIDIA's side as of the last read() or wait; never NULL. Borrowed, good until the next of those.
 */
const struct afz_gpu_status *afz_gpu_status(void *state);

/* Waits until read() can show values that were asked of the driver after this call, for commands
 * that look once. 0: it can, or it is settled that there will be none (see the status);
 * -ETIMEDOUT: not in time. With no NVIDIA GPU it returns 0 at once. */
int afz_gpu_wait_ready(void *state, uint64_t timeout_ns);

/* Processor time of all helper processes so far. */
uint64_t afz_gpu_helper_cpu_ns(void *state);

/* Writes the newest NVML snapshot as text, in the format that tests/fake_nvml reads; serial numbers
 * are masked. -ENODATA when there is none. Errors of writing stay in `out`. */
int afz_gpu_dump(void *state, struct afz_out *out);

#endif
