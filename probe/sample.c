/* Poisson sampling by bytes (docs/sampling.md): the distance to the next sampled byte is drawn from
 * the exponential distribution, so that a block of s bytes is sampled with p = 1 - exp(-s / mean),
 * whatever came before it, and stands for s / p bytes. Large blocks are always seen (p = 1) and do
 * not move the distance. */
#include "probe.h"

#include <string.h>

/* The exponent, and ln of 1 to 2 by a series: right to 1e-7, without libm. */
static double ln(double x)
{
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        int exponent = (int)(bits >> 52) - 1023;
        bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
        memcpy(&x, &bits, sizeof bits);
        double z = (x - 1) / (x + 1), z2 = z * z; /* z is at most 1/3: seven terms */
        double sum = 1.0 / 11 + z2 / 13;
        for (int n = 9; n >= 1; n -= 2)
                sum = 1.0 / n + z2 * sum;
        return 2 * z * sum + exponent * 0.693147180559945309;
}

/* 1 - exp(-x), right to 1e-9: by halves until the series converges fast. */
static double one_minus_exp(double x)
{
        if (x > 40)
                return 1;
        if (x > 1) {
                double half = one_minus_exp(x / 2);
                return half * (2 - half);
        }
        double sum = 0, term = 1;
        for (int i = 1; i <= 12; i++) {
                term *= -x / i;
                sum -= term;
        }
        return sum;
}

static uint64_t random_bits(struct afz_sampler *s)
{
        uint64_t z = s->seed += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

/* Whole bytes: rounded down, as then "less than s of them" is the same for it and for what was
 * drawn. */
static int64_t draw_gap(struct afz_sampler *s, uint64_t mean_bytes)
{
        double u = (double)((random_bits(s) >> 11) + 1) * 0x1p-53; /* never 0 */
        return (int64_t)(-ln(u) * (double)mean_bytes);
}

static void spread(struct afz_sampler *s, int64_t gap)
{
        s->left_bytes = gap < AFZ_LARGE_BYTES ? gap : AFZ_LARGE_BYTES - 1;
        s->later_bytes = gap - s->left_bytes;
}

void afz_sample_begin(struct afz_sampler *s, uint64_t seed, uint64_t mean_bytes)
{
        s->seed = seed ? seed : 1;
        spread(s, draw_gap(s, mean_bytes));
}

struct afz_draw afz_sample_draw(struct afz_sampler *s, uint64_t size_bytes, uint64_t mean_bytes)
{
        if (size_bytes >= AFZ_LARGE_BYTES)
                return (struct afz_draw){1, size_bytes};
        int64_t gap = s->left_bytes + s->later_bytes - (int64_t)size_bytes;
        if (gap >= 0) {
                spread(s, gap);
                return (struct afz_draw){0, 0};
        }
        spread(s, draw_gap(s, mean_bytes));
        double p = one_minus_exp((double)size_bytes / (double)mean_bytes);
        return (struct afz_draw){1, (uint64_t)((double)size_bytes / p + 0.5)};
}
