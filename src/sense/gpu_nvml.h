#ifndef AFZ_GPU_NVML_H
#define AFZ_GPU_NVML_H
/* Our side of the NVIDIA backend: it looks at what the helper published and at how the helper
 * fares, and never calls NVML. gpu.h says what the questions below mean; `state` is what
 * afz_gpu_nvidia.open() gave, not NULL.
 */
#include "gpu.h"

const struct afz_gpu_status *afz_gpu_nvml_status(void *state);
int afz_gpu_nvml_wait(void *state, uint64_t timeout_ns);
uint64_t afz_gpu_nvml_cpu_ns(void *state);
int afz_gpu_nvml_dump(void *state, struct afz_out *out);

/* The newest snapshot, stale or not; NULL when there is none. */
const struct afz_gpu_snapshot *afz_gpu_nvml_snapshot(void *state);

#endif
