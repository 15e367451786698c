#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "count_of.h"
#include "quantity.h"
#include "report_parts.h"
#include "utf8.h"

/* ---- texts of anyone's ---- */

#define NO_CHARACTER "\xef\xbf\xbd"

/* Characters that turn the direction of what follows, or break lines in scripts. */
static bool is_unwelcome(uint32_t c)
{
        return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
               (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff ||
               (c & 0xfffe) == 0xfffe;
}

static uint32_t code_point(const char *s, size_t n)
{
        const unsigned char *u = (const unsigned char *)s;
        uint32_t c = n <= 1 ? u[0] : u[0] & (0x7fU >> n);
        for (size_t i = 1; i < n; i++)
                c = c << 6 | (u[i] & 0x3fU);
        return c;
}

/* Bytes of the character at s; 0: it is none, or none that may be shown. */
static size_t character(const char *s)
{
        size_t n = afz_utf8_length(s, strnlen(s, 4));
        return n == 0 || is_unwelcome(code_point(s, n)) ? 0 : n;
}

struct escape {
        char c;
        const char *as;
};

static const struct escape html[] = {{'&', "&amp;"},  {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"},
                                     {'\'', "&#39;"}, {'\n', " "},   {'\t', " "},   {0, NULL}};
static const struct escape json[] = {{'&', "\\u0026"}, {'<', "\\u003c"}, {'>', "\\u003e"},
                                     {'"', "\\\""},    {'\\', "\\\\"},   {'\n', " "},
                                     {'\t', " "},      {0, NULL}};

static void put(struct afz_out *out, const char *text, size_t most, const struct escape *escapes)
{
        const char *s = text;
        while (*s && (size_t)(s - text) < most) {
                const struct escape *e = escapes;
                while (e->c && e->c != *s)
                        e++;
                size_t n = e->c ? 1 : character(s);
                if (e->c)
                        afz_out_str(out, e->as);
                else if (n == 0)
                        afz_out_str(out, NO_CHARACTER);
                else
                        afz_out_bytes(out, s, n);
                s += n ? n : 1;
        }
        if (*s)
                afz_out_str(out, "…");
}

void afz_report_text(struct afz_out *out, const char *text, size_t most)
{
        put(out, text, most, html);
}

void afz_report_json_text(struct afz_out *out, const char *text, size_t most)
{
        afz_out_char(out, '"');
        put(out, text, most, json);
        afz_out_char(out, '"');
}

/* ---- figures ---- */

bool afz_report_has(uint64_t bytes)
{
        return bytes != 0 && bytes != UINT64_MAX;
}

/* What is more than this is a broken reading, and must not overflow anything. */
#define LARGEST   1e19
#define LONGEST_S 1e10

static const char *const size_units[] = {"B", "KB", "MB", "GB", "TB", "PB"};

/* Which of the units above a size is told in. */
static unsigned size_unit(double bytes)
{
        unsigned unit = 0;
        for (; bytes >= 1023.5 && unit + 1 < AFZ_COUNT_OF(size_units); unit++)
                bytes /= 1024;
        return unit;
}

static char *format_size(char buf[AFZ_REPORT_TEXT_CAP], double bytes, const char *suffix)
{
        unsigned unit = size_unit(bytes);
        double v = bytes / pow(1024, unit);
        int decimals = unit > 0 && v < 99.95 ? 1 : 0;
        snprintf(buf, AFZ_REPORT_TEXT_CAP, "%.*f %s%s", decimals, v, size_units[unit], suffix);
        return buf;
}

char *afz_report_time(char buf[AFZ_REPORT_TEXT_CAP], uint64_t ms)
{
        return ms == 0 ? strcpy(buf, "0 s")
                       : afz_format_duration(buf, AFZ_REPORT_TEXT_CAP, ms * AFZ_NS_PER_MS);
}

char *afz_report_value(char buf[AFZ_REPORT_TEXT_CAP], enum afz_report_unit unit, double value)
{
        double v = value > 0 ? fmin(value, LARGEST) : 0;
        switch (unit) {
        case AFZ_REPORT_BYTES:
                return format_size(buf, v, "");
        case AFZ_REPORT_PER_S:
                return format_size(buf, v, "/s");
        case AFZ_REPORT_SECONDS:
                return afz_report_time(buf, (uint64_t)(fmin(v, LONGEST_S) * 1000 + 0.5));
        case AFZ_REPORT_PERCENT:
                snprintf(buf, AFZ_REPORT_TEXT_CAP, "%.*f %%", v > 0 && v < 0.0995 ? 1 : 0, v * 100);
                return buf;
        case AFZ_REPORT_CORES:
                snprintf(buf, AFZ_REPORT_TEXT_CAP, "%.1f cores", v);
                return buf;
        default:
                return strcpy(buf, "");
        }
}

/* ---- axes ---- */

/* "0.25", "12.5", "200", but not "0.195312". */
static bool is_short(double value)
{
        double thousandths = value * 1000;
        return fabs(thousandths - round(thousandths)) < 1e-6 * fmax(thousandths, 1);
}

char *afz_report_tick(char buf[AFZ_REPORT_TEXT_CAP], enum afz_report_unit unit, double value,
                      double most)
{
        unsigned size = size_unit(most);
        if (value <= 0)
                return strcpy(buf, "0");
        /* Steps that are round in MB are not in GB, which the top of the axis may reach. */
        if (size > 0 && !is_short(value / pow(1024, size)))
                size--;
        switch (unit) {
        case AFZ_REPORT_BYTES:
        case AFZ_REPORT_PER_S:
                snprintf(buf, AFZ_REPORT_TEXT_CAP, "%.6g %s%s", value / pow(1024, size),
                         size_units[size], unit == AFZ_REPORT_PER_S ? "/s" : "");
                return buf;
        case AFZ_REPORT_PERCENT:
                snprintf(buf, AFZ_REPORT_TEXT_CAP, "%.4g %%", value * 100);
                return buf;
        case AFZ_REPORT_SECONDS:
                snprintf(buf, AFZ_REPORT_TEXT_CAP, "%.4g s", value);
                return buf;
        default:
                snprintf(buf, AFZ_REPORT_TEXT_CAP, "%.4g", value);
                return buf;
        }
}

double afz_report_step(enum afz_report_unit unit, double most, unsigned ticks)
{
        static const double round[] = {1, 2, 2.5, 5, 10};
        double base = 1;
        if (!(most > 0) || ticks == 0)
                return 1;
        if (unit == AFZ_REPORT_BYTES || unit == AFZ_REPORT_PER_S)
                base = pow(1024, size_unit(most));
        double rough = most / base / ticks;
        double ten = pow(10, floor(log10(rough)));
        for (size_t i = 0; i < AFZ_COUNT_OF(round); i++)
                if (round[i] * ten >= rough * (1 - 1e-9))
                        return round[i] * ten * base;
        return 10 * ten * base;
}

enum { S = 1000, MIN = 60 * S, H = 60 * MIN, D = 24 * H };

uint64_t afz_report_time_step(uint64_t span_ms, unsigned ticks)
{
        static const uint64_t steps[] = {1,        2,        5,        10,    20,      50,
                                         100,      200,      500,      S,     2 * S,   5 * S,
                                         10 * S,   15 * S,   30 * S,   MIN,   2 * MIN, 5 * MIN,
                                         10 * MIN, 15 * MIN, 30 * MIN, H,     2 * H,   3 * H,
                                         6 * H,    12 * H,   D,        2 * D, 5 * D,   10 * D};
        for (size_t i = 0; i < AFZ_COUNT_OF(steps); i++)
                if (steps[i] * ticks >= span_ms)
                        return steps[i];
        return 30 * (uint64_t)D;
}

char *afz_report_time_tick(char buf[AFZ_REPORT_TEXT_CAP], uint64_t ms, uint64_t step_ms)
{
        unsigned long long h = ms / H, min = ms / MIN % 60, s = ms / S % 60;
        if (ms == 0)
                return strcpy(buf, "0");
        if (step_ms >= D)
                snprintf(buf, AFZ_REPORT_TEXT_CAP, "%llu d", h / 24);
        else if (ms % H == 0)
                snprintf(buf, AFZ_REPORT_TEXT_CAP, "%llu h", h);
        else if (h > 0)
                snprintf(buf, AFZ_REPORT_TEXT_CAP, "%llu:%02llu h", h, min);
        else if (ms % MIN == 0)
                snprintf(buf, AFZ_REPORT_TEXT_CAP, "%llu min", min);
        else if (min > 0)
                snprintf(buf, AFZ_REPORT_TEXT_CAP, "%llu:%02llu", min, s);
        else
                snprintf(buf, AFZ_REPORT_TEXT_CAP, "%.4g s", (double)ms / S);
        return buf;
}
