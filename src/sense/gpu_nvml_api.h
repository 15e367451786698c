#ifndef AFZ_GPU_NVML_API_H
#define AFZ_GPU_NVML_API_H
/* The part of NVIDIA's management library that we use: its types, constants and functions, declared
 * here from the public reference so that nothing of NVIDIA's is needed to build. The library is
 * loaded at run time; a function that it lacks is a NULL, and what it would have told stays absent.
 *
 * Names that begin with nvml are NVIDIA's own, so that they can be looked up.
 */
#include <stddef.h>

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;

enum {
        NVML_SUCCESS = 0,
        NVML_ERROR_NOT_SUPPORTED = 3,
        NVML_ERROR_NO_PERMISSION = 4,
        NVML_ERROR_NOT_FOUND = 6,
        NVML_ERROR_INSUFFICIENT_SIZE = 7,
        NVML_ERROR_DRIVER_NOT_LOADED = 9,
        NVML_ERROR_TIMEOUT = 10,
        NVML_ERROR_FUNCTION_NOT_FOUND = 13,
        NVML_ERROR_GPU_IS_LOST = 15,
        NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
        NVML_ERROR_UNKNOWN = 999,
};

enum {
        NVML_TEMPERATURE_GPU = 0,
        NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
        NVML_CLOCK_SM = 1,
        NVML_CLOCK_MEM = 2,
        NVML_MEMORY_ERROR_TYPE_CORRECTED = 0,
        NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1,
        NVML_VOLATILE_ECC = 0,
        NVML_PCIE_UTIL_TX_BYTES = 0,
        NVML_PCIE_UTIL_RX_BYTES = 1,
};

#define NVML_EVENT_XID 0x8ULL

/* A value that the driver does not know. */
#define NVML_VALUE_UNKNOWN (~0ULL)

struct nvml_memory_v1 {
        unsigned long long total, free, used; /* used has the reserved in it */
};

struct nvml_memory_v2 {
        unsigned version;
        unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY_V2 ((unsigned)sizeof(struct nvml_memory_v2) | 2U << 24)

struct nvml_utilization {
        unsigned gpu, memory; /* per cent */
};

struct nvml_pci_info {
        char bus_id_legacy[16];
        unsigned domain, bus, device, device_id, subsystem_id;
        char bus_id[32];
};

struct nvml_event_data {
        nvmlDevice_t device;
        unsigned long long type, data;
        unsigned gpu_instance, compute_instance; /* since _v2 */
};

/* An entry of a list of processes begins like this in every version; what follows, and so the
 * distance to the next entry, differs: 16 bytes in v1, 24 in v2 (two instance numbers more), 32
 * in the v3 of some drivers of the 535 series. gpu_nvml_procs.c finds out which it is. */
struct nvml_process_head {
        unsigned pid;
        unsigned long long used_memory;
};

/* X(name, parameters). All return an nvmlReturn_t but the last, which is on its own below. */
#define AFZ_NVML_FUNCTIONS(X)                                                                      \
        X(nvmlInit_v2, (void))                                                                     \
        X(nvmlInit, (void))                                                                        \
        X(nvmlShutdown, (void))                                                                    \
        X(nvmlSystemGetDriverVersion, (char *, unsigned))                                          \
        X(nvmlSystemGetNVMLVersion, (char *, unsigned))                                            \
        X(nvmlSystemGetCudaDriverVersion_v2, (int *))                                              \
        X(nvmlSystemGetCudaDriverVersion, (int *))                                                 \
        X(nvmlDeviceGetCount_v2, (unsigned *))                                                     \
        X(nvmlDeviceGetHandleByIndex_v2, (unsigned, nvmlDevice_t *))                               \
        X(nvmlDeviceGetName, (nvmlDevice_t, char *, unsigned))                                     \
        X(nvmlDeviceGetUUID, (nvmlDevice_t, char *, unsigned))                                     \
        X(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t, struct nvml_pci_info *))                         \
        X(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t, struct nvml_memory_v2 *))                     \
        X(nvmlDeviceGetMemoryInfo, (nvmlDevice_t, struct nvml_memory_v1 *))                        \
        X(nvmlDeviceGetUtilizationRates, (nvmlDevice_t, struct nvml_utilization *))                \
        X(nvmlDeviceGetTemperature, (nvmlDevice_t, int, unsigned *))                               \
        X(nvmlDeviceGetTemperatureThreshold, (nvmlDevice_t, int, unsigned *))                      \
        X(nvmlDeviceGetPowerUsage, (nvmlDevice_t, unsigned *))                                     \
        X(nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t, unsigned *))                             \
        X(nvmlDeviceGetFanSpeed, (nvmlDevice_t, unsigned *))                                       \
        X(nvmlDeviceGetClockInfo, (nvmlDevice_t, int, unsigned *))                                 \
        X(nvmlDeviceGetMaxClockInfo, (nvmlDevice_t, int, unsigned *))                              \
        X(nvmlDeviceGetCurrentClocksEventReasons, (nvmlDevice_t, unsigned long long *))            \
        X(nvmlDeviceGetCurrentClocksThrottleReasons, (nvmlDevice_t, unsigned long long *))         \
        X(nvmlDeviceGetTotalEccErrors, (nvmlDevice_t, int, int, unsigned long long *))             \
        X(nvmlDeviceGetPcieThroughput, (nvmlDevice_t, int, unsigned *))                            \
        X(nvmlDeviceGetCurrPcieLinkGeneration, (nvmlDevice_t, unsigned *))                         \
        X(nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice_t, unsigned *))                              \
        X(nvmlDeviceGetPcieReplayCounter, (nvmlDevice_t, unsigned *))                              \
        X(nvmlDeviceGetMaxMigDeviceCount, (nvmlDevice_t, unsigned *))                              \
        X(nvmlDeviceGetMigDeviceHandleByIndex, (nvmlDevice_t, unsigned, nvmlDevice_t *))           \
        X(nvmlEventSetCreate, (nvmlEventSet_t *))                                                  \
        X(nvmlDeviceRegisterEvents, (nvmlDevice_t, unsigned long long, nvmlEventSet_t))            \
        X(nvmlEventSetWait_v2, (nvmlEventSet_t, struct nvml_event_data *, unsigned))               \
        X(nvmlEventSetWait, (nvmlEventSet_t, struct nvml_event_data *, unsigned))                  \
        X(nvmlDeviceGetComputeRunningProcesses_v3, (nvmlDevice_t, unsigned *, void *))             \
        X(nvmlDeviceGetComputeRunningProcesses_v2, (nvmlDevice_t, unsigned *, void *))             \
        X(nvmlDeviceGetComputeRunningProcesses, (nvmlDevice_t, unsigned *, void *))                \
        X(nvmlDeviceGetGraphicsRunningProcesses_v3, (nvmlDevice_t, unsigned *, void *))            \
        X(nvmlDeviceGetGraphicsRunningProcesses_v2, (nvmlDevice_t, unsigned *, void *))            \
        X(nvmlDeviceGetGraphicsRunningProcesses, (nvmlDevice_t, unsigned *, void *))               \
        X(nvmlDeviceGetMPSComputeRunningProcesses_v3, (nvmlDevice_t, unsigned *, void *))          \
        X(nvmlDeviceGetMPSComputeRunningProcesses_v2, (nvmlDevice_t, unsigned *, void *))          \
        X(nvmlDeviceGetMPSComputeRunningProcesses, (nvmlDevice_t, unsigned *, void *))

#define AFZ_NVML_ENUM_(name, args)    AFZ_FN_##name,
#define AFZ_NVML_TYPEDEF_(name, args) typedef int afz_sig_##name args;

/* The functions' numbers. AFZ_FN_LOAD stands for loading the library, which can block as well. */
enum afz_nvml_fn { AFZ_FN_LOAD, AFZ_NVML_FUNCTIONS(AFZ_NVML_ENUM_) AFZ_FN_COUNT };

AFZ_NVML_FUNCTIONS(AFZ_NVML_TYPEDEF_)
typedef const char *afz_sig_nvmlErrorString(int);

struct afz_nvml_api {
        void (*fn[AFZ_FN_COUNT])(void); /* NULL where the library has no such function */
        afz_sig_nvmlErrorString *error_string;
};

/* "nvmlInit_v2", ...; never NULL. */
const char *afz_nvml_fn_name(unsigned fn);

/* Loads the library: `file` or, when NULL, libnvidia-ml.so.1 where the loader or WSL has it. On
 * -ENOENT `error` has the loader's words. */
int afz_nvml_load(const char *file, struct afz_nvml_api *ret, char *error, size_t error_cap);

/* The library's own words for a result, or "unknown error"; never NULL. */
const char *afz_nvml_error(const struct afz_nvml_api *api, int result);

#endif
