#include "json.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "utf8.h"

static void before_value(struct afz_json *j)
{
        if (j->comma)
                afz_out_char(j->out, ',');
        j->comma = true;
}

void afz_json_open(struct afz_json *j, char bracket)
{
        before_value(j);
        afz_out_char(j->out, bracket);
        j->comma = false;
}

void afz_json_close(struct afz_json *j, char bracket)
{
        afz_out_char(j->out, bracket);
        j->comma = true;
}

static void put_escaped(struct afz_out *out, unsigned char c)
{
        static const char *const names[0x20] = {
                ['\b'] = "\\b", ['\f'] = "\\f", ['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t"};
        if (c < 0x20 && names[c]) {
                afz_out_str(out, names[c]);
        } else if (c < 0x20 || c == 0x7f) {
                afz_out_fmt(out, "\\u%04x", (unsigned)c);
        } else {
                afz_out_char(out, '\\');
                afz_out_char(out, (char)c);
        }
}

static void put_string(struct afz_out *out, const char *text)
{
        afz_out_char(out, '"');
        for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
                unsigned char c = (unsigned char)*text;
                n = afz_utf8_length(text, left);
                if (n == 0) {
                        n = 1;
                        afz_out_str(out, "\xef\xbf\xbd");
                } else if (c < 0x20 || c == 0x7f || c == '"' || c == '\\') {
                        put_escaped(out, c);
                } else if (c == 0xc2 && (unsigned char)text[1] < 0xa0) { /* controls, too */
                        afz_out_fmt(out, "\\u%04x", (unsigned)(unsigned char)text[1]);
                } else {
                        afz_out_bytes(out, text, n);
                }
        }
        afz_out_char(out, '"');
}

void afz_json_key(struct afz_json *j, const char *key)
{
        before_value(j);
        put_string(j->out, key);
        afz_out_char(j->out, ':');
        j->comma = false;
}

void afz_json_str(struct afz_json *j, const char *s)
{
        if (!s) {
                afz_json_null(j);
                return;
        }
        before_value(j);
        put_string(j->out, s);
}

void afz_json_u64(struct afz_json *j, uint64_t v)
{
        before_value(j);
        afz_out_u64(j->out, v);
}

void afz_json_known_u64(struct afz_json *j, uint64_t v)
{
        if (v == UINT64_MAX)
                afz_json_null(j);
        else
                afz_json_u64(j, v);
}

void afz_json_i64(struct afz_json *j, int64_t v)
{
        before_value(j);
        afz_out_i64(j->out, v);
}

/* printf is slow and asks the locale; a tick writes hundreds of these. */
static void put_decimal(struct afz_out *out, double v, int decimals)
{
        uint64_t scale = 1;
        for (int i = 0; i < decimals; i++)
                scale *= 10;
        if (v < 0)
                afz_out_char(out, '-');
        uint64_t scaled = (uint64_t)(fabs(v) * (double)scale + 0.5);
        afz_out_u64(out, scaled / scale);
        if (decimals == 0)
                return;
        afz_out_char(out, '.');
        for (uint64_t digit = scale / 10; digit > 0; digit /= 10)
                afz_out_char(out, (char)('0' + scaled / digit % 10));
}

void afz_json_double(struct afz_json *j, double v, int decimals)
{
        const double largest = 1e15; /* beyond it a double has no decimals left */
        if (!isfinite(v)) {
                afz_json_null(j);
                return;
        }
        before_value(j);
        if (decimals < 0 || decimals > 3 || fabs(v) >= largest)
                afz_out_fmt(j->out, "%.17g", v);
        else
                put_decimal(j->out, v, decimals);
}

void afz_json_bool(struct afz_json *j, bool v)
{
        before_value(j);
        afz_out_str(j->out, v ? "true" : "false");
}

void afz_json_null(struct afz_json *j)
{
        before_value(j);
        afz_out_str(j->out, "null");
}
