/* Any text as a table of numbers, with and without a column of labels. */
#include "loader_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_loader_options options = {.format = "csv", .budget_bytes = 1 << 20};
        if (size == 0 || size > 4096)
                return 0;
        if (data[0] & 1)
                options.details = "{\"label\": 0}";
        fuzz_dataset(file_of(data + 1, size - 1), &options);
        return 0;
}
