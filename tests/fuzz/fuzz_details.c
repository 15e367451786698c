/* Any text as details of raw records. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "details.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_details details;
        char why[AFZ_WHY_MAX];
        char *text = malloc(size + 1);
        if (!text)
                return 0;
        memcpy(text, data, size);
        text[size] = '\0';
        if (afz_details_parse(text, &details, why) == 0) {
                if (details.fields == 0 || details.fields > AFZ_FIELDS_MAX)
                        abort();
                for (uint32_t i = 0; i < details.fields; i++)
                        if (details.field[i].dimensions > AFZ_DIMENSIONS_MAX ||
                            (unsigned)details.field[i].dtype >= AFZ_DTYPE_COUNT ||
                            strlen(details.field[i].name) >= sizeof details.field[i].name)
                                abort();
        }
        free(text);
        return 0;
}
