#include "gpu_drm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "count_of.h"

/* "cardN" and no more: connectors are called card0-DP-1. */
static int card_number(const char *name, uint64_t *ret)
{
        struct afz_span s = afz_span_str(name);
        if (afz_span_take_prefix(&s, "card") < 0 || s.n == 0 || !afz_is_digit(*s.p))
                return -EINVAL;
        return afz_span_u64(s, ret);
}

static void read_uevent(const struct afz_env *env, struct afz_drm_card *card)
{
        char path[80], buf[2048];
        struct afz_span text, line;
        if (afz_path(path, sizeof path, "%s/device/uevent", card->path) < 0 ||
            afz_env_read(env, AFZ_ROOT_SYS, path, buf, sizeof buf, &text) < 0)
                return;
        while (afz_span_take_line(&text, &line) == 0) {
                if (afz_span_take_prefix(&line, "DRIVER=") == 0)
                        afz_span_copy(line, card->driver, sizeof card->driver);
                else if (afz_span_take_prefix(&line, "PCI_SLOT_NAME=") == 0)
                        afz_span_copy(line, card->pdev, sizeof card->pdev);
                else if (afz_span_take_prefix(&line, "PCI_ID=") == 0)
                        afz_span_copy(line, card->pci_id, sizeof card->pci_id);
        }
}

static void find_hwmon(const struct afz_env *env, struct afz_drm_card *card)
{
        char path[80];
        struct afz_dir dir;
        if (afz_path(path, sizeof path, "%s/device/hwmon", card->path) < 0)
                return;
        int r = afz_dir_open(&dir, env, AFZ_ROOT_SYS, path);
        while (r >= 0 && (r = afz_dir_next(&dir)) > 0) {
                if (strncmp(dir.name, "hwmon", 5) == 0 &&
                    afz_path(card->hwmon, sizeof card->hwmon, "%s/%s", path, dir.name) < 0)
                        card->hwmon[0] = '\0';
        }
        afz_dir_close(&dir);
}

static bool is_wanted(const struct afz_drm_card *card, const char *const *drivers)
{
        for (; *drivers; drivers++)
                if (strcmp(card->driver, *drivers) == 0)
                        return true;
        return false;
}

static int by_path(const void *a, const void *b)
{
        const struct afz_drm_card *x = a, *y = b;
        uint64_t nx = 0, ny = 0;
        (void)card_number(strrchr(x->path, '/') + 1, &nx);
        (void)card_number(strrchr(y->path, '/') + 1, &ny);
        return nx < ny ? -1 : nx > ny;
}

unsigned afz_drm_cards(const struct afz_env *env, const char *const *drivers,
                       struct afz_drm_card *ret)
{
        struct afz_dir dir;
        unsigned count = 0;
        int r = afz_dir_open(&dir, env, AFZ_ROOT_SYS, "class/drm");
        while (r >= 0 && count < AFZ_DRM_CARDS && (r = afz_dir_next(&dir)) > 0) {
                uint64_t number;
                struct afz_drm_card card = {0};
                if (card_number(dir.name, &number) < 0 ||
                    afz_path(card.path, sizeof card.path, "class/drm/%s", dir.name) < 0)
                        continue;
                read_uevent(env, &card);
                if (!is_wanted(&card, drivers))
                        continue;
                find_hwmon(env, &card);
                ret[count++] = card;
        }
        afz_dir_close(&dir);
        qsort(ret, count, sizeof *ret, by_path);
        return count;
}

bool afz_drm_card_asleep(const struct afz_env *env, struct afz_drm_card *card)
{
        char path[96], buf[32];
        struct afz_span text;
        card->asleep =
                afz_path(path, sizeof path, "%s/device/power/runtime_status", card->path) > 0 &&
                afz_env_read(env, AFZ_ROOT_SYS, path, buf, sizeof buf, &text) == 0 &&
                afz_span_eq(afz_span_trim(text), "suspended");
        return card->asleep;
}

int afz_drm_u64(const struct afz_env *env, const char *folder, const char *file, uint64_t *ret)
{
        char path[160];
        int r = afz_path(path, sizeof path, "%s/%s", folder, file);
        return r < 0 ? r : afz_env_read_u64(env, AFZ_ROOT_SYS, path, ret);
}

void afz_drm_set(const struct afz_env *env, const char *folder, const char *file,
                 struct afz_gpu_row *row, enum afz_metric metric, uint64_t num, uint64_t den)
{
        uint64_t value;
        if (folder[0] && afz_drm_u64(env, folder, file, &value) == 0 &&
            !__builtin_mul_overflow(value, num, &value))
                afz_gpu_set(row, metric, value / den);
}

/* "16.0 GT/s PCIe": the rate names the generation. */
static uint64_t generation(uint64_t hundredths)
{
        static const uint64_t rate[] = {250, 500, 800, 1600, 3200, 6400, 12800};
        for (size_t i = 0; i < AFZ_COUNT_OF(rate); i++)
                if (hundredths == rate[i])
                        return i + 1;
        return 0;
}

void afz_drm_set_link(const struct afz_env *env, const struct afz_drm_card *card,
                      struct afz_gpu_row *row)
{
        char path[96], buf[64];
        struct afz_span text;
        uint64_t rate;
        if (afz_path(path, sizeof path, "%s/device/current_link_speed", card->path) > 0 &&
            afz_env_read(env, AFZ_ROOT_SYS, path, buf, sizeof buf, &text) == 0 &&
            afz_span_take_hundredths(&text, &rate) == 0 && generation(rate) > 0)
                afz_gpu_set(row, AFZ_GPU_PCIE_GEN, generation(rate));
        uint64_t lanes;
        /* An integrated GPU says 0 lanes, or 255 for "not known". */
        if (afz_drm_u64(env, card->path, "device/current_link_width", &lanes) == 0 && lanes > 0 &&
            lanes <= 32)
                afz_gpu_set(row, AFZ_GPU_PCIE_WIDTH, lanes);
}
