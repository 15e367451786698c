#include "gpu_nvml_poll.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "count_of.h"
#include "span.h"

/* How often a value is asked for. */
enum tier {
        TIER_FACT, /* once */
        TIER_FAST, /* in every poll */
        TIER_SLOW, /* each SLOW_POLLS: moves slowly */
        TIER_RARE, /* the same, and not all GPUs in one poll: the call sleeps for 20 ms */
};

#define SLOW_POLLS 10 /* 5 s: PCIe and ECC counters are for trends */
#define PART_POLLS 20 /* 10 s: MIG instances are made and unmade by hand */

/* Functions of the forms f(device, &value) and f(device, arg, &value). */
static const struct query {
        enum afz_metric metric;
        enum afz_nvml_fn fn;
        enum tier tier;
        int arg; /* -1: the form without */
        uint64_t scale;
} queries[] = {
        {AFZ_GPU_TEMP, AFZ_FN_nvmlDeviceGetTemperature, TIER_FAST, NVML_TEMPERATURE_GPU, 1000},
        {AFZ_GPU_TEMP_SLOWDOWN, AFZ_FN_nvmlDeviceGetTemperatureThreshold, TIER_FACT,
         NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, 1000},
        {AFZ_GPU_POWER, AFZ_FN_nvmlDeviceGetPowerUsage, TIER_FAST, -1, 1},
        {AFZ_GPU_POWER_LIMIT, AFZ_FN_nvmlDeviceGetEnforcedPowerLimit, TIER_SLOW, -1, 1},
        {AFZ_GPU_FAN, AFZ_FN_nvmlDeviceGetFanSpeed, TIER_SLOW, -1, 100},
        {AFZ_GPU_CLOCK, AFZ_FN_nvmlDeviceGetClockInfo, TIER_FAST, NVML_CLOCK_SM, 1000000},
        {AFZ_GPU_CLOCK_MAX, AFZ_FN_nvmlDeviceGetMaxClockInfo, TIER_FACT, NVML_CLOCK_SM, 1000000},
        {AFZ_GPU_MEM_CLOCK, AFZ_FN_nvmlDeviceGetClockInfo, TIER_FAST, NVML_CLOCK_MEM, 1000000},
        {AFZ_GPU_PCIE_GEN, AFZ_FN_nvmlDeviceGetCurrPcieLinkGeneration, TIER_SLOW, -1, 1},
        {AFZ_GPU_PCIE_WIDTH, AFZ_FN_nvmlDeviceGetCurrPcieLinkWidth, TIER_SLOW, -1, 1},
        {AFZ_GPU_PCIE_REPLAYS, AFZ_FN_nvmlDeviceGetPcieReplayCounter, TIER_SLOW, -1, 1},
        {AFZ_GPU_PCIE_RX, AFZ_FN_nvmlDeviceGetPcieThroughput, TIER_RARE, NVML_PCIE_UTIL_RX_BYTES,
         1000},
        {AFZ_GPU_PCIE_TX, AFZ_FN_nvmlDeviceGetPcieThroughput, TIER_RARE, NVML_PCIE_UTIL_TX_BYTES,
         1000},
};

void afz_nvml_event(struct afz_nvml_poller *p, enum afz_event_kind kind, unsigned gpu, int64_t code)
{
        struct afz_gpu_report *r = &p->report;
        r->event[r->events++ % AFZ_GPU_EVENT_RING] =
                (struct afz_gpu_event){.kind = kind, .gpu = gpu, .code = code};
}

/* A GPU that fell off its bus stays off until a reset, and more calls to it may hang. */
static int heed(struct afz_nvml_poller *p, struct afz_nvml_dev *dev, int result)
{
        if (result == NVML_ERROR_GPU_IS_LOST && !dev->lost) {
                unsigned number = (unsigned)(dev - p->dev);
                dev->lost = true;
                dev->row.present = 0;
                afz_nvml_event(p, AFZ_EVENT_GPU_LOST, number, number);
        }
        return result;
}

static void clear(struct afz_gpu_row *row, enum afz_metric metric)
{
        row->present &= ~(UINT64_C(1) << afz_metric_index(metric));
}

static void ask(struct afz_nvml_poller *p, struct afz_nvml_dev *dev, const struct query *q)
{
        clear(&dev->row, q->metric);
        void (*fn)(void) = p->api.fn[q->fn];
        if (!fn || dev->lost)
                return;
        unsigned value = 0;
        int r;
        afz_gpu_link_enter(p->link, q->fn);
        if (q->arg < 0)
                r = ((afz_sig_nvmlDeviceGetPowerUsage *)fn)(dev->handle, &value);
        else
                r = ((afz_sig_nvmlDeviceGetTemperature *)fn)(dev->handle, q->arg, &value);
        afz_gpu_link_leave(p->link);
        if (heed(p, dev, r) == NVML_SUCCESS && value != ~0U)
                afz_gpu_set(&dev->row, q->metric, value * q->scale);
}

static void ask_tier(struct afz_nvml_poller *p, struct afz_nvml_dev *dev, enum tier tier)
{
        for (size_t i = 0; i < AFZ_COUNT_OF(queries); i++) {
                if (queries[i].tier == tier)
                        ask(p, dev, &queries[i]);
        }
}

static void set_known(struct afz_gpu_row *row, enum afz_metric metric, unsigned long long value)
{
        if (value != NVML_VALUE_UNKNOWN)
                afz_gpu_set(row, metric, value);
}

static void ask_memory(struct afz_nvml_poller *p, struct afz_nvml_dev *dev)
{
        struct afz_gpu_row *row = &dev->row;
        struct nvml_memory_v2 m = {.version = NVML_MEMORY_V2};
        clear(row, AFZ_GPU_MEM_TOTAL), clear(row, AFZ_GPU_MEM_USED);
        clear(row, AFZ_GPU_MEM_FREE), clear(row, AFZ_GPU_MEM_RESERVED);
        int r = heed(p, dev, AFZ_NVML(p, nvmlDeviceGetMemoryInfo_v2, dev->handle, &m));
        if (r == NVML_SUCCESS)
                set_known(row, AFZ_GPU_MEM_RESERVED, m.reserved);
        if (r != NVML_SUCCESS && !dev->lost) {
                struct nvml_memory_v1 old = {0};
                r = heed(p, dev, AFZ_NVML(p, nvmlDeviceGetMemoryInfo, dev->handle, &old));
                m.total = old.total, m.free = old.free, m.used = old.used;
        }
        if (r == NVML_SUCCESS) {
                set_known(row, AFZ_GPU_MEM_TOTAL, m.total);
                set_known(row, AFZ_GPU_MEM_USED, m.used);
                set_known(row, AFZ_GPU_MEM_FREE, m.free);
        }
        /* Grace's little sisters and Jetson: the GPU has no memory of its own to tell about. */
        if (r == NVML_SUCCESS || r == NVML_ERROR_NOT_SUPPORTED)
                afz_gpu_set(row, AFZ_GPU_UNIFIED, r == NVML_ERROR_NOT_SUPPORTED);
}

static void ask_utilization(struct afz_nvml_poller *p, struct afz_nvml_dev *dev)
{
        struct nvml_utilization u;
        clear(&dev->row, AFZ_GPU_UTIL), clear(&dev->row, AFZ_GPU_MEM_UTIL);
        int r = AFZ_NVML(p, nvmlDeviceGetUtilizationRates, dev->handle, &u);
        if (heed(p, dev, r) != NVML_SUCCESS)
                return;
        if (u.gpu <= 100)
                afz_gpu_set(&dev->row, AFZ_GPU_UTIL, u.gpu * 100U);
        if (u.memory <= 100)
                afz_gpu_set(&dev->row, AFZ_GPU_MEM_UTIL, u.memory * 100U);
}

static void ask_throttle(struct afz_nvml_poller *p, struct afz_nvml_dev *dev)
{
        unsigned long long bits;
        clear(&dev->row, AFZ_GPU_THROTTLE);
        int r = AFZ_NVML(p, nvmlDeviceGetCurrentClocksEventReasons, dev->handle, &bits);
        if (r == NVML_ERROR_FUNCTION_NOT_FOUND)
                r = AFZ_NVML(p, nvmlDeviceGetCurrentClocksThrottleReasons, dev->handle, &bits);
        if (heed(p, dev, r) == NVML_SUCCESS)
                set_known(&dev->row, AFZ_GPU_THROTTLE, bits);
}

static void ask_ecc(struct afz_nvml_poller *p, struct afz_nvml_dev *dev)
{
        static const enum afz_metric metric[] = {
                [NVML_MEMORY_ERROR_TYPE_CORRECTED] = AFZ_GPU_ECC_CORRECTED,
                [NVML_MEMORY_ERROR_TYPE_UNCORRECTED] = AFZ_GPU_ECC_UNCORRECTED,
        };
        for (int type = 0; type < 2 && !dev->lost; type++) {
                unsigned long long count;
                clear(&dev->row, metric[type]);
                int r = AFZ_NVML(p, nvmlDeviceGetTotalEccErrors, dev->handle, type,
                                 NVML_VOLATILE_ECC, &count);
                if (heed(p, dev, r) == NVML_SUCCESS)
                        set_known(&dev->row, metric[type], count);
        }
}

static void poll_dev(struct afz_nvml_poller *p, unsigned index)
{
        struct afz_nvml_dev *dev = &p->dev[index];
        if (dev->lost)
                return;
        clear(&dev->row, AFZ_GPU_PROCESSES);
        ask_memory(p, dev);
        if (!dev->lost)
                ask_utilization(p, dev);
        if (!dev->lost)
                ask_throttle(p, dev);
        ask_tier(p, dev, TIER_FAST);
        /* The turn of each device comes in another poll, so that no poll is long. All but the
         * sleeping calls are also made in the first poll of all. */
        bool turn = p->polls % SLOW_POLLS == index % SLOW_POLLS;
        if (turn || p->polls == 0) {
                ask_tier(p, dev, TIER_SLOW);
                ask_ecc(p, dev);
        }
        if (turn && dev->parent < 0)
                ask_tier(p, dev, TIER_RARE);
        if (!dev->lost)
                afz_nvml_poll_procs(p, index);
}

/* Xid errors. No waiting: what has not come yet comes with the next poll. */
static void poll_events(struct afz_nvml_poller *p)
{
        for (int i = 0; p->events && i < AFZ_GPU_EVENT_RING; i++) {
                struct nvml_event_data data = {0};
                int r = AFZ_NVML(p, nvmlEventSetWait_v2, p->events, &data, 0);
                if (r == NVML_ERROR_FUNCTION_NOT_FOUND)
                        r = AFZ_NVML(p, nvmlEventSetWait, p->events, &data, 0);
                if (r != NVML_SUCCESS)
                        return;
                for (unsigned d = 0; d < p->gpus && data.type == NVML_EVENT_XID; d++) {
                        if (p->dev[d].handle != data.device)
                                continue;
                        afz_gpu_set(&p->dev[d].row, AFZ_GPU_XID, data.data);
                        afz_nvml_event(p, AFZ_EVENT_XID, d, (int64_t)data.data);
                }
        }
}

static void take_text(char *text, size_t cap, int result)
{
        if (result != NVML_SUCCESS) {
                text[0] = '\0';
                return;
        }
        text[cap - 1] = '\0';
        char clean[AFZ_GPU_NAME_CAP];
        size_t n =
                afz_span_copy(afz_span_str(text), clean, sizeof clean < cap ? sizeof clean : cap);
        memcpy(text, clean, n + 1);
}

static void add_dev(struct afz_nvml_poller *p, nvmlDevice_t handle, int parent)
{
        if (p->devs == AFZ_GPU_MAX)
                return;
        struct afz_nvml_dev *dev = &p->dev[p->devs];
        *dev = (struct afz_nvml_dev){.handle = handle, .parent = parent};
        struct afz_gpu_row *row = &dev->row;
        row->number = p->devs++;
        int r = AFZ_NVML(p, nvmlDeviceGetName, handle, row->name, sizeof row->name);
        take_text(row->name, sizeof row->name, heed(p, dev, r));
        r = AFZ_NVML(p, nvmlDeviceGetUUID, handle, row->uuid, sizeof row->uuid);
        take_text(row->uuid, sizeof row->uuid, heed(p, dev, r));
        if (parent >= 0) {
                row->is_part = 1;
                afz_gpu_set(row, AFZ_GPU_PARENT, (uint64_t)parent);
                return;
        }
        struct nvml_pci_info pci = {0};
        r = AFZ_NVML(p, nvmlDeviceGetPciInfo_v3, handle, &pci);
        memcpy(row->pci, pci.bus_id, sizeof row->pci);
        take_text(row->pci, sizeof row->pci, heed(p, dev, r));
        ask_tier(p, dev, TIER_FACT);
}

static void find_parts(struct afz_nvml_poller *p)
{
        p->devs = p->gpus;
        for (unsigned g = 0; g < p->gpus; g++) {
                struct afz_nvml_dev *dev = &p->dev[g];
                unsigned max = 0, before = p->devs;
                if (dev->lost ||
                    AFZ_NVML(p, nvmlDeviceGetMaxMigDeviceCount, dev->handle, &max) != NVML_SUCCESS)
                        continue;
                for (unsigned i = 0; i < max && i < AFZ_GPU_MAX; i++) {
                        nvmlDevice_t part;
                        int r = AFZ_NVML(p, nvmlDeviceGetMigDeviceHandleByIndex, dev->handle, i,
                                         &part);
                        if (r == NVML_SUCCESS)
                                add_dev(p, part, (int)g);
                }
                dev->has_parts = p->devs > before;
        }
}

static void listen_for_events(struct afz_nvml_poller *p)
{
        nvmlEventSet_t set = NULL;
        if (AFZ_NVML(p, nvmlEventSetCreate, &set) != NVML_SUCCESS || !set)
                return;
        for (unsigned i = 0; i < p->gpus; i++) {
                int r = AFZ_NVML(p, nvmlDeviceRegisterEvents, p->dev[i].handle, NVML_EVENT_XID,
                                 set);
                if (r == NVML_SUCCESS)
                        p->events = set;
        }
}

int afz_nvml_find(struct afz_nvml_poller *p)
{
        unsigned count = 0;
        int r = AFZ_NVML(p, nvmlDeviceGetCount_v2, &count);
        if (r != NVML_SUCCESS)
                return r;
        for (unsigned i = 0; i < count && i < AFZ_GPU_MAX; i++) {
                nvmlDevice_t handle;
                r = AFZ_NVML(p, nvmlDeviceGetHandleByIndex_v2, i, &handle);
                /* A GPU that cannot be had keeps its number, or its neighbours would shift. */
                if (r == NVML_SUCCESS) {
                        add_dev(p, handle, -1);
                        continue;
                }
                struct afz_nvml_dev *dev = &p->dev[p->devs];
                *dev = (struct afz_nvml_dev){.parent = -1, .lost = true};
                dev->row.number = p->devs++;
                if (r == NVML_ERROR_GPU_IS_LOST)
                        afz_nvml_event(p, AFZ_EVENT_GPU_LOST, dev->row.number, dev->row.number);
        }
        p->gpus = p->devs;
        listen_for_events(p);
        return NVML_SUCCESS;
}

void afz_nvml_poll(struct afz_nvml_poller *p)
{
        struct afz_gpu_snapshot *s = &p->report.snapshot;
        if (p->polls % PART_POLLS == 0)
                find_parts(p);
        s->gpus = s->procs = 0;
        s->dropped = 0;
        for (unsigned i = 0; i < p->devs; i++)
                poll_dev(p, i);
        poll_events(p);
        for (unsigned i = 0; i < p->devs; i++) {
                struct afz_gpu_row *row = afz_gpu_add(s, p->dev[i].row.number);
                if (row)
                        *row = p->dev[i].row;
        }
        s->t_ns = p->link->now_ns(p->link->ctx);
        p->polls++;
}
