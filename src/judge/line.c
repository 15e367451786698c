#include "line.h"

/* What a desktop, its services and the kernel's own caches need to stay quick. */
static const struct {
        int64_t part; /* one part in this many of RAM ... */
        int64_t least_bytes, most_bytes;
} reserve = {
        .part = 10,                        /* a tenth: where earlyoom begins to act by default */
        .least_bytes = INT64_C(256) << 20, /* less than this and even a console pages */
        .most_bytes = INT64_C(4) << 30,    /* a browser and a desktop; beyond it nothing gains */
};

bool afz_line(const struct afz_window *window, uint64_t *ret_bytes)
{
        const struct afz_sample *host = afz_window_one(window, AFZ_KIND_HOST);
        int64_t total;
        if (!host || !afz_sample_get(host, AFZ_HOST_MEM_TOTAL, &total))
                return false;
        int64_t keep = total / reserve.part;
        if (keep < reserve.least_bytes)
                keep = reserve.least_bytes;
        if (keep > reserve.most_bytes)
                keep = reserve.most_bytes;
        if (keep >= total)
                return false;
        *ret_bytes = (uint64_t)(total - keep);
        return true;
}
