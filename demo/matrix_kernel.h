/*
 * The inner loops of matrix.c, for matrix.c only.
 *
 * matrix_kernel.c is compiled once for what every processor of the kind has, and on x86-64 once
 * more for AVX2 and FMA, which makes a training step about twice as fast; matrix.c picks when it
 * runs. Both give nearly, not exactly, the same sums.
 */
#ifndef AFZ_MATRIX_KERNEL_H
#define AFZ_MATRIX_KERNEL_H

#include "matrix.h"

struct afz_matrix_kernel {
        /* C += A * panel for rows of A and C; panel is inner x AFZ_MATRIX_PANEL and lies close
         * together. */
        void (*multiply)(const struct afz_product *product, const float *a, const float *panel,
                         size_t inner, float *c, size_t rows);
        float (*dot)(const float *a, const float *b, size_t n);
};

extern const struct afz_matrix_kernel afz_matrix_kernel_plain;
extern const struct afz_matrix_kernel
        afz_matrix_kernel_avx2; /* only where the build defines AFZ_HAVE_AVX2 */

#endif
