/*
 * The matrix product behind all of the network: C += A B, in single precision.
 *
 * B and C are stored row by row. A is read through two strides, so its transpose costs nothing: the
 * gradient's X^T is the input's X with the strides swapped. Work is shared out by columns of C, so
 * each element is summed in the same order by any number of threads: results do not depend on the
 * pool.
 */
#ifndef AFZ_MATRIX_H
#define AFZ_MATRIX_H

#include <stddef.h>

#include "pool.h"

enum {
        AFZ_MATRIX_PANEL = 16
}; /* columns done at once: two registers of 8 floats, by 4 rows, fill AVX's 16 */

struct afz_product {
        size_t rows, inner, cols; /* A is rows x inner, B inner x cols; cols is a multiple of
                                     AFZ_MATRIX_PANEL */
        const float *a;
        size_t a_row, a_col; /* element (i, k) of A is a[i * a_row + k * a_col] */
        const float *b;
        float *c;
};

void afz_matrix_multiply_add(const struct afz_product *product, struct afz_pool *pool);

/* The sum of a[i] * b[i]. */
float afz_matrix_dot(const float *a, const float *b, size_t n);

#endif
