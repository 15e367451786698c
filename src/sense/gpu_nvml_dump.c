/* Writes a snapshot as the text that tests/fake_nvml reads, in NVML's own units; the format is
 * described there. What is absent here is absent there. */
#include <errno.h>

#include "count_of.h"
#include "gpu_nvml.h"

static const struct {
        enum afz_metric metric;
        const char *key;
        int64_t scale;
} plain[] = {
        {AFZ_GPU_TEMP, "temp", 1000},
        {AFZ_GPU_TEMP_SLOWDOWN, "temp_slowdown", 1000},
        {AFZ_GPU_POWER, "power", 1},
        {AFZ_GPU_POWER_LIMIT, "power_limit", 1},
        {AFZ_GPU_FAN, "fan", 100},
        {AFZ_GPU_CLOCK, "clock", 1000000},
        {AFZ_GPU_CLOCK_MAX, "clock_max", 1000000},
        {AFZ_GPU_MEM_CLOCK, "mem_clock", 1000000},
        {AFZ_GPU_THROTTLE, "throttle", 1},
        {AFZ_GPU_ECC_CORRECTED, "ecc_corrected", 1},
        {AFZ_GPU_ECC_UNCORRECTED, "ecc_uncorrected", 1},
        {AFZ_GPU_PCIE_RX, "pcie_rx", 1000},
        {AFZ_GPU_PCIE_TX, "pcie_tx", 1000},
        {AFZ_GPU_PCIE_GEN, "pcie_gen", 1},
        {AFZ_GPU_PCIE_WIDTH, "pcie_width", 1},
        {AFZ_GPU_PCIE_REPLAYS, "pcie_replays", 1},
        {AFZ_GPU_XID, "xid", 1},
};

static void dump_memory(const struct afz_gpu_row *row, struct afz_out *out)
{
        int64_t total, used, free, reserved = -1;
        if (!afz_gpu_get(row, AFZ_GPU_MEM_TOTAL, &total) ||
            !afz_gpu_get(row, AFZ_GPU_MEM_USED, &used) ||
            !afz_gpu_get(row, AFZ_GPU_MEM_FREE, &free))
                return;
        (void)afz_gpu_get(row, AFZ_GPU_MEM_RESERVED, &reserved);
        afz_out_fmt(out, "gpu %u mem %lld %lld %lld", row->number, (long long)total,
                    (long long)used, (long long)free);
        if (reserved >= 0)
                afz_out_fmt(out, " %lld", (long long)reserved);
        afz_out_char(out, '\n');
}

static void dump_gpu(const struct afz_gpu_row *row, struct afz_out *out)
{
        int64_t a, b;
        afz_out_fmt(out, "gpu %u name %s\n", row->number, row->name);
        /* Serial numbers name a machine for ever: only their form is kept. */
        afz_out_fmt(out, "gpu %u uuid %s-00000000-0000-0000-0000-%012u\n", row->number,
                    row->is_part ? "MIG" : "GPU", row->number);
        if (row->pci[0])
                afz_out_fmt(out, "gpu %u pci %s\n", row->number, row->pci);
        if (afz_gpu_get(row, AFZ_GPU_PARENT, &a))
                afz_out_fmt(out, "gpu %u parent %lld\n", row->number, (long long)a);
        dump_memory(row, out);
        if (afz_gpu_get(row, AFZ_GPU_UTIL, &a) && afz_gpu_get(row, AFZ_GPU_MEM_UTIL, &b))
                afz_out_fmt(out, "gpu %u util %lld %lld\n", row->number, (long long)a / 100,
                            (long long)b / 100);
        for (size_t i = 0; i < AFZ_COUNT_OF(plain); i++) {
                if (afz_gpu_get(row, plain[i].metric, &a))
                        afz_out_fmt(out, "gpu %u %s %lld\n", row->number, plain[i].key,
                                    (long long)(a / plain[i].scale));
        }
}

int afz_gpu_nvml_dump(void *state, struct afz_out *out)
{
        const struct afz_gpu_snapshot *s = afz_gpu_nvml_snapshot(state);
        const struct afz_gpu_status *status = afz_gpu_nvml_status(state);
        if (!s)
                return -ENODATA;
        if (status->driver[0])
                afz_out_fmt(out, "driver %s\n", status->driver);
        if (status->nvml[0])
                afz_out_fmt(out, "nvml %s\n", status->nvml);
        if (status->cuda_version > 0)
                afz_out_fmt(out, "cuda %d\n", status->cuda_version);
        for (uint32_t i = 0; i < s->gpus; i++)
                dump_gpu(&s->gpu[i], out);
        for (uint32_t i = 0; i < s->procs; i++)
                afz_out_fmt(out, "proc %u %u %lld\n", s->proc[i].gpu, s->proc[i].pid,
                            (long long)s->proc[i].mem_bytes);
        return 0;
}
