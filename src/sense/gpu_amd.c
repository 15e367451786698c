/* AMD's GPUs through the files that amdgpu has in sysfs. */
#include <errno.h>
#include <stdlib.h>

#include "count_of.h"
#include "gpu_drm.h"

struct amd {
        const struct afz_env *env;
        unsigned cards;
        struct afz_drm_card card[AFZ_DRM_CARDS];
        char name[AFZ_DRM_CARDS][AFZ_GPU_NAME_CAP];
        char uuid[AFZ_DRM_CARDS][AFZ_GPU_UUID_CAP];
        struct afz_drm_clients clients;
};

static const char *const drivers[] = {"amdgpu", NULL};

/* Files that hold one number; value * num / den is in the metric's unit. */
static const struct {
        const char *file;
        enum afz_metric metric;
        bool hwmon;
        uint64_t num, den;
} files[] = {
        {"device/mem_info_vram_total", AFZ_GPU_MEM_TOTAL, false, 1, 1},
        {"device/mem_info_vram_used", AFZ_GPU_MEM_USED, false, 1, 1},
        {"device/mem_info_gtt_used", AFZ_GPU_GTT_USED, false, 1, 1},
        {"device/gpu_busy_percent", AFZ_GPU_UTIL, false, 100, 1},
        {"device/mem_busy_percent", AFZ_GPU_MEM_UTIL, false, 100, 1},
        {"device/pcie_replay_count", AFZ_GPU_PCIE_REPLAYS, false, 1, 1},
        {"temp1_input", AFZ_GPU_TEMP, true, 1, 1},
        {"temp1_crit", AFZ_GPU_TEMP_SLOWDOWN, true, 1, 1},
        {"power1_input", AFZ_GPU_POWER, true, 1, 1000},   /* APUs */
        {"power1_average", AFZ_GPU_POWER, true, 1, 1000}, /* the rest */
        {"power1_cap", AFZ_GPU_POWER_LIMIT, true, 1, 1000},
        {"freq1_input", AFZ_GPU_CLOCK, true, 1, 1},
        {"freq2_input", AFZ_GPU_MEM_CLOCK, true, 1, 1},
};

/* "0: 500Mhz\n1: 2304Mhz *\n": the last row is the highest, the starred one is used now. */
static void set_levels(struct amd *a, const struct afz_drm_card *card, const char *file,
                       struct afz_gpu_row *row, enum afz_metric now, bool set_max)
{
        char path[96], buf[1024];
        struct afz_span text, line, word;
        int64_t known;
        uint64_t max = 0;
        if (afz_path(path, sizeof path, "%s/device/%s", card->path, file) < 0 ||
            afz_env_read(a->env, AFZ_ROOT_SYS, path, buf, sizeof buf, &text) < 0)
                return;
        while (afz_span_take_line(&text, &line) == 0) {
                if (afz_span_take_until(&line, ':', &word) < 0 ||
                    afz_span_take_word(&line, &word) < 0 || word.n < 4 ||
                    !(afz_span_ends(word, "Mhz") || afz_span_ends(word, "MHz")))
                        continue;
                uint64_t mhz;
                if (afz_span_u64((struct afz_span){word.p, word.n - 3}, &mhz) < 0 ||
                    mhz > UINT64_C(1000000))
                        continue;
                if (mhz > max)
                        max = mhz;
                if (afz_span_has(line, "*") && !afz_gpu_get(row, now, &known))
                        afz_gpu_set(row, now, mhz * 1000000U);
        }
        if (max > 0 && set_max)
                afz_gpu_set(row, AFZ_GPU_CLOCK_MAX, max * 1000000U);
}

static void set_fan(struct amd *a, const struct afz_drm_card *card, struct afz_gpu_row *row)
{
        uint64_t now, max;
        if (card->hwmon[0] && afz_drm_u64(a->env, card->hwmon, "pwm1", &now) == 0 &&
            afz_drm_u64(a->env, card->hwmon, "pwm1_max", &max) == 0 && max > 0 && now <= max)
                afz_gpu_set(row, AFZ_GPU_FAN, now * 10000U / max);
}

/* "ue: 0\nce: 0\n", since the driver was loaded. */
static void set_ecc_one(void *ctx, int id, uint64_t value)
{
        afz_gpu_set(ctx, id == 0 ? AFZ_GPU_ECC_UNCORRECTED : AFZ_GPU_ECC_CORRECTED, value);
}

static void set_ecc(struct amd *a, const struct afz_drm_card *card, struct afz_gpu_row *row)
{
        static const struct afz_key keys[] = {{"ue", 0, 1}, {"ce", 1, 1}};
        char path[96], buf[256];
        struct afz_span text;
        if (afz_path(path, sizeof path, "%s/device/ras/umc_err_count", card->path) > 0 &&
            afz_env_read(a->env, AFZ_ROOT_SYS, path, buf, sizeof buf, &text) == 0)
                afz_span_each_key(text, keys, 2, set_ecc_one, row);
}

static void poll_card(struct amd *a, unsigned index, struct afz_gpu_row *row)
{
        struct afz_drm_card *card = &a->card[index];
        if (afz_drm_card_asleep(a->env, card))
                return;
        for (size_t i = 0; i < AFZ_COUNT_OF(files); i++)
                afz_drm_set(a->env, files[i].hwmon ? card->hwmon : card->path, files[i].file, row,
                            files[i].metric, files[i].num, files[i].den);
        int64_t total, used;
        if (afz_gpu_get(row, AFZ_GPU_MEM_TOTAL, &total) &&
            afz_gpu_get(row, AFZ_GPU_MEM_USED, &used) && used <= total)
                afz_gpu_set(row, AFZ_GPU_MEM_FREE, (uint64_t)(total - used));
        set_levels(a, card, "pp_dpm_sclk", row, AFZ_GPU_CLOCK, true);
        set_levels(a, card, "pp_dpm_mclk", row, AFZ_GPU_MEM_CLOCK, false);
        set_fan(a, card, row);
        set_ecc(a, card, row);
        afz_drm_set_link(a->env, card, row);
}

static void read_text(struct amd *a, const struct afz_drm_card *card, const char *file, char *ret,
                      size_t cap)
{
        char path[96], buf[256];
        struct afz_span text;
        if (afz_path(path, sizeof path, "%s/device/%s", card->path, file) > 0 &&
            afz_env_read(a->env, AFZ_ROOT_SYS, path, buf, sizeof buf, &text) == 0)
                afz_span_copy(afz_span_trim(text), ret, cap);
}

static void read_names(struct amd *a)
{
        for (unsigned i = 0; i < a->cards; i++) {
                read_text(a, &a->card[i], "product_name", a->name[i], sizeof a->name[i]);
                if (!a->name[i][0] && a->card[i].pci_id[0])
                        afz_path(a->name[i], sizeof a->name[i], "AMD GPU %s", a->card[i].pci_id);
                read_text(a, &a->card[i], "unique_id", a->uuid[i], sizeof a->uuid[i]);
        }
}

static int amd_open(const struct afz_env *env, void **ret_state, unsigned *ret_gpus)
{
        struct amd *a = calloc(1, sizeof *a);
        if (!a)
                return -ENOMEM;
        a->env = env;
        a->cards = afz_drm_cards(env, drivers, a->card);
        if (a->cards == 0) {
                free(a);
                return -ENODATA;
        }
        read_names(a);
        (void)afz_drm_clients_open(&a->clients, env, a->card, a->cards, false);
        *ret_gpus = a->cards;
        *ret_state = a;
        return 0;
}

static int amd_poll(void *state, uint64_t now_ns, struct afz_gpu_snapshot *into,
                    struct afz_batch *events)
{
        (void)now_ns, (void)events;
        struct amd *a = state;
        afz_drm_clients_poll(&a->clients, into);
        for (unsigned i = 0; i < a->cards; i++) {
                struct afz_gpu_row *row = afz_gpu_add(into, i);
                if (!row)
                        continue;
                afz_path(row->name, sizeof row->name, "%s", a->name[i][0] ? a->name[i] : "AMD GPU");
                afz_path(row->uuid, sizeof row->uuid, "%s", a->uuid[i]);
                afz_path(row->pci, sizeof row->pci, "%s", a->card[i].pdev);
                poll_card(a, i, row);
                afz_drm_set_processes(&a->clients, i, into, row);
        }
        return 0;
}

static void amd_close(void *state)
{
        struct amd *a = state;
        if (!a)
                return;
        afz_drm_clients_close(&a->clients);
        free(a);
}

const struct afz_gpu_backend afz_gpu_amd = {
        .name = "amd",
        .open = amd_open,
        .poll = amd_poll,
        .close = amd_close,
};
