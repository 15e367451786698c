/* Any bytes as a PSI file: no crash, nothing set on failure, and never without "some". */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "psi_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_span text = {(const char *)data, size};
        struct afz_psi psi = {.some = {7, 7}, .full = {7, 7}};
        if (afz_psi_parse(text, &psi) < 0) {
                if (psi.some.total_ns != 7 || psi.full.total_ns != 7)
                        abort();
                return 0;
        }
        if (!afz_span_has(text, "some ") || data[size - 1] != '\n' || psi.some.total_ns % 1000 != 0)
                abort();
        return 0;
}
