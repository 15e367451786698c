/* A libnvidia-ml.so.1 that reads from a text what it says, for tests and for showing recordings.
 *
 * FAKE_NVML_FILE names the text; it is read again whenever it has changed (replace it by rename),
 * so that a test can move a GPU's values under a running helper. afz_gpu_dump() writes this format.
 * One fact a line, in NVML's own units; what is not said, is "not supported":
 *
 *      # a comment
 *      driver 580.95.05
 *      nvml 13.580.95.05
 *      cuda 13000
 *      gpu 0 name NVIDIA H200
 *      gpu 0 uuid GPU-...
 *      gpu 0 pci 00000000:01:00.0
 *      gpu 0 mem TOTAL USED FREE [RESERVED]     bytes
 *      gpu 0 util GPU MEMORY                    per cent
 *      gpu 0 KEY NUMBER                         see `keys` below
 *      gpu 1 parent 0                           gpu 1 is a MIG instance of gpu 0
 *      gpu 0 lost                               every call about it says so
 *      proc 0 PID BYTES [graphics|mps]          -1: the driver does not know
 *      mode ...
 *
 * A mode is also taken from FAKE_NVML_MODE: "hang FUNCTION" (never returns), "die FUNCTION"
 * (aborts), "init ERROR" (nvmlInit gives this number). Before it hangs it opens the FIFO that
 * FAKE_NVML_FIFO names, which wakes a test that waits to read from it.
 *
 * Built several times: FAKE_NVML_VERSION 1, 2 or 3 is the newest version of the versioned functions
 * that it has, FAKE_NVML_535 gives _v3 entries of 32 bytes, FAKE_NVML_BARE leaves out all that can
 * be lived without.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_nvml_api.h"

#ifndef FAKE_NVML_VERSION
#define FAKE_NVML_VERSION 3
#endif

#define PROTOTYPE_(name, args) int name args;
AFZ_NVML_FUNCTIONS(PROTOTYPE_)
const char *nvmlErrorString(int result);

enum key {
        TEMP,
        TEMP_SLOWDOWN,
        POWER,
        POWER_LIMIT,
        FAN,
        CLOCK,
        CLOCK_MAX,
        MEM_CLOCK,
        THROTTLE,
        ECC_CORRECTED,
        ECC_UNCORRECTED,
        PCIE_RX,
        PCIE_TX,
        PCIE_GEN,
        PCIE_WIDTH,
        PCIE_REPLAYS,
        XID,
        PARENT,
        KEYS
};

static const char *const keys[KEYS] = {
        [TEMP] = "temp",                       /* degrees Celsius */
        [TEMP_SLOWDOWN] = "temp_slowdown",     /* the same */
        [POWER] = "power",                     /* milliwatts */
        [POWER_LIMIT] = "power_limit",         /* the same */
        [FAN] = "fan",                         /* per cent */
        [CLOCK] = "clock",                     /* of the SMs, in MHz */
        [CLOCK_MAX] = "clock_max",             /* the same */
        [MEM_CLOCK] = "mem_clock",             /* MHz */
        [THROTTLE] = "throttle",               /* clock event reasons, a number of bits */
        [ECC_CORRECTED] = "ecc_corrected",     /* volatile count */
        [ECC_UNCORRECTED] = "ecc_uncorrected", /* the same */
        [PCIE_RX] = "pcie_rx",                 /* KB/s */
        [PCIE_TX] = "pcie_tx",                 /* the same */
        [PCIE_GEN] = "pcie_gen",
        [PCIE_WIDTH] = "pcie_width",
        [PCIE_REPLAYS] = "pcie_replays",
        [XID] = "xid", /* one Xid event, told when this number appears or changes */
        [PARENT] = "parent",
};

enum { GPUS = 80, PROCS = 2000 };

static struct nvmlDevice_st {
        bool there, lost, has_mem, has_reserved, has_util;
        char name[96], uuid[96], pci[32];
        unsigned long long total, used, free, reserved;
        unsigned util, mem_util;
        bool has[KEYS];
        unsigned long long value[KEYS];
} gpus[GPUS];

static struct proc {
        unsigned gpu, pid;
        unsigned long long bytes;
        char list; /* 'c', 'g', 'm' */
} procs[PROCS];

static unsigned proc_count;
static char driver[80], nvml[80], mode_from_file[128];
static int cuda;

static void read_gpu(const char *line)
{
        unsigned index;
        char key[32];
        int at = 0;
        if (sscanf(line, "gpu %u %31s %n", &index, key, &at) < 2 || index >= GPUS)
                return;
        struct nvmlDevice_st *g = &gpus[index];
        const char *rest = line + at;
        g->there = true;
        if (strcmp(key, "name") == 0)
                snprintf(g->name, sizeof g->name, "%.95s", rest);
        else if (strcmp(key, "uuid") == 0)
                snprintf(g->uuid, sizeof g->uuid, "%.95s", rest);
        else if (strcmp(key, "pci") == 0)
                snprintf(g->pci, sizeof g->pci, "%.31s", rest);
        else if (strcmp(key, "lost") == 0)
                g->lost = true;
        else if (strcmp(key, "util") == 0)
                g->has_util = sscanf(rest, "%u %u", &g->util, &g->mem_util) == 2;
        else if (strcmp(key, "mem") == 0) {
                int n = sscanf(rest, "%llu %llu %llu %llu", &g->total, &g->used, &g->free,
                               &g->reserved);
                g->has_mem = n >= 3;
                g->has_reserved = n == 4;
        }
        for (int i = 0; i < KEYS; i++)
                if (strcmp(key, keys[i]) == 0)
                        g->has[i] = sscanf(rest, "%llu", &g->value[i]) == 1;
}

static void read_proc(const char *line)
{
        struct proc p = {0};
        long long bytes;
        char list[16] = "compute";
        if (proc_count == PROCS ||
            sscanf(line, "proc %u %u %lld %15s", &p.gpu, &p.pid, &bytes, list) < 3)
                return;
        p.bytes = (unsigned long long)bytes;
        p.list = list[0];
        procs[proc_count++] = p;
}

static void read_line(const char *line)
{
        int at = 0;
        if (strncmp(line, "gpu ", 4) == 0)
                read_gpu(line);
        else if (strncmp(line, "proc ", 5) == 0)
                read_proc(line);
        else if (strncmp(line, "mode ", 5) == 0)
                snprintf(mode_from_file, sizeof mode_from_file, "%.127s", line + 5);
        else if (sscanf(line, "driver %n", &at) == 0 && at > 0)
                snprintf(driver, sizeof driver, "%.79s", line + at);
        else if (sscanf(line, "nvml %n", &at) == 0 && at > 0)
                snprintf(nvml, sizeof nvml, "%.79s", line + at);
        else
                (void)!sscanf(line, "cuda %d", &cuda);
}

static void reload(void)
{
        static struct stat seen;
        const char *path = getenv("FAKE_NVML_FILE");
        struct stat now;
        if (!path || stat(path, &now) < 0)
                return;
        if (now.st_ino == seen.st_ino && now.st_mtim.tv_sec == seen.st_mtim.tv_sec &&
            now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec && now.st_size == seen.st_size)
                return;
        FILE *f = fopen(path, "re");
        if (!f)
                return;
        seen = now;
        memset(gpus, 0, sizeof gpus);
        proc_count = 0;
        mode_from_file[0] = '\0';
        char line[512];
        while (fgets(line, sizeof line, f)) {
                line[strcspn(line, "\n")] = '\0';
                read_line(line);
        }
        fclose(f);
}

static bool mode_is(const char *verb, const char *arg, int *ret_number)
{
        const char *env = getenv("FAKE_NVML_MODE");
        const char *mode = mode_from_file[0] ? mode_from_file : env ? env : "";
        char want[32] = "", what[96] = "";
        if (sscanf(mode, "%31s %95s", want, what) < 2 || strcmp(want, verb) != 0)
                return false;
        if (ret_number)
                *ret_number = atoi(what);
        return !arg || strcmp(what, arg) == 0;
}

static void enter(const char *function)
{
        reload();
        if (mode_is("hang", function, NULL)) {
                const char *fifo = getenv("FAKE_NVML_FIFO");
                int fd = fifo ? open(fifo, O_WRONLY | O_CLOEXEC) : -1;
                while (fd >= -1)
                        pause();
        }
        if (mode_is("die", function, NULL))
                abort();
}

/* The start of every function about a device. */
#define DEVICE_(dev)                                                                               \
        do {                                                                                       \
                enter(__func__);                                                                   \
                if ((dev)->lost)                                                                   \
                        return NVML_ERROR_GPU_IS_LOST;                                             \
        } while (0)

static int give_text(const char *text, char *buf, unsigned cap)
{
        if (!text[0])
                return NVML_ERROR_NOT_SUPPORTED;
        if (strlen(text) >= cap)
                return NVML_ERROR_INSUFFICIENT_SIZE;
        strcpy(buf, text);
        return NVML_SUCCESS;
}

static int start(const char *function)
{
        int error = 0;
        enter(function);
        return mode_is("init", NULL, &error) ? error : NVML_SUCCESS;
}

int nvmlInit(void)
{
        return start(__func__);
}

int nvmlDeviceGetCount_v2(unsigned *ret)
{
        enter(__func__);
        *ret = 0;
        for (int i = 0; i < GPUS; i++)
                *ret += gpus[i].there && !gpus[i].has[PARENT];
        return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *ret)
{
        enter(__func__);
        for (unsigned i = 0; i < GPUS; i++) {
                if (!gpus[i].there || gpus[i].has[PARENT] || index-- > 0)
                        continue;
                *ret = &gpus[i];
                return NVML_SUCCESS;
        }
        return NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceGetName(nvmlDevice_t dev, char *buf, unsigned cap)
{
        DEVICE_(dev);
        return give_text(dev->name, buf, cap);
}

int nvmlDeviceGetMemoryInfo(nvmlDevice_t dev, struct nvml_memory_v1 *ret)
{
        DEVICE_(dev);
        if (!dev->has_mem)
                return NVML_ERROR_NOT_SUPPORTED;
        /* As in the real one, the old function knows of no reserve. */
        *ret = (struct nvml_memory_v1){dev->total, dev->free, dev->used + dev->reserved};
        return NVML_SUCCESS;
}

#ifndef FAKE_NVML_BARE

static unsigned long long xid_told[GPUS];

static int give(nvmlDevice_t dev, enum key key, unsigned *ret)
{
        if (!dev->has[key])
                return NVML_ERROR_NOT_SUPPORTED;
        *ret = (unsigned)dev->value[key];
        return NVML_SUCCESS;
}

const char *nvmlErrorString(int result)
{
        switch (result) {
        case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
                return "Driver/library version mismatch";
        case NVML_ERROR_DRIVER_NOT_LOADED:
                return "Driver Not Loaded";
        default:
                return "Unknown Error";
        }
}

#if FAKE_NVML_VERSION >= 2
int nvmlInit_v2(void)
{
        return start(__func__);
}
#endif

int nvmlSystemGetDriverVersion(char *buf, unsigned cap)
{
        enter(__func__);
        return give_text(driver, buf, cap);
}

int nvmlSystemGetNVMLVersion(char *buf, unsigned cap)
{
        enter(__func__);
        return give_text(nvml, buf, cap);
}

int nvmlSystemGetCudaDriverVersion(int *ret)
{
        enter(__func__);
        *ret = cuda;
        return NVML_SUCCESS;
}

int nvmlDeviceGetUUID(nvmlDevice_t dev, char *buf, unsigned cap)
{
        DEVICE_(dev);
        return give_text(dev->uuid, buf, cap);
}

int nvmlDeviceGetPciInfo_v3(nvmlDevice_t dev, struct nvml_pci_info *ret)
{
        DEVICE_(dev);
        return give_text(dev->pci, ret->bus_id, sizeof ret->bus_id);
}

#if FAKE_NVML_VERSION >= 2
int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t dev, struct nvml_memory_v2 *ret)
{
        DEVICE_(dev);
        if (ret->version != NVML_MEMORY_V2)
                return 25; /* argument version mismatch */
        if (!dev->has_mem)
                return NVML_ERROR_NOT_SUPPORTED;
        ret->total = dev->total;
        ret->used = dev->used;
        ret->free = dev->free;
        ret->reserved = dev->has_reserved ? dev->reserved : NVML_VALUE_UNKNOWN;
        return NVML_SUCCESS;
}
#endif

int nvmlDeviceGetUtilizationRates(nvmlDevice_t dev, struct nvml_utilization *ret)
{
        DEVICE_(dev);
        *ret = (struct nvml_utilization){dev->util, dev->mem_util};
        return dev->has_util ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetTemperature(nvmlDevice_t dev, int sensor, unsigned *ret)
{
        DEVICE_(dev);
        return sensor == NVML_TEMPERATURE_GPU ? give(dev, TEMP, ret) : NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetTemperatureThreshold(nvmlDevice_t dev, int which, unsigned *ret)
{
        DEVICE_(dev);
        return which == NVML_TEMPERATURE_THRESHOLD_SLOWDOWN ? give(dev, TEMP_SLOWDOWN, ret)
                                                            : NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetPowerUsage(nvmlDevice_t dev, unsigned *ret)
{
        DEVICE_(dev);
        return give(dev, POWER, ret);
}

int nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t dev, unsigned *ret)
{
        DEVICE_(dev);
        return give(dev, POWER_LIMIT, ret);
}

int nvmlDeviceGetFanSpeed(nvmlDevice_t dev, unsigned *ret)
{
        DEVICE_(dev);
        return give(dev, FAN, ret);
}

int nvmlDeviceGetClockInfo(nvmlDevice_t dev, int type, unsigned *ret)
{
        DEVICE_(dev);
        return give(dev, type == NVML_CLOCK_SM ? CLOCK : MEM_CLOCK, ret);
}

int nvmlDeviceGetMaxClockInfo(nvmlDevice_t dev, int type, unsigned *ret)
{
        DEVICE_(dev);
        return type == NVML_CLOCK_SM ? give(dev, CLOCK_MAX, ret) : NVML_ERROR_NOT_SUPPORTED;
}

static int give_reasons(nvmlDevice_t dev, unsigned long long *ret)
{
        *ret = dev->value[THROTTLE];
        return dev->has[THROTTLE] ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

#if FAKE_NVML_VERSION >= 3
int nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t dev, unsigned long long *ret)
{
        DEVICE_(dev);
        return give_reasons(dev, ret);
}
#endif

int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t dev, unsigned long long *ret)
{
        DEVICE_(dev);
        return give_reasons(dev, ret);
}

int nvmlDeviceGetTotalEccErrors(nvmlDevice_t dev, int type, int counter, unsigned long long *ret)
{
        DEVICE_(dev);
        enum key key = type == NVML_MEMORY_ERROR_TYPE_CORRECTED ? ECC_CORRECTED : ECC_UNCORRECTED;
        if (counter != NVML_VOLATILE_ECC || !dev->has[key])
                return NVML_ERROR_NOT_SUPPORTED;
        *ret = dev->value[key];
        return NVML_SUCCESS;
}

int nvmlDeviceGetPcieThroughput(nvmlDevice_t dev, int way, unsigned *ret)
{
        DEVICE_(dev);
        return give(dev, way == NVML_PCIE_UTIL_RX_BYTES ? PCIE_RX : PCIE_TX, ret);
}

int nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t dev, unsigned *ret)
{
        DEVICE_(dev);
        return give(dev, PCIE_GEN, ret);
}

int nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t dev, unsigned *ret)
{
        DEVICE_(dev);
        return give(dev, PCIE_WIDTH, ret);
}

int nvmlDeviceGetPcieReplayCounter(nvmlDevice_t dev, unsigned *ret)
{
        DEVICE_(dev);
        return give(dev, PCIE_REPLAYS, ret);
}

int nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t dev, unsigned *ret)
{
        DEVICE_(dev);
        *ret = 7;
        return NVML_SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t dev, unsigned index, nvmlDevice_t *ret)
{
        DEVICE_(dev);
        for (unsigned i = 0; i < GPUS; i++) {
                if (!gpus[i].there || !gpus[i].has[PARENT] || &gpus[gpus[i].value[PARENT]] != dev ||
                    index-- > 0)
                        continue;
                *ret = &gpus[i];
                return NVML_SUCCESS;
        }
        return NVML_ERROR_NOT_FOUND;
}

int nvmlEventSetCreate(nvmlEventSet_t *ret)
{
        enter(__func__);
        *ret = (nvmlEventSet_t)(void *)gpus;
        return NVML_SUCCESS;
}

int nvmlDeviceRegisterEvents(nvmlDevice_t dev, unsigned long long types, nvmlEventSet_t set)
{
        (void)set;
        DEVICE_(dev);
        return types == NVML_EVENT_XID ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

int nvmlEventSetWait(nvmlEventSet_t set, struct nvml_event_data *ret, unsigned timeout_ms)
{
        (void)set, (void)timeout_ms;
        enter(__func__);
        for (int i = 0; i < GPUS; i++) {
                if (!gpus[i].has[XID] || gpus[i].value[XID] == xid_told[i])
                        continue;
                xid_told[i] = gpus[i].value[XID];
                ret->device = &gpus[i];
                ret->type = NVML_EVENT_XID;
                ret->data = xid_told[i];
                return NVML_SUCCESS;
        }
        return NVML_ERROR_TIMEOUT;
}

/* Entries of `stride` bytes, written in full. */
static int give_list(nvmlDevice_t dev, char list, unsigned stride, unsigned *count, void *buf)
{
        unsigned found = 0, cap = *count;
        for (unsigned i = 0; i < proc_count; i++) {
                if (&gpus[procs[i].gpu] != dev || procs[i].list != list)
                        continue;
                unsigned char *entry = (unsigned char *)buf + (size_t)found * stride;
                if (found++ >= cap)
                        continue;
                struct nvml_process_head head = {procs[i].pid, procs[i].bytes};
                memset(entry, 0xff, stride); /* instance numbers: none */
                memcpy(entry, &head, sizeof head);
        }
        *count = found;
        return found > cap ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#ifdef FAKE_NVML_535
#define V3_STRIDE 32
#else
#define V3_STRIDE 24
#endif

#define LIST_(name, list, stride)                                                                  \
        int name(nvmlDevice_t dev, unsigned *count, void *buf)                                     \
        {                                                                                          \
                DEVICE_(dev);                                                                      \
                return give_list(dev, list, stride, count, buf);                                   \
        }

LIST_(nvmlDeviceGetComputeRunningProcesses, 'c', 16)
LIST_(nvmlDeviceGetGraphicsRunningProcesses, 'g', 16)
LIST_(nvmlDeviceGetMPSComputeRunningProcesses, 'm', 16)
#if FAKE_NVML_VERSION >= 2
LIST_(nvmlDeviceGetComputeRunningProcesses_v2, 'c', 24)
LIST_(nvmlDeviceGetGraphicsRunningProcesses_v2, 'g', 24)
LIST_(nvmlDeviceGetMPSComputeRunningProcesses_v2, 'm', 24)
#endif
#if FAKE_NVML_VERSION >= 3
LIST_(nvmlDeviceGetComputeRunningProcesses_v3, 'c', V3_STRIDE)
LIST_(nvmlDeviceGetGraphicsRunningProcesses_v3, 'g', V3_STRIDE)
LIST_(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'm', V3_STRIDE)
#endif

#endif
