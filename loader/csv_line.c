#include "csv_line.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 127, DIGITS_EXACT = 19, POWER_EXACT = 22 };

bool afz_csv_line(const char **at, const char *end, const char **ret, const char **ret_end)
{
        while (*at < end) {
                const char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));
                *at = stop ? stop + 1 : end;
                stop = stop ? stop : end;
                if (stop > line && stop[-1] == '\r')
                        stop--;
                if (stop > line) {
                        *ret = line, *ret_end = stop;
                        return true;
                }
        }
        return false;
}

char afz_csv_separator(const char *line, const char *end)
{
        static const char kinds[] = ",;\t";
        size_t most = 0;
        char chosen = ',';
        for (const char *kind = kinds; *kind; kind++) {
                size_t count = 0;
                for (const char *c = line; c < end; c++)
                        count += *c == *kind;
                if (count > most)
                        most = count, chosen = *kind;
        }
        return chosen;
}

static bool is_space(char c)
{
        return c == ' ' || c == '\t' || c == '\r';
}

bool afz_csv_cell(const char **at, const char *end, char separator, struct afz_cell *ret)
{
        if (*at > end)
                return false;
        const char *from = *at, *stop = from;
        bool is_quoted = false;
        for (; stop < end && (is_quoted || *stop != separator); stop++)
                is_quoted ^= *stop == '"';
        *at = stop + 1; /* behind `end` after the last: only compared, never read */
        while (from < stop && is_space(*from))
                from++;
        while (stop > from && is_space(stop[-1]))
                stop--;
        if (stop - from >= 2 && *from == '"' && stop[-1] == '"')
                from++, stop--;
        *ret = (struct afz_cell){.text = from, .length = (size_t)(stop - from)};
        return true;
}

/* By the library, for what is longer or rarer than the short way can do exactly. */
static int number_slowly(const struct afz_cell *cell, locale_t point, double *ret)
{
        char copy[NUMBER_MAX + 1], *end;
        if (cell->length > NUMBER_MAX || memchr(cell->text, 'x', cell->length) ||
            memchr(cell->text, 'X', cell->length))
                return -EINVAL;
        memcpy(copy, cell->text, cell->length);
        copy[cell->length] = '\0';
        if (strlen(copy) != cell->length || is_space(*copy) || *copy == '\n' || *copy == '\v' ||
            *copy == '\f')
                return -EINVAL;
        double value = strtod_l(copy, &end, point);
        if (end == copy || *end)
                return -EINVAL;
        *ret = value;
        return 0;
}

struct digits {
        uint64_t value;
        int64_t count, power; /* a hostile cell may have more digits than an int counts */
};

static const char *take_digits(const char *c, const char *end, struct digits *d, int power)
{
        for (; c < end && *c >= '0' && *c <= '9'; c++) {
                d->count += d->value > 0 || *c != '0';
                if (d->count <= DIGITS_EXACT)
                        d->value = d->value * 10 + (uint64_t)(*c - '0');
                d->power += power;
        }
        return c;
}

int afz_csv_number(const struct afz_cell *cell, locale_t point, double *ret)
{
        static const double tens[POWER_EXACT + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
        const char *c = cell->text, *end = c + cell->length;
        struct digits d = {0};
        bool is_minus = false;
        if (cell->length == 0) {
                *ret = NAN;
                return 0;
        }
        if (*c == '-' || *c == '+')
                is_minus = *c++ == '-';
        const char *first = c;
        c = take_digits(c, end, &d, 0);
        bool has_digits = c > first;
        if (c < end && *c == '.') {
                const char *fraction = ++c;
                c = take_digits(c, end, &d, -1);
                has_digits |= c > fraction;
        }
        /* Both the digits and the power of ten are exact in a double: so is their product, rounded
         * once. */
        if (!has_digits || c != end || d.count > DIGITS_EXACT || d.value >> 53 ||
            -d.power > POWER_EXACT)
                return number_slowly(cell, point, ret);
        double value = (double)d.value / tens[-d.power];
        *ret = is_minus ? -value : value;
        return 0;
}
