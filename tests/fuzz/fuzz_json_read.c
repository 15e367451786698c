/* Any bytes as JSON: what is taken for sound can be walked to its end, within its bounds, and what
 * was said of it holds: containers hold only sound values, texts are UTF-8. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json_read.h"
#include "utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
        if (!holds)
                abort();
}

static void check_text(struct afz_json_value v)
{
        char text[512], again[16];
        require(afz_json_get_text(v, text, sizeof text));
        for (size_t n = strlen(text), i = 0, k; i < n; i += k) {
                k = afz_utf8_length(text + i, n - i);
                require(k > 0);
        }
        if (v.raw.n < sizeof text)
                require(afz_json_is(v, text));
        require(afz_json_get_text(v, again, sizeof again));
        require(strncmp(text, again, strlen(again)) == 0);
}

static void check_number(struct afz_json_value v)
{
        int64_t i;
        uint64_t u;
        double d;
        if (afz_json_get_i64(v, &i) && afz_json_get_double(v, &d))
                require(i == 0 || d == (double)i);
        if (afz_json_get_u64(v, &u) && afz_json_get_i64(v, &i))
                require(i >= 0 && (uint64_t)i == u);
}

static void check(struct afz_json_value v, struct afz_span within, int depth)
{
        struct afz_json_value key, value, alone;
        bool b;
        require(v.type != AFZ_JSON_NONE && depth <= AFZ_JSON_DEPTH);
        require(v.raw.n > 0 && v.raw.p >= within.p && v.raw.p + v.raw.n <= within.p + within.n);
        require(afz_json_get_bool(v, &b) == (v.type == AFZ_JSON_BOOL));
        if (v.type == AFZ_JSON_STRING)
                check_text(v);
        if (v.type == AFZ_JSON_NUMBER)
                check_number(v);
        for (struct afz_json_walk walk = afz_json_into(v); afz_json_next(&walk, &key, &value);) {
                require((key.type == AFZ_JSON_STRING) == (v.type == AFZ_JSON_OBJECT));
                require(afz_json_read(value.raw, &alone) == 0 && alone.type == value.type);
                require(alone.raw.n == value.raw.n);
                check(value, v.raw, depth + 1);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_json_value doc;
        struct afz_span text = {(const char *)data, size};
        if (afz_json_read(text, &doc) == 0)
                check(doc, text, 0);
        return 0;
}
