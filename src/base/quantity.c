#include "quantity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"

/* Nine digits keep fraction * (unit % 10^digits) below 10^18, so that no product can overflow. */
enum { FRACTION_DIGITS_MAX = 9 };

struct unit {
        const char *name;
        uint64_t base_units;
};

static const struct unit size_units[] = {
        {"", 1},
        {"b", 1},
        {"k", UINT64_C(1) << 10},
        {"kb", UINT64_C(1) << 10},
        {"kib", UINT64_C(1) << 10},
        {"m", UINT64_C(1) << 20},
        {"mb", UINT64_C(1) << 20},
        {"mib", UINT64_C(1) << 20},
        {"g", UINT64_C(1) << 30},
        {"gb", UINT64_C(1) << 30},
        {"gib", UINT64_C(1) << 30},
        {"t", UINT64_C(1) << 40},
        {"tb", UINT64_C(1) << 40},
        {"tib", UINT64_C(1) << 40},
        {"p", UINT64_C(1) << 50},
        {"pb", UINT64_C(1) << 50},
        {"pib", UINT64_C(1) << 50},
        {"e", UINT64_C(1) << 60},
        {"eb", UINT64_C(1) << 60},
        {"eib", UINT64_C(1) << 60},
        {0},
};

static const struct unit duration_units[] = {
        {"", AFZ_NS_PER_S},          {"ns", 1},
        {"us", AFZ_NS_PER_US},       {"ms", AFZ_NS_PER_MS},
        {"s", AFZ_NS_PER_S},         {"m", 60 * AFZ_NS_PER_S},
        {"min", 60 * AFZ_NS_PER_S},  {"h", 3600 * AFZ_NS_PER_S},
        {"d", 86400 * AFZ_NS_PER_S}, {0},
};

static const struct unit percent_units[] = {
        {"%", 100},
        {0},
};

/* strtoull() would take blanks, signs and the locale's grouping; none of these is meant. */
static int parse_digits(const char **cursor, uint64_t *ret)
{
        const char *at = *cursor;
        uint64_t value = 0;
        bool overflow = false;

        if (*at < '0' || *at > '9')
                return -EINVAL;
        for (; *at >= '0' && *at <= '9'; at++) {
                overflow |= __builtin_mul_overflow(value, UINT64_C(10), &value);
                overflow |= __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value);
        }
        *cursor = at;
        *ret = value;
        return overflow ? -ERANGE : 0;
}

struct fraction {
        uint64_t value;
        uint64_t scale; /* 10^digits; 1: there was no fraction */
};

static int parse_fraction(const char **cursor, struct fraction *ret)
{
        struct fraction fraction = {.scale = 1};
        const char *start = *cursor + 1;

        if (**cursor == '.') {
                const char *at = start;
                int r = parse_digits(&at, &fraction.value);

                if (r == -EINVAL || at - start > FRACTION_DIGITS_MAX)
                        return -EINVAL;
                for (const char *digit = start; digit < at; digit++)
                        fraction.scale *= 10;
                *cursor = at;
        }
        *ret = fraction;
        return 0;
}

static const struct unit *find_unit(const struct unit *units, const char *name,
                                    int (*compare)(const char *, const char *))
{
        for (const struct unit *unit = units; unit->name; unit++)
                if (compare(unit->name, name) == 0)
                        return unit;
        return NULL;
}

/* strcasecmp() would follow the locale, and Turkish has other ideas of I and i. */
static int compare_ascii_caseless(const char *lower, const char *text)
{
        for (; *lower && *text; lower++, text++) {
                char c = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;

                if (*lower != c)
                        break;
        }
        return *lower - *text;
}

static int scale_to_unit(uint64_t whole, struct fraction fraction, uint64_t unit, uint64_t *ret)
{
        uint64_t value, part;

        if (__builtin_mul_overflow(whole, unit, &value))
                return -ERANGE;
        part = unit / fraction.scale * fraction.value +
               unit % fraction.scale * fraction.value / fraction.scale;
        if (__builtin_add_overflow(value, part, &value))
                return -ERANGE;
        *ret = value;
        return 0;
}

static int parse_with_units(const char *text, const struct unit *units,
                            int (*compare)(const char *, const char *), uint64_t *ret)
{
        const char *cursor = text;
        const struct unit *unit;
        struct fraction fraction;
        uint64_t whole;
        int range, r;

        /* "99999999999999999999zebras" is no number at all, rather than one that is too large. */
        range = parse_digits(&cursor, &whole);
        if (range == -EINVAL)
                return -EINVAL;
        r = parse_fraction(&cursor, &fraction);
        if (r < 0)
                return r;
        unit = find_unit(units, cursor, compare);
        if (!unit || (fraction.scale > 1 && unit->base_units == 1))
                return -EINVAL;
        if (range < 0)
                return range;
        return scale_to_unit(whole, fraction, unit->base_units, ret);
}

int afz_parse_size(const char *text, uint64_t *ret_bytes)
{
        return parse_with_units(text, size_units, compare_ascii_caseless, ret_bytes);
}

int afz_parse_duration(const char *text, uint64_t *ret_ns)
{
        return parse_with_units(text, duration_units, strcmp, ret_ns);
}

int afz_parse_u64(const char *text, uint64_t *ret)
{
        const char *cursor = text;
        uint64_t value;
        int r = parse_digits(&cursor, &value);

        if (r == -EINVAL || *cursor)
                return -EINVAL;
        if (r < 0)
                return r;
        *ret = value;
        return 0;
}

static int parse_percent(const char *text, uint32_t *ret_permyriad)
{
        const char *point = strchr(text, '.');
        uint64_t permyriad;
        int r = parse_with_units(text, percent_units, strcmp, &permyriad);

        if (r < 0)
                return r;
        if (point && strlen(point) > sizeof(".25%") - 1)
                return -EINVAL;
        if (permyriad > 10000)
                return -ERANGE;
        *ret_permyriad = (uint32_t)permyriad;
        return 0;
}

int afz_parse_size_or_percent(const char *text, struct afz_size_or_percent *ret)
{
        struct afz_size_or_percent amount = {.is_percent = strchr(text, '%') != NULL};
        int r;

        if (amount.is_percent)
                r = parse_percent(text, &amount.permyriad);
        else
                r = afz_parse_size(text, &amount.bytes);
        if (r < 0)
                return r;
        *ret = amount;
        return 0;
}

uint64_t afz_size_or_percent_of(struct afz_size_or_percent amount, uint64_t total_bytes)
{
        if (!amount.is_percent)
                return amount.bytes;
        return total_bytes / 10000 * amount.permyriad +
               total_bytes % 10000 * amount.permyriad / 10000;
}

char *afz_format_size(char *buf, size_t cap, uint64_t bytes)
{
        static const char units[] = "BKMGTPE";
        uint64_t unit = 1, tenths;
        size_t i = 0;

        /* A value that rounds up to 1024 of a unit is one of the next: "1.0M", never "1024K". */
        while (i + 2 < sizeof units && bytes >= unit * 1024 - unit / 2) {
                unit *= 1024;
                i++;
        }
        /* bytes % unit is below 2^60, so ten times it fits. */
        tenths = bytes / unit * 10 + (bytes % unit * 10 + unit / 2) / unit;
        if (i > 0 && tenths < 100)
                snprintf(buf, cap, "%" PRIu64 ".%" PRIu64 "%c", tenths / 10, tenths % 10, units[i]);
        else
                snprintf(buf, cap, "%" PRIu64 "%c", bytes / unit + (bytes % unit > (unit - 1) / 2),
                         units[i]);
        return buf;
}

static uint64_t divide_rounded(uint64_t value, uint64_t unit)
{
        return value / unit + (value % unit >= unit - unit / 2);
}

static char *format_subminute(char *buf, size_t cap, uint64_t ns)
{
        if (ns == 0)
                snprintf(buf, cap, "0 s");
        else if (ns < AFZ_NS_PER_US)
                snprintf(buf, cap, "%" PRIu64 " ns", ns);
        else if (divide_rounded(ns, AFZ_NS_PER_US) < 1000)
                snprintf(buf, cap, "%" PRIu64 " us", divide_rounded(ns, AFZ_NS_PER_US));
        else if (divide_rounded(ns, AFZ_NS_PER_MS) < 1000)
                snprintf(buf, cap, "%" PRIu64 " ms", divide_rounded(ns, AFZ_NS_PER_MS));
        else if (divide_rounded(ns, AFZ_NS_PER_S / 10) < 100)
                snprintf(buf, cap, "%" PRIu64 ".%" PRIu64 " s",
                         divide_rounded(ns, AFZ_NS_PER_S / 10) / 10,
                         divide_rounded(ns, AFZ_NS_PER_S / 10) % 10);
        else
                snprintf(buf, cap, "%" PRIu64 " s", divide_rounded(ns, AFZ_NS_PER_S));
        return buf;
}

char *afz_format_duration(char *buf, size_t cap, uint64_t ns)
{
        uint64_t s = divide_rounded(ns, AFZ_NS_PER_S);
        uint64_t min = divide_rounded(ns, 60 * AFZ_NS_PER_S);
        uint64_t h = divide_rounded(ns, 3600 * AFZ_NS_PER_S);

        if (s < 60)
                return format_subminute(buf, cap, ns);
        if (s < 600 && s % 60 != 0)
                snprintf(buf, cap, "%" PRIu64 " min %02" PRIu64 " s", s / 60, s % 60);
        else if (min < 60)
                snprintf(buf, cap, "%" PRIu64 " min", min);
        else if (min < UINT64_C(48) * 60)
                snprintf(buf, cap, "%" PRIu64 " h %02" PRIu64 " min", min / 60, min % 60);
        else
                snprintf(buf, cap, "%" PRIu64 " d %02" PRIu64 " h", h / 24, h % 24);
        return buf;
}
