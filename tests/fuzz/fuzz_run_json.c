/* A verdict.json from anybody: what is made of it can be told in words and in JSON, and what we
 * write ourselves comes back as it was. */
#include <stdlib.h>
#include <string.h>

#include "run.h"

static char once[1 << 20], twice[1 << 20];

static size_t write_json(const struct afz_run_known *known, char *buf, size_t cap)
{
        struct afz_out out = afz_out_to(-1, buf, cap);
        afz_run_put_json(&out, &known->page, &known->outcome, known->duration_ns);
        return out.err == 0 ? out.len : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_run_known known, again;
        struct afz_out out = afz_out_to(-1, twice, sizeof twice);
        if (afz_run_known_parse((struct afz_span){(const char *)data, size}, &known) < 0)
                return 0;
        afz_run_put_full_text(&out, &known.page, &known.outcome, known.duration_ns);
        size_t n = write_json(&known, once, sizeof once);
        if (n == 0 || afz_run_known_parse((struct afz_span){once, n}, &again) < 0)
                abort();
        /* The cost is a fraction of a duration, and each is rounded. */
        again.page.cpu_ns = known.page.cpu_ns;
        again.duration_ns = known.duration_ns;
        if (write_json(&again, twice, sizeof twice) != n || memcmp(once, twice, n) != 0)
                abort();
        return 0;
}
