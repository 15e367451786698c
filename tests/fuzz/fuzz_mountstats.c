/* Any bytes as /proc/PID/mountstats. */
#include <stddef.h>
#include <stdint.h>

#include "mountstats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_span text = {(const char *)data, size};
        struct afz_mountstats s;
        if (afz_mountstats_find(text, AFZ_SPAN("/a"), &s) == 0 && !s.has_bytes && !s.has_ops)
                __builtin_trap();
        return 0;
}
