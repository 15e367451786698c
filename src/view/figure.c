#include "figure.h"

#include <string.h>

char *afz_figure_count(char buf[AFZ_FIGURE_CAP], uint64_t count)
{
        char digits[AFZ_FIGURE_CAP];
        int n = 0, at = 0;
        do {
                digits[n++] = (char)('0' + count % 10);
                count /= 10;
        } while (count);
        while (n > 0)
                buf[at++] = digits[--n];
        buf[at] = 0;
        return buf;
}

/* Nothing that is shown comes near this; what does is a broken reading, and must not overflow. */
static uint64_t whole(double v)
{
        if (!(v > 0))
                return 0;
        return v < 1e18 ? (uint64_t)v : UINT64_C(1000000000000000000);
}

char *afz_figure_tenths(char buf[AFZ_FIGURE_CAP], double value)
{
        uint64_t tenths = whole(value * 10 + 0.5);
        size_t n = strlen(afz_figure_count(buf, tenths / 10));
        buf[n] = '.';
        buf[n + 1] = (char)('0' + tenths % 10);
        buf[n + 2] = 0;
        return buf;
}

char *afz_figure_size(char buf[AFZ_FIGURE_CAP], uint64_t bytes)
{
        static const char units[] = "BKMGTPE";
        double v = (double)bytes;
        unsigned unit = 0;
        while (v >= 1023.5 && unit + 2 < sizeof units) {
                v /= 1024;
                unit++;
        }
        if (unit > 0 && v < 99.95)
                afz_figure_tenths(buf, v);
        else
                afz_figure_count(buf, whole(v + 0.5));
        size_t n = strlen(buf);
        buf[n] = units[unit];
        buf[n + 1] = 0;
        return buf;
}

char *afz_figure_rate(char buf[AFZ_FIGURE_CAP], double bytes_per_s)
{
        afz_figure_size(buf, whole(bytes_per_s + 0.5));
        return strcat(buf, "/s");
}

char *afz_figure_percent(char buf[AFZ_FIGURE_CAP], double fraction)
{
        double percent = fraction * 100;
        if (percent >= 0.05 && percent < 0.95)
                afz_figure_tenths(buf, percent);
        else
                afz_figure_count(buf, whole(percent + 0.5));
        return strcat(buf, " %");
}
