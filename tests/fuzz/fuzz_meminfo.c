/* Any bytes as a file of "key: value kB" lines (meminfo, vmstat, status, memory.stat): no crash,
 * only keys of the table, and as many as are counted. */
#include <stdint.h>
#include <stdlib.h>

#include "span.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
        size_t n;
};

static void note(void *ctx, int id, uint64_t value)
{
        struct seen *seen = ctx;
        seen->n++;
        if (id < 1 || id > 4 || (id == 3 && value % 1000 != 0))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct afz_key keys[] = {
                {"MemTotal", 1, 0}, {"MemFree", 2, 0}, {"u", 3, 1000}, {"Active(anon)", 4, 1}};
        struct afz_span text = {(const char *)data, size};
        struct seen seen = {0};
        for (size_t rows = 0; rows <= 4; rows++) {
                seen.n = 0;
                if (afz_span_each_key(text, keys, rows, note, &seen) != seen.n)
                        abort();
                if (rows == 0 && seen.n != 0)
                        abort();
        }
        return 0;
}
