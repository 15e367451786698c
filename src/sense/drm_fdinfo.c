#include "drm_fdinfo.h"

#include <errno.h>

#include "count_of.h"

/* How a driver says what memory is in use, best first: what is there now, what older kernels said
 * of amdgpu, and what was asked for (which may have been moved out). */
enum { RESIDENT, MEMORY, TOTAL, WAYS };

static const char *const prefix[WAYS] = {
        [RESIDENT] = "drm-resident-",
        [MEMORY] = "drm-memory-",
        [TOTAL] = "drm-total-",
};

enum { VRAM, SYSTEM, REGIONS };

struct sums {
        bool has[WAYS][REGIONS];
        uint64_t bytes[WAYS][REGIONS];
};

/* vram, vram0, local0 (i915's name) are the device's own; system, gtt, stolen are RAM. amdgpu's
 * "cpu" is RAM that the device does not reach, and left out. */
static int region_of(struct afz_span name)
{
        if (afz_span_starts(name, "vram") || afz_span_starts(name, "local"))
                return VRAM;
        if (afz_span_starts(name, "system") || afz_span_starts(name, "gtt") ||
            afz_span_starts(name, "stolen"))
                return SYSTEM;
        return -1;
}

static int parse_bytes(struct afz_span value, uint64_t *ret)
{
        static const struct {
                const char *unit;
                uint64_t scale;
        } units[] = {
                {"", 1},
                {"KiB", 1024},
                {"MiB", 1048576},
        };
        uint64_t n;
        int r = afz_span_take_u64(&value, &n);
        if (r < 0)
                return r;
        value = afz_span_trim(value);
        for (size_t i = 0; i < AFZ_COUNT_OF(units); i++) {
                if (afz_span_eq(value, units[i].unit))
                        return __builtin_mul_overflow(n, units[i].scale, ret) ? -ERANGE : 0;
        }
        return -EINVAL;
}

static int take_memory(struct sums *sums, struct afz_span key, struct afz_span value)
{
        for (int way = 0; way < WAYS; way++) {
                struct afz_span name = key;
                uint64_t bytes;
                if (afz_span_take_prefix(&name, prefix[way]) < 0)
                        continue;
                int region = region_of(name);
                if (region < 0)
                        return 0;
                if (parse_bytes(value, &bytes) < 0)
                        return -EINVAL;
                if (__builtin_add_overflow(sums->bytes[way][region], bytes,
                                           &sums->bytes[way][region]))
                        return -EINVAL;
                sums->has[way][region] = true;
                return 0;
        }
        return 0;
}

static bool best(const struct sums *sums, int region, uint64_t *ret)
{
        for (int way = 0; way < WAYS; way++) {
                if (sums->has[way][region]) {
                        *ret = sums->bytes[way][region];
                        return true;
                }
        }
        return false;
}

static int take_key(struct afz_drm_fdinfo *info, struct sums *sums, struct afz_span key,
                    struct afz_span value)
{
        if (afz_span_eq(key, "drm-driver")) {
                if (info->driver.n > 0 || value.n == 0)
                        return -EINVAL;
                info->driver = value;
        } else if (afz_span_eq(key, "drm-pdev")) {
                if (info->pdev.n > 0)
                        return -EINVAL;
                info->pdev = value;
        } else if (afz_span_eq(key, "drm-client-id")) {
                if (info->has_client_id || afz_span_u64(value, &info->client_id) < 0)
                        return -EINVAL;
                info->has_client_id = true;
        } else {
                return take_memory(sums, key, value);
        }
        return 0;
}

int afz_drm_fdinfo_parse(struct afz_span text, struct afz_drm_fdinfo *ret)
{
        struct afz_drm_fdinfo info = {0};
        struct sums sums = {0};
        struct afz_span line, key;
        while (afz_span_take_line(&text, &line) == 0) {
                if (!afz_span_starts(line, "drm-") || afz_span_take_until(&line, ':', &key) < 0)
                        continue;
                int r = take_key(&info, &sums, key, afz_span_trim(line));
                if (r < 0)
                        return r;
        }
        if (info.driver.n == 0)
                return -ENODATA;
        info.has_vram = best(&sums, VRAM, &info.vram_bytes);
        info.has_system = best(&sums, SYSTEM, &info.system_bytes);
        *ret = info;
        return 0;
}
