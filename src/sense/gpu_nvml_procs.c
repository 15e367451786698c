/* The lists of processes, which NVML has in three kinds and up to three versions each.
 *
 * The entries' size is not what the function's name promises: drivers 535.43 to 535.86 give entries
 * of 32 bytes from the _v3 functions, those before and after give 24. Reading with the wrong one
 * yields invented pids. So the size is measured: the buffer is filled with a pattern, and how far
 * the driver has overwritten it tells, together with the number of entries, how large one is.
 */
#include <string.h>

#include "count_of.h"
#include "gpu_nvml_poll.h"

#define PATTERN 0xA5

static const enum afz_nvml_fn lists[][3] = {
        {AFZ_FN_nvmlDeviceGetComputeRunningProcesses_v3,
         AFZ_FN_nvmlDeviceGetComputeRunningProcesses_v2,
         AFZ_FN_nvmlDeviceGetComputeRunningProcesses},
        {AFZ_FN_nvmlDeviceGetGraphicsRunningProcesses_v3,
         AFZ_FN_nvmlDeviceGetGraphicsRunningProcesses_v2,
         AFZ_FN_nvmlDeviceGetGraphicsRunningProcesses},
        {AFZ_FN_nvmlDeviceGetMPSComputeRunningProcesses_v3,
         AFZ_FN_nvmlDeviceGetMPSComputeRunningProcesses_v2,
         AFZ_FN_nvmlDeviceGetMPSComputeRunningProcesses},
};

unsigned afz_nvml_stride(size_t end, unsigned count, unsigned cap)
{
        /* `whole` bytes of an entry are written in any case; the rest of the 32-byte one may not
         * be. */
        static const struct {
                unsigned stride, whole;
        } layout[] = {{24, 24}, {16, 16}, {32, 32}, {32, 24}};
        for (size_t i = 0; i < AFZ_COUNT_OF(layout) && count > 0; i++) {
                if (end == (size_t)(count - 1) * layout[i].stride + layout[i].whole)
                        return layout[i].stride;
        }
        /* A library that clears all the room it was given before it fills a part of it. */
        for (size_t i = 0; i < 3; i++) {
                if (end == (size_t)cap * layout[i].stride)
                        return layout[i].stride;
        }
        return 0;
}

static size_t written_end(const unsigned char *buf, size_t n)
{
        while (n > 0 && buf[n - 1] == PATTERN)
                n--;
        return n;
}

/* A measurement that went wrong after all would show as pids that cannot be. */
static bool is_plausible(const unsigned char *list, unsigned count, unsigned stride)
{
        for (unsigned i = 0; i < count; i++) {
                struct nvml_process_head head;
                memcpy(&head, list + (size_t)i * stride, sizeof head);
                if (head.pid > 1U << 22) /* the kernel's own limit of pids */
                        return false;
        }
        return true;
}

static void take_list(struct afz_nvml_poller *p, unsigned dev, unsigned count, unsigned stride)
{
        for (unsigned i = 0; i < count; i++) {
                struct nvml_process_head head;
                memcpy(&head, p->list + (size_t)i * stride, sizeof head);
                /* Pid 0: a process of another pid namespace, that we have no name for. */
                if (head.pid == 0)
                        continue;
                bool known =
                        head.used_memory != NVML_VALUE_UNKNOWN && head.used_memory <= INT64_MAX;
                afz_gpu_add_proc(&p->report.snapshot, dev, head.pid,
                                 known ? (int64_t)head.used_memory : -1, false);
        }
}

/* One version of one list: an NVML result. */
static int read_list(struct afz_nvml_poller *p, unsigned dev, enum afz_nvml_fn fn)
{
        afz_sig_nvmlDeviceGetComputeRunningProcesses *call =
                (afz_sig_nvmlDeviceGetComputeRunningProcesses *)p->api.fn[fn];
        if (!call)
                return NVML_ERROR_FUNCTION_NOT_FOUND;
        memset(p->list, PATTERN, sizeof p->list);
        unsigned count = AFZ_NVML_LIST_CAP;
        afz_gpu_link_enter(p->link, fn);
        int r = afz_nvml_leave(p, call(p->dev[dev].handle, &count, p->list));
        if (r == NVML_ERROR_INSUFFICIENT_SIZE) {
                /* More than we have room for on all GPUs together: none can be shown. */
                p->report.snapshot.dropped += count;
                return r;
        }
        if (r != NVML_SUCCESS)
                return r;
        if (count > AFZ_NVML_LIST_CAP)
                return NVML_ERROR_UNKNOWN;
        unsigned stride =
                afz_nvml_stride(written_end(p->list, sizeof p->list), count, AFZ_NVML_LIST_CAP);
        if (count > 0 && (stride == 0 || !is_plausible(p->list, count, stride)))
                return NVML_ERROR_UNKNOWN;
        take_list(p, dev, count, stride);
        return NVML_SUCCESS;
}

void afz_nvml_poll_procs(struct afz_nvml_poller *p, unsigned dev)
{
        if (p->dev[dev].has_parts)
                return;
        bool any = false;
        for (size_t i = 0; i < AFZ_COUNT_OF(lists); i++) {
                int r = NVML_ERROR_FUNCTION_NOT_FOUND;
                for (size_t v = 0; v < 3 && r != NVML_SUCCESS; v++) {
                        r = read_list(p, dev, lists[i][v]);
                        if (r == NVML_ERROR_INSUFFICIENT_SIZE || r == NVML_ERROR_GPU_IS_LOST)
                                break;
                }
                any = any || r == NVML_SUCCESS;
        }
        if (any)
                afz_gpu_set(&p->dev[dev].row, AFZ_GPU_PROCESSES,
                            afz_gpu_count_procs(&p->report.snapshot, dev));
}
