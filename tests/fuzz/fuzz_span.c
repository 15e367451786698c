/* Any bytes through every "take": no crash, nothing set or moved on failure, always forward, and
 * numbers that are the very digits. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "span.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
        if (!holds)
                abort();
}

static const uint64_t untouched = UINT64_C(0x5ca1ab1e);

static int take_i64(struct afz_span *s, uint64_t *ret)
{
        int64_t v;
        int r = afz_span_take_i64(s, &v);
        if (r == 0)
                *ret = (uint64_t)v;
        return r;
}

static void try_number(struct afz_span text, int (*take)(struct afz_span *, uint64_t *))
{
        struct afz_span s = text;
        uint64_t value = untouched;
        int r = take(&s, &value);
        require(r <= 0);
        if (r < 0) {
                require(value == untouched && s.p == text.p && s.n == text.n);
                return;
        }
        require(s.n < text.n && s.p + s.n == text.p + text.n);
        if (take ==
            afz_span_take_u64) { /* what was taken, written out again, is what stood there */
                char digits[24];
                int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
                require((size_t)(s.p - text.p) >= (size_t)n &&
                        memcmp(s.p - n, digits, (size_t)n) == 0);
        }
}

static void walk(struct afz_span text)
{
        struct afz_span lines = text, line, word;
        size_t sum = 0;
        while (afz_span_take_line(&lines, &line) == 0) {
                require(!memchr(line.p, '\n', line.n));
                sum += line.n + 1;
                while (afz_span_take_word(&line, &word) == 0)
                        require(word.n > 0);
        }
        require(sum + lines.n == text.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_span text = {(const char *)data, size}, part;
        char copy[16];
        uint64_t v;
        int64_t i;
        try_number(text, afz_span_take_u64);
        try_number(text, afz_span_take_hex);
        try_number(text, afz_span_take_hundredths);
        try_number(text, take_i64);
        (void)afz_span_u64(text, &v);
        (void)afz_span_i64(text, &i);
        walk(text);
        struct afz_span rest = text;
        if (size > 0 && afz_span_take_until(&rest, (char)data[size / 2], &part) == 0)
                require(part.n + 1 + rest.n == size);
        size_t n = afz_span_copy(text, copy, sizeof copy);
        require(n < sizeof copy && copy[n] == '\0');
        for (size_t k = 0; k < n; k++)
                require((unsigned char)copy[k] >= 0x20 && copy[k] != 0x7f);
        require(afz_span_trim(text).n <= size);
        return 0;
}
