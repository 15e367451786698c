#include "psi_parse.h"

#include <errno.h>

static int parse_line(struct afz_span line, struct afz_psi_line *ret)
{
        struct afz_psi_line v = {0};
        struct afz_span word;
        bool has_avg = false, has_total = false;
        while (afz_span_take_word(&line, &word) == 0) {
                uint64_t total_us;
                if (afz_span_take_prefix(&word, "avg10=") == 0) {
                        if (has_avg || afz_span_take_hundredths(&word, &v.avg10_permyriad) < 0 ||
                            word.n > 0)
                                return -EINVAL;
                        has_avg = true;
                } else if (afz_span_take_prefix(&word, "total=") == 0) {
                        if (has_total || afz_span_u64(word, &total_us) < 0 ||
                            __builtin_mul_overflow(total_us, 1000U, &v.total_ns))
                                return -EINVAL;
                        has_total = true;
                }
        }
        if (!has_avg || !has_total)
                return -EINVAL;
        *ret = v;
        return 0;
}

int afz_psi_parse(struct afz_span text, struct afz_psi *ret)
{
        struct afz_psi psi = {0};
        struct afz_span line;
        bool has_some = false;
        while (afz_span_take_line(&text, &line) == 0) {
                bool some = afz_span_take_prefix(&line, "some ") == 0;
                if (!some && afz_span_take_prefix(&line, "full ") < 0)
                        return -EINVAL;
                if (some ? has_some : psi.has_full)
                        return -EINVAL;
                if (parse_line(line, some ? &psi.some : &psi.full) < 0)
                        return -EINVAL;
                *(some ? &has_some : &psi.has_full) = true;
        }
        if (!has_some || text.n > 0) /* what is left was cut in mid-line */
                return -EINVAL;
        *ret = psi;
        return 0;
}
