/* Any bytes as the header of a .npy or an IDX file: what is taken is within bounds. */
#include <stdint.h>
#include <stdlib.h>

#include "idx.h"
#include "npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct afz_npy *npy, size_t size)
{
        if ((unsigned)npy->dtype >= AFZ_DTYPE_COUNT || npy->dimensions > AFZ_DIMENSIONS_MAX + 1 ||
            npy->data_at > size)
                abort();
        for (uint32_t i = 0; i < npy->dimensions; i++)
                if (npy->shape[i] > INT64_MAX)
                        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_npy npy;
        uint8_t head[4096] = "\x93NUMPY\x01";
        if (afz_npy_parse(data, size, &npy) == 0)
                check(&npy, size);
        if (afz_idx_parse(data, size, &npy) == 0)
                check(&npy, size);
        if (size > sizeof head - 10)
                return 0;
        head[8] = (uint8_t)size; /* the text alone, which a fuzzer finds sooner */
        head[9] = (uint8_t)(size >> 8);
        for (size_t i = 0; i < size; i++)
                head[10 + i] = data[i];
        if (afz_npy_parse(head, 10 + size, &npy) == 0)
                check(&npy, 10 + size);
        return 0;
}
