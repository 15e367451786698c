/* Any bytes as a /proc/PID/fdinfo/FD. What is accepted must be sound, and accepted again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "drm_fdinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_span text = {(const char *)data, size};
        struct afz_drm_fdinfo a, b;
        int r = afz_drm_fdinfo_parse(text, &a);
        if (r != afz_drm_fdinfo_parse(text, &b))
                abort();
        if (r < 0)
                return 0;
        const char *end = text.p + text.n;
        if (a.driver.n == 0 || a.driver.p < text.p || a.driver.p + a.driver.n > end)
                abort();
        if (a.pdev.n > 0 && (a.pdev.p < text.p || a.pdev.p + a.pdev.n > end))
                abort();
        if (a.vram_bytes != b.vram_bytes || (!a.has_vram && a.vram_bytes > 0) ||
            (!a.has_system && a.system_bytes > 0))
                abort();
        return 0;
}
