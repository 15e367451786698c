/* Intel's GPUs through sysfs of i915 and xe. How busy one is, they tell root alone (perf), and how
 * much of a discrete card's memory is in use not at all: both stay absent. */
#include <errno.h>
#include <stdlib.h>

#include "count_of.h"
#include "gpu_drm.h"

struct intel_card {
        uint64_t energy_uj, energy_at_ns; /* of the last poll; 0: none */
        bool integrated;
};

struct intel {
        const struct afz_env *env;
        unsigned cards;
        struct afz_drm_card card[AFZ_DRM_CARDS];
        struct intel_card own[AFZ_DRM_CARDS];
        struct afz_drm_clients clients;
};

static const char *const drivers[] = {"i915", "xe", NULL};

/* The first file of a metric that is there counts. */
static const struct {
        const char *file;
        enum afz_metric metric;
        bool hwmon;
        uint64_t num, den;
} files[] = {
        {"gt_act_freq_mhz", AFZ_GPU_CLOCK, false, 1000000, 1}, /* i915 */
        {"gt/gt0/rps_act_freq_mhz", AFZ_GPU_CLOCK, false, 1000000, 1},
        {"device/tile0/gt0/freq0/act_freq", AFZ_GPU_CLOCK, false, 1000000, 1}, /* xe */
        {"gt_RP0_freq_mhz", AFZ_GPU_CLOCK_MAX, false, 1000000, 1},
        {"gt/gt0/rps_RP0_freq_mhz", AFZ_GPU_CLOCK_MAX, false, 1000000, 1},
        {"device/tile0/gt0/freq0/rp0_freq", AFZ_GPU_CLOCK_MAX, false, 1000000, 1},
        {"lmem_total_bytes", AFZ_GPU_MEM_TOTAL, false, 1, 1},
        {"device/tile0/physical_vram_size_bytes", AFZ_GPU_MEM_TOTAL, false, 1, 1},
        {"temp2_input", AFZ_GPU_TEMP, true, 1, 1}, /* xe */
        {"temp1_input", AFZ_GPU_TEMP, true, 1, 1},
        {"power1_max", AFZ_GPU_POWER_LIMIT, true, 1, 1000},
        {"power1_crit", AFZ_GPU_POWER_LIMIT, true, 1, 1000},
};

/* The kernel counts energy, and power is its growth between two polls. */
static void set_power(struct intel *in, unsigned index, uint64_t now_ns, struct afz_gpu_row *row)
{
        struct intel_card *own = &in->own[index];
        const char *hwmon = in->card[index].hwmon;
        uint64_t uj;
        if (!hwmon[0] || afz_drm_u64(in->env, hwmon, "energy1_input", &uj) < 0)
                return;
        uint64_t ns = now_ns - own->energy_at_ns, grown = uj - own->energy_uj;
        bool usable = own->energy_at_ns > 0 && now_ns > own->energy_at_ns && uj >= own->energy_uj;
        /* µJ * 1e6 / ns is mW; beyond 1e12 µJ it is a counter that was reset. */
        if (usable && grown < UINT64_C(1000000000000))
                afz_gpu_set(row, AFZ_GPU_POWER, grown * 1000000U / ns);
        own->energy_uj = uj;
        own->energy_at_ns = now_ns;
}

static void poll_card(struct intel *in, unsigned index, uint64_t now_ns, struct afz_gpu_row *row)
{
        struct afz_drm_card *card = &in->card[index];
        int64_t known;
        afz_gpu_set(row, AFZ_GPU_UNIFIED, in->own[index].integrated);
        if (afz_drm_card_asleep(in->env, card))
                return;
        for (size_t i = 0; i < AFZ_COUNT_OF(files); i++) {
                if (!afz_gpu_get(row, files[i].metric, &known))
                        afz_drm_set(in->env, files[i].hwmon ? card->hwmon : card->path,
                                    files[i].file, row, files[i].metric, files[i].num,
                                    files[i].den);
        }
        set_power(in, index, now_ns, row);
        if (!in->own[index].integrated)
                afz_drm_set_link(in->env, card, row);
}

static int intel_open(const struct afz_env *env, void **ret_state, unsigned *ret_gpus)
{
        struct intel *in = calloc(1, sizeof *in);
        if (!in)
                return -ENOMEM;
        in->env = env;
        in->cards = afz_drm_cards(env, drivers, in->card);
        if (in->cards == 0) {
                free(in);
                return -ENODATA;
        }
        bool all_integrated = true;
        for (unsigned i = 0; i < in->cards; i++) {
                /* The integrated one has had this place since there is PCI. */
                in->own[i].integrated = afz_span_eq(afz_span_str(in->card[i].pdev), "0000:00:02.0");
                all_integrated = all_integrated && in->own[i].integrated;
        }
        (void)afz_drm_clients_open(&in->clients, env, in->card, in->cards, all_integrated);
        *ret_gpus = in->cards;
        *ret_state = in;
        return 0;
}

static int intel_poll(void *state, uint64_t now_ns, struct afz_gpu_snapshot *into,
                      struct afz_batch *events)
{
        (void)events;
        struct intel *in = state;
        afz_drm_clients_poll(&in->clients, into);
        for (unsigned i = 0; i < in->cards; i++) {
                const struct afz_drm_card *card = &in->card[i];
                struct afz_gpu_row *row = afz_gpu_add(into, i);
                if (!row)
                        continue;
                afz_path(row->name, sizeof row->name, "Intel GPU %s", card->pci_id);
                afz_path(row->pci, sizeof row->pci, "%s", card->pdev);
                poll_card(in, i, now_ns, row);
                afz_drm_set_processes(&in->clients, i, into, row);
        }
        return 0;
}

static void intel_close(void *state)
{
        struct intel *in = state;
        if (!in)
                return;
        afz_drm_clients_close(&in->clients);
        free(in);
}

const struct afz_gpu_backend afz_gpu_intel = {
        .name = "intel",
        .open = intel_open,
        .poll = intel_poll,
        .close = intel_close,
};
