#include "matrix.h"

#include <string.h>

#include "matrix_kernel.h"

enum {
        BLOCK_INNER = 256, /* a packed panel is then 16 KiB: half of a level-1 cache */
        BLOCK_ROWS = 128,  /* a block of A is then 128 KiB: half of a small level-2 cache */
};

static const struct afz_matrix_kernel *kernel(void)
{
#ifdef AFZ_HAVE_AVX2
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
                return &afz_matrix_kernel_avx2;
#endif
        return &afz_matrix_kernel_plain;
}

/* B's rows are a power of two apart; without packing, a panel's lines would all fight for the same
 * cache set. */
static void pack_panel(const struct afz_product *p, size_t first_inner, size_t inner, size_t col,
                       float *panel)
{
        for (size_t k = 0; k < inner; k++)
                memcpy(&panel[k * AFZ_MATRIX_PANEL], &p->b[(first_inner + k) * p->cols + col],
                       AFZ_MATRIX_PANEL * sizeof(*panel));
}

static size_t smaller(size_t a, size_t b)
{
        return a < b ? a : b;
}

static void multiply_share(void *ctx, size_t share, size_t shares)
{
        const struct afz_product *p = ctx;
        float panel[BLOCK_INNER * AFZ_MATRIX_PANEL];
        size_t first, end;

        afz_pool_share(p->cols / AFZ_MATRIX_PANEL, share, shares, &first, &end);
        for (size_t k = 0; k < p->inner; k += BLOCK_INNER)
                for (size_t i = 0; i < p->rows; i += BLOCK_ROWS)
                        for (size_t j = first; j < end; j++) {
                                const size_t inner = smaller(BLOCK_INNER, p->inner - k);
                                const size_t rows = smaller(BLOCK_ROWS, p->rows - i);
                                const size_t col = j * AFZ_MATRIX_PANEL;

                                pack_panel(p, k, inner, col, panel);
                                kernel()->multiply(p, &p->a[i * p->a_row + k * p->a_col], panel,
                                                   inner, &p->c[i * p->cols + col], rows);
                        }
}

void afz_matrix_multiply_add(const struct afz_product *product, struct afz_pool *pool)
{
        struct afz_product copy = *product;

        afz_pool_run(pool, multiply_share, &copy);
}

float afz_matrix_dot(const float *a, const float *b, size_t n)
{
        return kernel()->dot(a, b, n);
}
