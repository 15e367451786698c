#include "matrix_kernel.h"

#include <stdint.h>

/* As wide as the registers are: wider ones would be split, and their halves live in memory. */
#ifdef __AVX2__
enum { LANES = 8 };
#define KERNEL afz_matrix_kernel_avx2
#else
enum { LANES = 4 };
#define KERNEL afz_matrix_kernel_plain
#endif

enum {
        TILE_ROWS = 4
}; /* 4 rows by 2 vectors: 8 sums, enough to hide the latency of a multiply-add */

/* Aligned as a float: rows start anywhere. */
typedef float vector __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float))));

static const vector *load(const float *from)
{
        return (const vector *)(const void *)from;
}

static void add_to(float *to, vector low, vector high)
{
        vector *out = (vector *)(void *)to;

        out[0] += low;
        out[1] += high;
}

/* 4 rows by 2 vectors. Spelled out, because sums in an array would not stay in registers. */
static void multiply_tile(const struct afz_product *p, const float *a, const float *panel,
                          size_t inner, float *c)
{
        vector low0 = {0}, low1 = {0}, low2 = {0}, low3 = {0};
        vector high0 = {0}, high1 = {0}, high2 = {0}, high3 = {0};
        const float *a1 = a + p->a_row, *a2 = a1 + p->a_row, *a3 = a2 + p->a_row;

        for (size_t k = 0; k < inner; k++) {
                const vector *b = load(&panel[k * AFZ_MATRIX_PANEL]);
                const size_t at = k * p->a_col;

                low0 += a[at] * b[0];
                high0 += a[at] * b[1];
                low1 += a1[at] * b[0];
                high1 += a1[at] * b[1];
                low2 += a2[at] * b[0];
                high2 += a2[at] * b[1];
                low3 += a3[at] * b[0];
                high3 += a3[at] * b[1];
        }
        add_to(c, low0, high0);
        add_to(c + p->cols, low1, high1);
        add_to(c + 2 * p->cols, low2, high2);
        add_to(c + 3 * p->cols, low3, high3);
}

static void multiply_row(const struct afz_product *p, const float *a, const float *panel,
                         size_t inner, float *c)
{
        vector low = {0}, high = {0};

        for (size_t k = 0; k < inner; k++) {
                const vector *b = load(&panel[k * AFZ_MATRIX_PANEL]);

                low += a[k * p->a_col] * b[0];
                high += a[k * p->a_col] * b[1];
        }
        add_to(c, low, high);
}

static void multiply(const struct afz_product *p, const float *a, const float *panel, size_t inner,
                     float *c, size_t rows)
{
        for (size_t col = 0; col < AFZ_MATRIX_PANEL; col += 2 * LANES) {
                size_t r = 0;

                for (; r + TILE_ROWS <= rows; r += TILE_ROWS)
                        multiply_tile(p, &a[r * p->a_row], &panel[col], inner,
                                      &c[r * p->cols + col]);
                for (; r < rows; r++)
                        multiply_row(p, &a[r * p->a_row], &panel[col], inner,
                                     &c[r * p->cols + col]);
        }
}

static float dot(const float *a, const float *b, size_t n)
{
        vector low = {0}, high = {0};
        float sum = 0;
        size_t i = 0;

        for (; i + 2 * LANES <= n; i += 2 * LANES) {
                low += load(&a[i])[0] * load(&b[i])[0];
                high += load(&a[i])[1] * load(&b[i])[1];
        }
        for (; i < n; i++)
                sum += a[i] * b[i];
        low += high;
        for (size_t lane = 0; lane < LANES; lane++)
                sum += low[lane];
        return sum;
}

const struct afz_matrix_kernel KERNEL = {.multiply = multiply, .dot = dot};
