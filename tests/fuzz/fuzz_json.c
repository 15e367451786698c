/* Any bytes as a string in JSON: what is written is one string of valid UTF-8 without control
 * characters, and its quotes and backslashes are in order. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1024, ROOM = MOST * 6 + 64 };

static void require(int holds)
{
        if (!holds)
                abort();
}

/* One character of UTF-8, by the table of RFC 3629; returns its length. */
static size_t check_utf8(const unsigned char *p, size_t n)
{
        if (p[0] < 0x80)
                return 1;
        size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
        require(p[0] >= 0xc2 && p[0] <= 0xf4 && n >= len);
        uint32_t c = p[0] & (0xffU >> (len + 1));
        for (size_t i = 1; i < len; i++) {
                require((p[i] & 0xc0) == 0x80);
                c = c << 6 | (p[i] & 0x3fU);
        }
        require(c >= (len == 2 ? 0x80U : len == 3 ? 0x800U : 0x10000U));
        require(c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff));
        return len;
}

static void check_string(const unsigned char *p, size_t n)
{
        require(n >= 2 && p[0] == '"' && p[n - 1] == '"');
        for (size_t i = 1; i < n - 1;) {
                require(p[i] >= 0x20 && p[i] != 0x7f && p[i] != '"');
                if (p[i] != '\\') {
                        i += check_utf8(p + i, n - 1 - i);
                        continue;
                }
                require(i + 1 < n - 1 && strchr("\"\\bfnrtu", p[i + 1]));
                i += p[i + 1] == 'u' ? 6 : 2;
                require(i <= n - 1);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static char text[MOST + 1], buf[ROOM];
        if (size > MOST)
                return 0;
        memcpy(text, data, size);
        text[size] = '\0';
        struct afz_out out = afz_out_to(-1, buf, sizeof buf);
        struct afz_json j = {.out = &out};
        afz_json_str(&j, text);
        require(out.err == 0);
        check_string((const unsigned char *)buf, out.len);
        return 0;
}
