#include "line.h"

#include "lines.h"

bool afz_line(const struct afz_window *window, uint64_t *ret_bytes)
{
        const struct afz_sample *host = afz_window_one(window, AFZ_KIND_HOST);
        int64_t total;
        if (!host || !afz_sample_get(host, AFZ_HOST_MEM_TOTAL, &total))
                return false;
        int64_t keep = (int64_t)afz_reserve_of((uint64_t)total);
        if (keep >= total)
                return false;
        *ret_bytes = (uint64_t)(total - keep);
        return true;
}
